"""What is counted, as one value that is passed down; nothing is registered globally."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, Counter, GCCollector, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""From an answer out of the store to one that waited for a gateway until its time was over."""
OTHER_METHOD: Final = "other"
"""Stands for every method that no route has: what a client sends must not become a label."""
METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})


class Metrics:
    """The instruments. ``seen`` is for the API; whoever carries out operations and calls counts those.

    Attributes:
        registry: what ``/metrics`` shows.
        operations: operations by ``kind`` and the ``state`` that they came to.
        gateway_calls: calls to a gateway by ``account``, ``call`` and ``outcome``.
        gateway_seconds: how long such a call took, by ``account`` and ``call``.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self.operations = Counter(
            "payrelay_operations",
            "Operations by kind and the state that they came to.",
            ("kind", "state"),
            registry=self.registry,
        )
        self.gateway_calls = Counter(
            "payrelay_gateway_calls",
            "Calls to a gateway by account, call and outcome.",
            ("account", "call", "outcome"),
            registry=self.registry,
        )
        self.gateway_seconds = Histogram(
            "payrelay_gateway_call_seconds",
            "Duration of calls to a gateway.",
            ("account", "call"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._http = _HttpCounts()
        self.registry.register(self._http)

    def seen(self, route: str, method: str, status: int, duration_s: float, *, is_replayed: bool) -> None:
        """Counts one answered request; ``route`` is a template, so that there are only so many."""
        self._http.add(route, method if method in METHODS else OTHER_METHOD, status, duration_s)
        if is_replayed:
            self._http.replays += 1

    def text(self) -> bytes:
        """Gives all of it in Prometheus' text format."""
        return generate_latest(self.registry)


class _HttpCounts(Collector):
    """Counts requests in plain numbers, of which families are made when somebody looks.

    The library's own instruments lock and check at every step, which is a tenth of what a request costs here; these
    are only ever touched by the one event loop.
    """

    def __init__(self) -> None:
        self.replays = 0
        self._counts: dict[tuple[str, str, int], int] = {}
        self._durations: dict[tuple[str, str], tuple[list[int], list[float]]] = {}

    def add(self, route: str, method: str, status: int, duration_s: float) -> None:
        """Counts one request."""
        key = (route, method, status)
        self._counts[key] = self._counts.get(key, 0) + 1
        durations = self._durations.get((route, method))
        if durations is None:
            durations = self._durations[route, method] = ([0] * (len(_SECONDS) + 1), [0.0])
        counts, sums = durations
        counts[bisect_left(_SECONDS, duration_s)] += 1
        sums[0] += duration_s

    def collect(self) -> Iterator[Metric]:
        """Gives what was counted so far."""
        requests = CounterMetricFamily(
            "payrelay_http_requests",
            "Answered requests by route, method and status.",
            labels=("route", "method", "status"),
        )
        for (route, method, status), count in self._counts.items():
            requests.add_metric((route, method, str(status)), count)
        yield requests
        seconds = HistogramMetricFamily(
            "payrelay_http_request_seconds",
            "Duration of requests, from the headers to the answer.",
            labels=("route", "method"),
        )
        for (route, method), (counts, sums) in self._durations.items():
            bounds = (*map(floatToGoString, _SECONDS), "+Inf")
            seconds.add_metric((route, method), list(zip(bounds, accumulate(counts), strict=True)), sums[0])
        yield seconds
        yield CounterMetricFamily(
            "payrelay_http_replays", "Repeats that got a finished answer again.", value=self.replays
        )
