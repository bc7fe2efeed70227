"""Gauges of retention on ``/metrics``: the age of the oldest data of each kind, and how much was cleared."""

from collections.abc import Awaitable, Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from payrelay.api.metrics.gauges import StoreGauges
from payrelay.clock import Clock
from payrelay.flows.retention.clear import KindStatus


class RetentionGauges(StoreGauges[list[KindStatus]]):
    """The gauges of retention; await ``refresh`` before ``text``."""

    def __init__(self, clock: Clock, status: Callable[[], Awaitable[list[KindStatus]]]) -> None:
        super().__init__(clock)
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Gives the gauges; none where the store could not be read."""
        if self.counts is None:
            return
        now_ms = self._clock.now_ms()
        oldest = GaugeMetricFamily(
            "payrelay_retained_oldest_seconds",
            "Age of the oldest data of a kind that is not cleared; 0 where there is none.",
            labels=("kind",),
        )
        overdue = GaugeMetricFamily(
            "payrelay_retention_overdue_seconds",
            "By how much that data is older than its period of retention; 0 where it isn't.",
            labels=("kind",),
        )
        cleared = CounterMetricFamily("payrelay_cleared", "What the clearing has cleared, by kind.", labels=("kind",))
        for each in self.counts:
            age_ms = 0 if each.oldest_ms is None else max(0, now_ms - each.oldest_ms)
            oldest.add_metric((each.kind,), age_ms / 1000)
            overdue.add_metric((each.kind,), each.overdue_ms(now_ms) / 1000)
            cleared.add_metric((each.kind,), each.cleared)
        yield from (oldest, overdue, cleared)

    async def read(self) -> list[KindStatus]:
        """Reads how the clearing stands; raises StoreError."""
        return await self._status()
