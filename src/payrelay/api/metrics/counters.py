"""Counters for ``/metrics``, as one value that is passed down; nothing is registered globally."""

from bisect import bisect_left
from collections.abc import Iterator
from http import HTTPStatus
from importlib import metadata
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from payrelay.core.calls import Effect, Read, Void
from payrelay.core.payments.operation import Kind, Operation
from payrelay.errors import Code
from payrelay.flows.alerts.alert import AlertOutcome
from payrelay.runtime.event_delivery import DeliveryOutcome
from payrelay.runtime.hooks import Hooks

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""From an answer out of the store to one that waited for a gateway until its time-out."""
OTHER_METHOD: Final = "other"
"""Stands for every method outside METHODS: what a client sends must not become a label."""
NO_CALLER: Final = "none"
"""Stands for requests without a valid credential."""
OTHER_CALLER: Final = "other"
CALLERS_MAX: Final = 100
"""Principals with a label of their own, in the order in which they came; all others share one."""
METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})


class Metrics:
    """The counters; flows and workers use ``hooks``, the API uses the other methods.

    Attributes:
        registry: what ``/metrics`` shows.
        hooks: count operations, calls to a gateway, alerts, deliveries and notifications.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._operations = self._counter("operations", "Operations by kind and state reached.", "kind", "state")
        self._calls = self._counter(
            "gateway_calls", "Calls to a gateway by account, call and outcome.", "account", "call", "outcome"
        )
        self._call_durations = self._durations(
            "gateway_call_seconds", "Duration of calls to a gateway.", "account", "call"
        )
        self._requests = self._counter(
            "http_requests", "Answered requests by route, method and status.", "route", "method", "status"
        )
        self._request_durations = self._durations(
            "http_request_seconds", "Duration of requests, from the headers to the answer.", "route", "method"
        )
        self._alerts = self._counter("alerts", "Alerts to operators by outcome.", "outcome")
        self._failed_credentials = self._counter(
            "failed_credentials", "Requests without a valid credential, by reason.", "reason"
        )
        self._refused_tokens = self._counter("refused_tokens", "Rejected tokens of apps by reason.", "reason")
        self._closed_connections = self._counter(
            "closed_connections", "Connections that the service closed to keep to its limits, by reason.", "reason"
        )
        self._notifications = self._counter(
            "notifications", "Notifications that came in, by account and authenticity.", "account", "authenticity"
        )
        self._worked_on = self._counter(
            "notifications_worked_on",
            "Attempts to process a notification, by the state it reached and the reason.",
            "state",
            "reason",
        )
        self._deliveries = self._counter(
            "event_deliveries", "Attempts to deliver an event to an endpoint, by outcome.", "outcome"
        )
        self._errors = self._counter("http_errors", "Answers with an error code, by code.", "code")
        self._caller_requests = self._counter(
            "caller_requests", "Answered requests by principal and result.", "caller", "result"
        )
        self._callers: set[str] = set()
        self._rounds = self._counter("worker_rounds", "Rounds that the worker has ended.")
        self._failed_jobs = self._counter("worker_jobs_failed", "Jobs of the worker that failed, by name.", "name")
        self.registry.register(_Build(metadata.version("payrelay")))
        self._replays = self._counter("http_replays", "Repeats that got a finished answer again.")
        # These begin at 0, so that the first one is an increase and not a new time series.
        self._replays.add((), 0)
        self._rounds.add((), 0)
        for code in Code:
            self._errors.add((code,), 0)
        for alert_outcome in AlertOutcome:
            self._alerts.add((alert_outcome,), 0)
        for delivery_outcome in DeliveryOutcome:
            self._deliveries.add((delivery_outcome,), 0)
        self.hooks = Hooks(
            operation_changed=self._operation_changed,
            call_made=self._call_made,
            alerted=lambda outcome: self._alerts.add((outcome,)),
            event_tried=lambda outcome: self._deliveries.add((outcome,)),
            notified=lambda account, authenticity: self._notifications.add((account, authenticity)),
            worked_on=lambda state, reason: self._worked_on.add((state, reason)),
            round_ended=lambda: self._rounds.add(()),
            job_failed=lambda job: self._failed_jobs.add((job,)),
        )

    def seen(self, route: str, method: str, status: int, duration_s: float, *, is_replayed: bool) -> None:
        """Counts one answered request; ``route`` is a template, which bounds the number of labels."""
        method = method if method in METHODS else OTHER_METHOD
        self._requests.add((route, method, status))
        self._request_durations.add((route, method), duration_s)
        if is_replayed:
            self._replays.add(())

    def answered(self, caller: str | None, status: int, code: str | None) -> None:
        """Counts one answer for its caller, a principal; None where no valid credential is known."""
        if code is not None:
            self._errors.add((code,))
        self._caller_requests.add((self._caller_label(caller), _result_of(status)))

    def _caller_label(self, caller: str | None) -> str:
        if caller is None:
            return NO_CALLER
        if caller not in self._callers:
            if len(self._callers) >= CALLERS_MAX:
                return OTHER_CALLER
            self._callers.add(caller)
        return caller

    def credential_failed(self, reason: str) -> None:
        """Counts one request without a valid credential."""
        self._failed_credentials.add((reason,))

    def token_refused(self, reason: str) -> None:
        """Counts one rejected token; ``credential_failed`` counts its request as well."""
        self._refused_tokens.add((reason,))

    def connections_closed(self, reason: str, count: int) -> None:
        """Counts connections that the service closed to keep to its limits."""
        self._closed_connections.add((reason,), count)

    def text(self) -> bytes:
        """Gives the counters in Prometheus' text format."""
        return generate_latest(self.registry)

    def _operation_changed(self, operation: Operation) -> None:
        self._operations.add((operation.kind, operation.state))

    def _call_made(self, account: str, call: Effect | Read, outcome: str, duration_s: float) -> None:
        name = Kind.VOID if isinstance(call, Void) else call.__struct_config__.tag  # a void's tag is the stored word
        self._calls.add((account, name, outcome))
        self._call_durations.add((account, name), duration_s)

    def _counter(self, name: str, sentence: str, *labels: str) -> "_Counts":
        counts = _Counts(f"payrelay_{name}", sentence, labels)
        self.registry.register(counts)
        return counts

    def _durations(self, name: str, sentence: str, *labels: str) -> "_Durations":
        durations = _Durations(f"payrelay_{name}", sentence, labels)
        self.registry.register(durations)
        return durations


