"""Knows whether the store takes writes, by a heartbeat: one small write, at a pace of its own.

Rules:

1. One heartbeat is under way at a time, whoever asks. One that lasts longer than BEAT_WITHIN_S counts as failed, and
   goes on.
2. Health checks and metrics cause no more than one heartbeat in REUSED_S. No request waits for one.
3. A heartbeat that finds its own row gone has the database compared with what this process was told of.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

import msgspec
from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.errors import StoreError, StoreFault
from payrelay.store.heartbeats import Beat

BEAT_EVERY_S: Final = 5.0
REUSED_S: Final = 1.0
"""How long what a heartbeat showed is believed; also the most that strangers at the health check can cost."""
BEAT_WITHIN_S: Final = 3.0
"""A healthy store needs a hundredth of it. Probes of most load balancers wait longer."""


class BeatSource(Protocol):
    """Stores heartbeats: ``store.heartbeats.Heartbeats``, or a test's."""

    async def beat(self, now_ms: int) -> Beat:
        """Stores a heartbeat; raises StoreError."""

    async def end(self) -> None:
        """Removes what is stored of this process; raises StoreError."""


class StoreHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What the newest heartbeat showed; ``fault`` is None where the store took the write.

    Attributes:
        fault: what kept the store from it.
        seen_at_s: when that was known, by ``clock.boot_s``.
    """

    fault: StoreFault | None
    seen_at_s: float


class StoreHeartbeat:
    """The heartbeat of this process.

    ``compare`` compares what this process was told of with the database.

    Attributes:
        rows_lost: how often its own row was gone, or older than this process was told.
        clock_difference_s: the clock of the database's server less ours; None where it isn't known.
    """

    def __init__(
        self,
        heartbeats: BeatSource,
        clock: Clock,
        log: FilteringBoundLogger,
        *,
        compare: Callable[[], Awaitable[object]],
        within_s: float = BEAT_WITHIN_S,
    ) -> None:
        self._heartbeats = heartbeats
        self._clock = clock
        self._log = log
        self._compare = compare
        self._within_s = within_s
        self._health: StoreHealth | None = None
        self._beating: asyncio.Task[StoreHealth] | None = None
        self.rows_lost = 0
        self.clock_difference_s: float | None = None

    async def health(self) -> StoreHealth:
        """Gives what the newest heartbeat showed, after a new one where it is older than REUSED_S; raises nothing."""
        if self._health is not None and self._clock.boot_s() - self._health.seen_at_s < REUSED_S:
            return self._health
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat())
            self._beating.add_done_callback(self._ended)
        done, _ = await asyncio.wait({self._beating}, timeout=self._within_s)
        if not done:
            self._note(StoreFault.TIMEOUT)
        return self._health or StoreHealth(fault=StoreFault.OTHER, seen_at_s=self._clock.boot_s())

    @asynccontextmanager
    async def kept(self, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> AsyncIterator[None]:
        """Beats while the context is open, and removes the row at its end; ``pause`` waits between two heartbeats."""
        keeping = asyncio.create_task(self._keep(pause))
        try:
            yield
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(self._within_s):
                    await self._heartbeats.end()
            if self._beating is not None:
                self._beating.cancel()
                await asyncio.wait({self._beating})

    async def _keep(self, pause: Callable[[float], Awaitable[None]]) -> None:
        while True:
            await self.health()
            await pause(BEAT_EVERY_S)

    async def _beat(self) -> StoreHealth:
        began_ms = self._clock.now_ms()
        try:
            beat = await self._heartbeats.beat(began_ms)
        except StoreError as error:
            return self._note(error.fault, str(error))
        health = self._note(None)
        self._measure(beat, (began_ms + self._clock.now_ms()) / 2)
        if beat.is_own_lost:
            self.rows_lost += 1
            self._log.error("own_rows_gone")
            with suppress(StoreError):
                await self._compare()
        return health

    def _note(self, fault: StoreFault | None, reason: str = "no answer in time") -> StoreHealth:
        before = None if self._health is None else self._health.fault
        if fault is not None and fault is not before:
            self._log.error("store_not_writable", fault=fault, reason=reason)
        elif fault is None and before is not None:
            self._log.info("store_writable_again")
        self._health = StoreHealth(fault=fault, seen_at_s=self._clock.boot_s())
        return self._health

    def _measure(self, beat: Beat, middle_ms: float) -> None:
        self.clock_difference_s = None if beat.database_ms is None else (beat.database_ms - middle_ms) / 1000

    def _ended(self, beating: "asyncio.Task[StoreHealth]") -> None:
        self._beating = None
        if not beating.cancelled() and (error := beating.exception()) is not None:
            self._log.error("heartbeat_failed", error=type(error).__qualname__)
            self._note(StoreFault.OTHER, "a fault of the program")
