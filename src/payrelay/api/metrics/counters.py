"""What is counted, as one value that is passed down; nothing is registered globally."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from payrelay.core.calls import Effect, Read
from payrelay.core.payments.operation import Operation
from payrelay.flows.operators.alert import AlertOutcome
from payrelay.runtime.event_delivery import DeliveryOutcome
from payrelay.runtime.hooks import Hooks

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""From an answer out of the store to one that waited for a gateway until its time was over."""
OTHER_METHOD: Final = "other"
"""Stands for every method that no route has: what a client sends must not become a label."""
METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})


class Metrics:
    """The instruments; ``hooks`` is for those who carry out operations, the other methods are for the API.

    Attributes:
        registry: what ``/metrics`` shows.
        hooks: counts changes of operations and calls to a gateway.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._operations = _Counts(
            "payrelay_operations", "Operations by kind and the state that they came to.", ("kind", "state")
        )
        self._calls = _Counts(
            "payrelay_gateway_calls",
            "Calls to a gateway by account, call and what they came to.",
            ("account", "call", "outcome"),
        )
        self._call_durations = _Durations(
            "payrelay_gateway_call_seconds", "Duration of calls to a gateway.", ("account", "call")
        )
        self._requests = _Counts(
            "payrelay_http_requests", "Answered requests by route, method and status.", ("route", "method", "status")
        )
        self._request_durations = _Durations(
            "payrelay_http_request_seconds",
            "Duration of requests, from the headers to the answer.",
            ("route", "method"),
        )
        self._alerts = _Counts(
            "payrelay_alerts", "Alerts about what needs a person, by what became of them.", ("outcome",)
        )
        self._failed_credentials = _Counts(
            "payrelay_failed_credentials", "Requests without a credential that is good, by what was wrong.", ("reason",)
        )
        self._refused_tokens = _Counts(
            "payrelay_refused_tokens", "Tokens of phones that nobody was let in with, by what was wrong.", ("reason",)
        )
        self._notifications = _Counts(
            "payrelay_notifications",
            "Notifications that came in, by account and who they are from.",
            ("account", "verdict"),
        )
        self._worked_on = _Counts(
            "payrelay_notifications_worked_on",
            "Tries to work on a notification, by where it came to stand and why.",
            ("state", "why"),
        )
        self._event_tries = _event_tries()
        self._replays = _Counts("payrelay_http_replays", "Repeats that got a finished answer again.", ())
        self._replays.add((), 0)
        for outcome in AlertOutcome:  # so that the first one is an increase, and not a number that was not there before
            self._alerts.add((outcome,), 0)
        for counts in (
            self._operations,
            self._calls,
            self._requests,
            self._replays,
            self._alerts,
            self._failed_credentials,
            self._refused_tokens,
            self._notifications,
            self._worked_on,
            self._event_tries,
        ):
            self.registry.register(counts)
        for durations in (self._call_durations, self._request_durations):
            self.registry.register(durations)
        self.hooks = Hooks(
            operation_changed=self._operation_changed,
            call_made=self._call_made,
            alerted=self._alerted,
            event_tried=self._event_tried,
            notified=self._notified,
            worked_on=self._noted,
        )

    def seen(self, route: str, method: str, status: int, duration_s: float, *, is_replayed: bool) -> None:
        """Counts one answered request; ``route`` is a template, so that there are only so many."""
        method = method if method in METHODS else OTHER_METHOD
        self._requests.add((route, method, status))
        self._request_durations.add((route, method), duration_s)
        if is_replayed:
            self._replays.add(())

    def credential_failed(self, reason: str) -> None:
        """Counts one request that nobody was let in with."""
        self._failed_credentials.add((reason,))

    def token_refused(self, reason: str) -> None:
        """Counts one token that nobody was let in with; such a request is counted among the others too."""
        self._refused_tokens.add((reason,))

    def text(self) -> bytes:
        """Gives all of it in Prometheus' text format."""
        return generate_latest(self.registry)

    def _operation_changed(self, operation: Operation) -> None:
        self._operations.add((operation.kind, operation.state))

    def _alerted(self, outcome: str) -> None:
        self._alerts.add((outcome,))

    def _event_tried(self, outcome: str) -> None:
        self._event_tries.add((outcome,))

    def _notified(self, account: str, verdict: str) -> None:
        self._notifications.add((account, verdict))

    def _noted(self, state: str, why: str) -> None:
        self._worked_on.add((state, why))

    def _call_made(self, account: str, call: Effect | Read, outcome: str, duration_s: float) -> None:
        name = call.__struct_config__.tag
        self._calls.add((account, name, outcome))
        self._call_durations.add((account, name), duration_s)


_Labels: TypeAlias = tuple[str | int | None, ...]


def _event_tries() -> "_Counts":
    """Begins each count at nothing, so that the first one is an increase."""
    counts = _Counts(
        "payrelay_event_deliveries", "Tries to send an event to an endpoint, by what came of them.", ("outcome",)
    )
    for outcome in DeliveryOutcome:
        counts.add((outcome,), 0)
    return counts


class _Counts(Collector):
    """Counts in plain numbers, of which a family is made when somebody looks.

    The library's own instruments lock and check at every step, which is a tenth of what a request costs here; these
    are only ever touched by the one event loop.
    """

    def __init__(self, name: str, words: str, labels: tuple[str, ...]) -> None:
        self._head = (name, words)
        self._labels = labels
        self._counts: dict[_Labels, int] = {}

    def add(self, labels: _Labels, count: int = 1) -> None:
        """Counts one more, or as many as are named."""
        self._counts[labels] = self._counts.get(labels, 0) + count

    def collect(self) -> Iterator[Metric]:
        """Gives what was counted so far."""
        name, words = self._head
        family = CounterMetricFamily(name, words, labels=self._labels)
        for labels, count in self._counts.items():
            family.add_metric([str(label) for label in labels], count)
        yield family


class _Durations(Collector):
    """Sorts durations into the buckets of _SECONDS; in plain numbers, as ``_Counts``."""

    def __init__(self, name: str, words: str, labels: tuple[str, ...]) -> None:
        self._head = (name, words)
        self._labels = labels
        self._durations: dict[_Labels, tuple[list[int], list[float]]] = {}

    def add(self, labels: _Labels, duration_s: float) -> None:
        """Adds one duration."""
        durations = self._durations.get(labels)
        if durations is None:
            durations = self._durations[labels] = ([0] * (len(_SECONDS) + 1), [0.0])
        counts, sums = durations
        counts[bisect_left(_SECONDS, duration_s)] += 1
        sums[0] += duration_s

    def collect(self) -> Iterator[Metric]:
        """Gives what was added so far."""
        name, words = self._head
        family = HistogramMetricFamily(name, words, labels=self._labels)
        bounds = (*map(floatToGoString, _SECONDS), "+Inf")
        for labels, (counts, sums) in self._durations.items():
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric([str(label) for label in labels], buckets, sums[0])
        yield family