_BAD_REQUEST: Final = HTTPStatus.BAD_REQUEST.value
_SERVER_ERROR: Final = HTTPStatus.INTERNAL_SERVER_ERROR.value
"""Plain numbers: to look a status up among its kind takes longer than the rest of ``_result_of``."""


def _result_of(status: int) -> str:
    if status >= _SERVER_ERROR:
        return "failed"
    return "refused" if status >= _BAD_REQUEST else "answered"


class _Build(Collector):
    """One metric that is always 1, whose label names the version."""

    def __init__(self, version: str) -> None:
        self._version = version

    def collect(self) -> Iterator[Metric]:
        """Gives the metric."""
        family = GaugeMetricFamily("payrelay_build_info", "Always 1; the version is a label.", labels=("version",))
        family.add_metric((self._version,), 1)
        yield family


_Labels: TypeAlias = tuple[str | int | None, ...]


class _Counts(Collector):
    """Counts in plain numbers, from which a metric family is made on demand.

    The library's own instruments lock and check at every step, which is a tenth of what a request costs here. Only the
    one event loop touches these counts.
    """

    def __init__(self, name: str, sentence: str, labels: tuple[str, ...]) -> None:
        self._head = (name, sentence)
        self._labels = labels
        self._counts: dict[_Labels, int] = {}

    def add(self, labels: _Labels, count: int = 1) -> None:
        """Adds a number, 1 unless it is given, to the count of these labels."""
        self._counts[labels] = self._counts.get(labels, 0) + count

    def collect(self) -> Iterator[Metric]:
        """Gives the counts so far."""
        family = CounterMetricFamily(*self._head, labels=self._labels)
        for labels, count in self._counts.items():
            family.add_metric([str(label) for label in labels], count)
        yield family


class _Durations(Collector):
    """Sorts durations into the buckets of _SECONDS; in plain numbers, as ``_Counts`` does."""

    def __init__(self, name: str, sentence: str, labels: tuple[str, ...]) -> None:
        self._head = (name, sentence)
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
        """Gives the durations so far."""
        family = HistogramMetricFamily(*self._head, labels=self._labels)
        bounds = (*map(floatToGoString, _SECONDS), "+Inf")
        for labels, (counts, sums) in self._durations.items():
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric([str(label) for label in labels], buckets, sums[0])
        yield family
