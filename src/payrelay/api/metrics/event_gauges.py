"""Gauges of events and endpoints on ``/metrics``: what waits, since when, and endpoints by state."""

from collections.abc import Iterator

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric

from payrelay.api.metrics.gauges import StoreGauges
from payrelay.core.events.delivery import EndpointState
from payrelay.runtime.event_delivery import Dispatch


class _EventCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many events and deliveries wait, and since when the oldest of them has waited; None where none waits."""

    unpublished: int
    undelivered: int
    oldest_ms: int | None
    endpoints: dict[EndpointState, int]


class EventGauges(StoreGauges[_EventCounts]):
    """The gauges of events; await ``refresh`` before ``text``."""

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__(dispatch.clock)
        self._dispatch = dispatch

    def collect(self) -> Iterator[Metric]:
        """Gives the gauges; those of the store only where it could be read."""
        yield GaugeMetricFamily(
            "payrelay_event_followers",
            "Streams and waiting requests of this process that follow events.",
            value=self._dispatch.followers.count,
        )
        counts = self.counts
        if counts is None:
            return
        now_ms = self._dispatch.clock.now_ms()
        age_s = 0.0 if counts.oldest_ms is None else max(0, now_ms - counts.oldest_ms) / 1000
        for name, sentence, value in (
            ("payrelay_events_unpublished", "Events that have no position in the feed yet.", counts.unpublished),
            ("payrelay_deliveries_waiting", "Deliveries that are due now or at a later attempt.", counts.undelivered),
            (
                "payrelay_events_oldest_waiting_seconds",
                "Age of the oldest of these events and deliveries; 0 where none waits.",
                age_s,
            ),
        ):
            yield GaugeMetricFamily(name, sentence, value=value)
        endpoints = GaugeMetricFamily("payrelay_endpoints", "Endpoints by state.", labels=("state",))
        for state, count in counts.endpoints.items():
            endpoints.add_metric((state,), count)
        yield endpoints

    async def read(self) -> _EventCounts:
        """Counts waiting events, waiting deliveries and endpoints; raises StoreError."""
        unpublished, since_ms = await self._dispatch.feed.unpublished()
        undelivered, queued_ms = await self._dispatch.deliveries.waiting()
        return _EventCounts(
            unpublished=unpublished,
            undelivered=undelivered,
            oldest_ms=min((at_ms for at_ms in (since_ms, queued_ms) if at_ms is not None), default=None),
            endpoints=await self._dispatch.endpoints.count_by_state(),
        )
