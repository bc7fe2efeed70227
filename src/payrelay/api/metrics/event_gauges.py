"""How things stand with events when somebody looks at ``/metrics``: what waits, since when, and who is told nothing.

A gauge whose number can't be known now is absent; an old number would pass for a new one.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from payrelay.core.events.delivery import EndpointState
from payrelay.errors import StoreError
from payrelay.runtime.event_delivery import Dispatch

KEPT_S: Final = 5.0
"""How long numbers serve: several who scrape cost the store no more than one."""
READ_WITHIN_S: Final = 2.0


class _Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How many events wait, with when the oldest of them did first; None where there is none."""

    unpublished: int
    undelivered: int
    oldest_ms: int | None
    endpoints: dict[EndpointState, int]


class EventGauges(Collector):
    """What stands in the metrics of events; ``refresh`` is to be awaited before ``text``."""

    def __init__(self, dispatch: Dispatch) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._dispatch = dispatch
        self._standing: _Standing | None = None
        self._read_s = float("-inf")

    async def refresh(self) -> None:
        """Asks the store anew, unless that was done just now."""
        now_s = self._dispatch.clock.boot_s()
        if now_s - self._read_s < KEPT_S:
            return
        self._read_s = now_s
        try:
            async with asyncio.timeout(READ_WITHIN_S):
                self._standing = await self._read()
        except (StoreError, TimeoutError):
            self._standing = None

    def text(self) -> bytes:
        """Gives all of it in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Gives the gauges."""
        yield GaugeMetricFamily(
            "payrelay_event_followers",
            "Streams and waiting requests of this process that follow events.",
            value=self._dispatch.followers.count,
        )
        standing = self._standing
        if standing is None:
            return
        now_ms = self._dispatch.clock.now_ms()
        age_s = 0.0 if standing.oldest_ms is None else max(0, now_ms - standing.oldest_ms) / 1000
        for name, words, value in (
            ("payrelay_events_unpublished", "Events that have no position in the feed yet.", standing.unpublished),
            ("payrelay_deliveries_waiting", "Deliveries that are due or tried again later.", standing.undelivered),
            ("payrelay_events_oldest_waiting_seconds", "Age of the oldest of both; 0 where there is none.", age_s),
        ):
            yield GaugeMetricFamily(name, words, value=value)
        endpoints = GaugeMetricFamily("payrelay_endpoints", "Endpoints by state.", labels=("state",))
        for state, count in standing.endpoints.items():
            endpoints.add_metric((state,), count)
        yield endpoints

    async def _read(self) -> _Standing:
        unpublished, since_ms = await self._dispatch.feed.unpublished()
        undelivered, queued_ms = await self._dispatch.deliveries.waiting()
        return _Standing(
            unpublished=unpublished,
            undelivered=undelivered,
            oldest_ms=min((at_ms for at_ms in (since_ms, queued_ms) if at_ms is not None), default=None),
            endpoints=await self._dispatch.endpoints.count_by_state(),
        )
