"""Heartbeats for tests: ones that always come, and what the metrics ask for beside them."""

from typing import Final

import structlog

from payrelay.api.metrics.store_gauges import StoreSources
from payrelay.clock import Clock
from payrelay.runtime.health.store_heartbeat import BeatSource, StoreHeartbeat
from payrelay.store.heartbeats import Beat


def _dropped(_logger: object, _method: str, _event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    raise structlog.DropEvent


SILENT: Final = structlog.wrap_logger(
    None, processors=[_dropped], wrapper_class=structlog.make_filtering_bound_logger(0)
)


class SteadyBeats:
    """A store that takes every heartbeat."""

    async def beat(self, now_ms: int) -> Beat:
        """Takes it."""
        return Beat(now_ms, None, is_own_lost=False)

    async def end(self) -> None:
        """Does nothing."""


async def _alike() -> bool:
    return True


def heartbeat_of(clock: Clock, beats: BeatSource | None = None) -> StoreHeartbeat:
    """Makes a heartbeat over a store that takes every one, or over the given one."""
    return StoreHeartbeat(beats or SteadyBeats(), clock, SILENT, compare=_alike)


def sources_of(heartbeat: StoreHeartbeat) -> StoreSources:
    """Gives what the metrics ask for, without an engine and without gateways."""
    return StoreSources(heartbeat, lambda: None, dict)
