"""Gauges of the books on ``/metrics``: the differences that nobody has closed, and since when the oldest is known."""

from collections.abc import Awaitable, Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from payrelay.api.metrics.gauges import StoreGauges
from payrelay.clock import Clock
from payrelay.reconciliation.rules.verdicts import Concern, OpenDifferences

_OTHER = "none"


class BooksGauges(StoreGauges[OpenDifferences]):
    """The gauges of differences; await ``refresh`` before ``text``."""

    def __init__(self, clock: Clock, count_open: Callable[[], Awaitable[OpenDifferences]]) -> None:
        super().__init__(clock)
        self._count_open = count_open

    def collect(self) -> Iterator[Metric]:
        """Gives the gauges; none where the store could not be read."""
        counts = self.counts
        if counts is None:
            return
        opened = GaugeMetricFamily(
            "payrelay_books_differences_open",
            "Differences of the books that nobody has closed, by what makes them urgent.",
            labels=("concern",),
        )
        for concern in (None, *Concern):
            opened.add_metric((concern or _OTHER,), counts.by_concern.get(concern, 0))
        since_ms = counts.oldest_ms
        age_s = 0.0 if since_ms is None else max(0, self._clock.now_ms() - since_ms) / 1000
        yield opened
        yield GaugeMetricFamily(
            "payrelay_books_oldest_difference_seconds",
            "How long the oldest of them has been known; 0 where there is none.",
            value=age_s,
        )

    async def read(self) -> OpenDifferences:
        """Counts the open differences; raises StoreError."""
        return await self._count_open()
