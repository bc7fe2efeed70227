"""What the router shows at ``/metrics``."""

from enum import StrEnum
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class RoutingOutcome(StrEnum):
    """What became of a request at the router."""

    ANSWERED = "answered"
    UNREACHABLE = "unreachable"
    LOST = "lost"
    CUT = "cut"
    LEFT = "left"


class RouterMetrics:
    """The counters and gauges of the router; labels are the names of partitions alone."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "payrelay_router_requests",
            "Requests by partition and by what became of them.",
            ["partition", "outcome"],
            registry=self._registry,
        )
        self._unknown = Counter(
            "payrelay_router_unknown_accounts", "Requests for accounts of no partition.", registry=self._registry
        )
        self._seconds = Histogram(
            "payrelay_router_request_seconds",
            "Seconds from a request to the headers of its answer.",
            ["partition"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._closed = Counter(
            "payrelay_closed_connections",
            "Connections that the router closed, by why.",
            ["reason"],
            registry=self._registry,
        )
        self._ready = Gauge(
            "payrelay_router_partition_ready",
            "1 while a process of the partition is ready.",
            ["partition"],
            registry=self._registry,
        )

    def connections_closed(self, reason: str, count: int) -> None:
        """Counts connections that were closed to keep to the limits."""
        self._closed.labels(reason).inc(count)

    def ended(self, partition: str, outcome: RoutingOutcome) -> None:
        """Counts a request."""
        self._requests.labels(partition, outcome).inc()

    def began_answer(self, partition: str, seconds: float) -> None:
        """Measures the time to the headers of an answer."""
        self._seconds.labels(partition).observe(seconds)

    def unknown(self) -> None:
        """Counts a request for an account of no partition."""
        self._unknown.inc()

    def ready(self, partition: str, *, is_ready: bool) -> None:
        """Notes whether a partition is ready."""
        self._ready.labels(partition).set(1 if is_ready else 0)

    async def text(self) -> bytes:
        """Gives all metrics in Prometheus' text format."""
        return generate_latest(self._registry)
