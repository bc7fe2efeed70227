"""A clock that is moved by hand, and gives the event loop its turns on the way."""

import asyncio
import heapq
import itertools
from collections.abc import Callable

from payrelay.clock import Clock

TURNS: int = 30
"""More turns of the event loop than anything takes that an alarm sets going, a commit of the store with it."""


class HandClock(Clock):
    """Stands still until it is moved; whatever was to ring by then rings, in order."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self._numbers = itertools.count()
        self._alarms: list[tuple[float, int, HandAlarm]] = []

    def now_ms(self) -> int:
        """Gives the same time as ``boot_s``, in milliseconds."""
        return int(self.now_s * 1_000)

    def boot_s(self) -> float:
        """Gives the time that it was moved to."""
        return self.now_s

    def timer(self, delay_s: float, ring: Callable[[], None]) -> "HandAlarm":
        """Rings when the clock is moved that far."""
        alarm = HandAlarm(ring)
        heapq.heappush(self._alarms, (self.now_s + delay_s, next(self._numbers), alarm))
        return alarm

    def move(self, by_s: float) -> None:
        """Moves on, stopping at each alarm on the way."""
        until_s = self.now_s + by_s
        while self._ring_next(until_s):
            pass
        self.now_s = until_s

    async def run(self, for_s: float) -> None:
        """Moves on; after each alarm whatever it set going goes on."""
        until_s = self.now_s + for_s
        await turns()
        while self._ring_next(until_s):
            await turns()
        self.now_s = until_s

    def _ring_next(self, until_s: float) -> bool:
        if not self._alarms or self._alarms[0][0] > until_s:
            return False
        self.now_s, _, alarm = heapq.heappop(self._alarms)
        alarm.ring()
        return True


class HandAlarm:
    """An alarm of a clock that is moved by hand."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self.ring = ring

    def cancel(self) -> None:
        """Makes it silent."""
        self.ring = lambda: None


async def turns() -> None:
    """Lets everything go on that can."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
