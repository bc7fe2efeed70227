"""What is counted, as one value that is passed down; nothing is registered globally."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, GCCollector, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""From an answer out of the store to one that waited for a gateway until its time was over."""
OTHER_METHOD: Final = "other"
"""Stands for every method that no route has: what a client sends must not become a label."""
_METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})


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
        self._requests = Counter(
            "payrelay_http_requests",
            "Answered requests by route, method and status.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "payrelay_http_request_seconds",
            "Duration of requests, from the headers to the answer.",
            ("route", "method"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._replays = Counter(
            "payrelay_http_replays", "Repeats that got a finished answer again.", registry=self.registry
        )
        # Children are looked up by one tuple: labels() would build and lock for every request.
        self._counters: dict[tuple[str, str, int], Counter] = {}
        self._histograms: dict[tuple[str, str], Histogram] = {}

    def seen(self, route: str, method: str, status: int, duration_s: float, *, is_replayed: bool) -> None:
        """Counts one answered request; ``route`` is a template, so that there are only so many."""
        if method not in _METHODS:
            method = OTHER_METHOD
        try:
            self._counters[route, method, status].inc()
            self._histograms[route, method].observe(duration_s)
        except KeyError:
            self._counters[route, method, status] = self._requests.labels(route, method, str(status))
            self._histograms[route, method] = self._seconds.labels(route, method)
            self.seen(route, method, status, duration_s, is_replayed=is_replayed)
            return
        if is_replayed:
            self._replays.inc()

    def text(self) -> bytes:
        """Gives all of it in Prometheus' text format."""
        return generate_latest(self.registry)
