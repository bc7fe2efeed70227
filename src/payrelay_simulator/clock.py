"""The simulator's time, which can be moved forward and never goes back."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

from payrelay_simulator.errors import ControlError

# Sri Lanka has kept this offset without daylight saving since 2006, so no zone database is needed.
GATEWAY_ZONE = timezone(timedelta(hours=5, minutes=30), "Asia/Colombo")

# A hundred years in all: more than any card or subscription lives, far below what a datetime can hold.
ADVANCED_S_MAX = 100 * 366 * 24 * 3600.0

STANDING_START = datetime(2026, 9, 1, 6, 30, tzinfo=UTC)


class Clock:
    """Tells the time of the simulated gateway.

    `Clock.running()` follows the machine's clock; `Clock.standing()` moves only by `advance`, which makes a test
    depend on nothing but its own steps.
    """

    def __init__(self, start: datetime, elapsed_s: Callable[[], float]) -> None:
        self._start = start
        self._elapsed_s = elapsed_s
        self._advanced_s = 0.0

    @classmethod
    def running(cls) -> "Clock":
        """Return a clock that starts at the present and runs with the machine."""
        begun_s = time.monotonic()
        return cls(datetime.now(UTC), lambda: time.monotonic() - begun_s)

    @classmethod
    def standing(cls, start: datetime = STANDING_START) -> "Clock":
        """Return a clock that stands at `start` until it is advanced."""
        return cls(start, lambda: 0.0)

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return self._start + timedelta(seconds=self._elapsed_s() + self._advanced_s)

    def advance(self, seconds: float) -> None:
        """Move the time forward; a ControlError refuses a step back and more than a hundred years in all."""
        if not 0 <= seconds <= ADVANCED_S_MAX - self._advanced_s:
            raise ControlError("seconds", f"must be between 0 and {ADVANCED_S_MAX - self._advanced_s:.0f}")
        self._advanced_s += seconds


def gateway_date(moment: datetime) -> str:
    """Return the moment as the gateway prints it: its own zone, no zone named."""
    return moment.astimezone(GATEWAY_ZONE).strftime("%Y-%m-%d %H:%M:%S")
