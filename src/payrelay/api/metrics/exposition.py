"""Everything that ``/metrics`` shows: counters, and gauges that are read for each request."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from payrelay.api.metrics.counters import Metrics
from payrelay.api.metrics.event_gauges import EventGauges
from payrelay.api.metrics.gauges import Gauges, OpenOperations, StoreGauges
from payrelay.api.metrics.recovery_gauges import RecoveryGauges
from payrelay.api.metrics.retention_gauges import RetentionGauges
from payrelay.api.metrics.store_gauges import StoreHealthGauges, StoreSources
from payrelay.flows.relay import Relay
from payrelay.flows.retention.clear import clearing_status

REST: Final = 9
KEPT_MAX_S: Final = 1.0
"""However long a text took, no scraper gets one that is older."""


class Exposition:
    """Writes the counters and the gauges.

    Args:
        metrics: the counters.
        counts: counts open operations; ``store.payments.counts.Counts``.
        relay: has the rate limiters, the held responses and the dispatch of events.
        store: tells how the store is.
        further: gauges of parts.
    """

    def __init__(
        self,
        metrics: Metrics,
        counts: OpenOperations,
        relay: Relay,
        store: StoreSources,
        further: Sequence[StoreGauges[Any]] = (),
    ) -> None:
        self._metrics = metrics
        self._gauges = Gauges(
            relay.clock,
            counts,
            lambda: {name: account.rate_limiter.snapshot() for name, account in relay.accounts.items()},
            lambda: relay.held_responses.count,
        )
        self._event_gauges = EventGauges(relay.dispatch)
        self._retention_gauges = RetentionGauges(relay.clock, partial(clearing_status, relay.clearing))
        self._further = further
        self._recovery_gauges = RecoveryGauges(relay.database.lost_commits, relay.database.marks)
        self._store_gauges = StoreHealthGauges(store, lambda: self._gauges.counts is not None)
        self._text: asyncio.Future[bytes] | None = None
        self._kept_until_s = float("-inf")

    async def text(self) -> bytes:
        """Gives all metrics in Prometheus' text format, after a refresh of the gauges.

        The reads of the store go beside each other, and each has an end: while the store is silent, this takes as long
        as the longest of them, BEAT_WITHIN_S. A scraper's usual time-out is 10 s.

        Whoever asks while a text is made gets that one, and for REST times as long as that took whoever asks then: to
        make them takes at most a tenth of the time, however many ask.
        """
        time_s = asyncio.get_running_loop().time
        if self._text is None or (self._text.done() and time_s() >= self._kept_until_s):
            self._text = asyncio.ensure_future(self._made())
        return await asyncio.shield(self._text)

    async def _made(self) -> bytes:
        time_s = asyncio.get_running_loop().time
        began_s = time_s()
        text = await self._refreshed()
        self._kept_until_s = time_s() + min(KEPT_MAX_S, REST * (time_s() - began_s))
        return text

    async def _refreshed(self) -> bytes:
        kept: tuple[StoreGauges[Any], ...] = (self._retention_gauges, *self._further)
        readings = (self._gauges, self._event_gauges, self._store_gauges)
        await asyncio.gather(*(each.refresh() for each in readings), *(each.refresh() for each in kept))
        gauges = self._gauges.text() + self._event_gauges.text() + self._recovery_gauges.text()
        gauges += b"".join(each.text() for each in kept)
        return self._metrics.text() + gauges + self._store_gauges.text()
