"""The budget of calls to one gateway account: never more than so many in any window, by the gateway's own clock.

Rules:

1. A *place* is the right to make one call. There are as many as the limit says.
2. A place that was used is free again one window after the reply or time-out. The gateway counts a call somewhere
   between the grant and that moment, so two calls on the same place are at least a window apart there, however long
   either was under way.
3. A place on which nothing was sent goes back at once.
4. Whoever waits is served by priority, and in the order of arrival within one. Nobody overtakes a waiter.
"""

import asyncio
import heapq
import re
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from payrelay.clock import Clock

TOKEN_PRIORITY: Final = -1
"""Before everything else: whoever waits for a place needs a token on it."""
EFFECT_PRIORITY: Final = 0
SETTLE_PRIORITY: Final = 1
READ_PRIORITY: Final = 2

CALLS_MIN: Final = 1
"""Enough for one after the other: the access token in one window, the call that needs it in the next."""
CALLS_MAX: Final = 1_000_000
WINDOW_S_MAX: Final = 3_600
WAITERS_MAX: Final = 10_000
"""Whoever comes beyond these is told at once that there is no room; each of them holds a request's memory."""

_LIMIT: Final = re.compile(r"([0-9]{1,7})/([0-9]{1,4})s")
_OFF: Final = "off"


class Limit(msgspec.Struct, frozen=True):
    """At most ``calls`` in any window of ``window_s`` seconds."""

    calls: int
    window_s: float

    @classmethod
    def parse(cls, text: str) -> "Limit | None":
        """Reads a limit such as ``20/10s``; ``off`` is None, no limit. Raises ValueError that says what is wrong."""
        if text.strip().lower() == _OFF:
            return None
        match = _LIMIT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"must look like 20/10s (calls and seconds) or be off, not {text!r}")
        calls, window_s = int(match[1]), int(match[2])
        if not CALLS_MIN <= calls <= CALLS_MAX:
            raise ValueError(f"must allow {CALLS_MIN} to {CALLS_MAX} calls, not {calls}")
        if not 1 <= window_s <= WINDOW_S_MAX:
            raise ValueError(f"must have a window of 1 to {WINDOW_S_MAX} seconds, not {window_s}")
        return cls(calls, float(window_s))


class Alarm(Protocol):
    """What a timer gives back."""

    def cancel(self) -> None:
        """Makes it not ring."""


Timer = Callable[[float, Callable[[], None]], Alarm]
"""Calls a function after so many seconds."""


def loop_timer(delay_s: float, ring: Callable[[], None]) -> Alarm:
    """Rings on the running event loop."""
    return asyncio.get_running_loop().call_later(delay_s, ring)


class Place:
    """The right to make one call. Whoever holds it ends it, once, with ``done`` or ``release_unused``."""

    __slots__ = ("_governor",)

    def __init__(self, governor: "Governor | None") -> None:
        self._governor = governor

    def done(self) -> None:
        """The call has been answered or timed out: its window begins now. May be repeated; the first word counts."""
        governor, self._governor = self._governor, None
        if governor is not None:
            governor._used()  # noqa: SLF001, a place is a part of its governor

    def release_unused(self) -> None:
        """Nothing was sent: it is free at once. May be repeated; the first word counts."""
        governor, self._governor = self._governor, None
        if governor is not None:
            governor._unused()  # noqa: SLF001, a place is a part of its governor


class _Waiter(msgspec.Struct, order=True):
    priority: int
    number: int
    until_s: float
    granted: "asyncio.Future[Place | None]"


class Governor:
    """Gives out the places of one gateway account to this process.

    Args:
        limit: how many; None gives a place to everybody at once.
        clock: tells the time; ``boot_s`` alone is used.
        timer: wakes the waiters; another one lets a test move time by hand.
    """

    def __init__(self, limit: Limit | None, clock: Clock, *, timer: Timer = loop_timer) -> None:
        self._limit = limit
        self._clock = clock
        self._timer = timer
        self._held = 0
        self._resting: deque[float] = deque()
        self._waiters: list[_Waiter] = []
        self._arrivals = 0
        self._alarm: Alarm | None = None

    @property
    def limit(self) -> Limit | None:
        """What it keeps to."""
        return self._limit

    def has_room(self) -> bool:
        """True when a place could be given at this moment to somebody who waits first in line."""
        if self._limit is None:
            return True
        now_s = self._clock.boot_s()
        while self._resting and self._resting[0] <= now_s:
            self._resting.popleft()
        return self._held + len(self._resting) < self._limit.calls

    def take_now(self) -> Place | None:
        """Gives a place if there is room and nobody waits for one."""
        if self._limit is None:
            return Place(None)
        self._serve()
        if self._waiters or not self.has_room():
            return None
        return self._grant()

    async def take(self, until_s: float, *, priority: int = EFFECT_PRIORITY) -> Place | None:
        """Gives a place, or None where none came until then (by ``clock.boot_s``). The smaller priority is first."""
        place = self.take_now()
        wait_s = until_s - self._clock.boot_s()
        if place is not None or wait_s <= 0 or len(self._waiters) >= WAITERS_MAX:
            return place
        self._arrivals += 1
        waiter = _Waiter(priority, self._arrivals, until_s, asyncio.get_running_loop().create_future())
        heapq.heappush(self._waiters, waiter)
        self._set_alarm()
        deadline = self._timer(wait_s, lambda: self._give_up(waiter))
        try:
            return await waiter.granted
        except asyncio.CancelledError:
            self._forget(waiter)
            raise
        finally:
            deadline.cancel()

    def _grant(self) -> Place:
        self._held += 1
        return Place(self)

    def _used(self) -> None:
        self._held -= 1
        if self._limit is not None:
            self._resting.append(self._clock.boot_s() + self._limit.window_s)
        self._serve()

    def _unused(self) -> None:
        self._held -= 1
        self._serve()

    def _serve(self) -> None:
        """Gives what room there is to those who wait, first in line first."""
        while self._waiters and (self._is_over(self._waiters[0]) or self.has_room()):
            waiter = heapq.heappop(self._waiters)
            if not waiter.granted.done():
                waiter.granted.set_result(None if self._is_over(waiter) else self._grant())
        self._set_alarm()

    def _is_over(self, waiter: _Waiter) -> bool:
        """True when a waiter has nothing more to wait for: given up, or its time is over while the machine slept."""
        return waiter.granted.done() or waiter.until_s < self._clock.boot_s()

    def _set_alarm(self) -> None:
        """Rings when the next place becomes free, as long as somebody waits; without one no timer runs."""
        if not self._waiters or not self._resting:
            return
        if self._alarm is None:
            self._alarm = self._timer(max(0.0, self._resting[0] - self._clock.boot_s()), self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._serve()

    def _give_up(self, waiter: _Waiter) -> None:
        if not waiter.granted.done():
            waiter.granted.set_result(None)
            self._remove(waiter)

    def _forget(self, waiter: _Waiter) -> None:
        """Takes out a waiter that was cancelled; a place that it was given in the same moment goes back."""
        if waiter.granted.done() and not waiter.granted.cancelled():
            place = waiter.granted.result()
            if place is not None:
                place.release_unused()
        self._remove(waiter)

    def _remove(self, waiter: _Waiter) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
            heapq.heapify(self._waiters)
