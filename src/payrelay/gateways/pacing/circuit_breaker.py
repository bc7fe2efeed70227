"""Stops calling a gateway that fails: calls are rejected before anything is stored, until a trial call succeeds.

Rules:

1. The circuit breaker opens when enough calls ended in recent seconds and half of them failed. One failure never opens
   it.
2. While it is open, it lets one half-open trial through at a time, and only after a pause, which doubles with each
   failed trial.
3. A trial that the gateway answers closes it. Calls that were under way when it opened prove nothing.
4. Reads and status inquiries are preferred as trials. An effect becomes the trial only where none of them came for
   EFFECT_TRIALS_AFTER_S.
"""

import math
from collections import deque
from enum import StrEnum
from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.gateways.pacing.queue import Priority

ENDED_MIN: Final = 20
COUNTED_BACK_S: Final = 30
"""Where half of so many calls failed in so many seconds, the circuit breaker opens."""
PAUSE_S: Final = 10.0
PAUSE_S_MAX: Final = 60.0
"""Long enough to spare the gateway, short enough to notice its return within a minute."""
EFFECT_TRIALS_AFTER_S: Final = 2.0
"""How long effects leave the trial to reads and to resolution."""


class Ending(StrEnum):
    """What the end of a call says of the gateway, whatever it says of the call."""

    ANSWERED = "answered"
    """The gateway works, also where it declines, refuses, or rejects our credentials."""
    FAILED = "failed"
    """No reply came, or one that can't be read."""
    BLOCKED = "blocked"
    """The gateway takes no more calls for now (429)."""
    NOTHING = "nothing"
    """The end says nothing of the gateway, because the call didn't get that far."""


class CircuitOpen(msgspec.Struct, frozen=True):
    """The reason why the gateway isn't called now, and the seconds after which a caller may try again."""

    retry_after_s: int
    cause: str


class Admission(StrEnum):
    """Whether a call may go on to ask for a permit."""

    FREE = "free"
    TRIAL = "probe"
    REJECTED = "barred"


class CircuitBreaker:
    """Decides whether the gateway is called. ``trial_s`` is the longest that a trial takes."""

    def __init__(self, clock: Clock, trial_s: float) -> None:
        self._clock = clock
        self._trial_s = trial_s
        self._seconds: deque[list[int]] = deque(maxlen=COUNTED_BACK_S)  # second, ended, failed
        self._pause_s = PAUSE_S
        self._trials_from_s: float | None = None
        self._trial_until_s = 0.0
        self._cause = ""

    @property
    def is_open(self) -> bool:
        """True while only half-open trials are let through."""
        return self._trials_from_s is not None

    def open_circuit(self, priority: Priority) -> CircuitOpen | None:
        """Gives the reason why a call is rejected now; None where it may be made, as the trial perhaps."""
        if self._trials_from_s is None:
            return None
        now_s = self._clock.boot_s()
        wait_s = max(self._trials_from_s, self._trial_until_s) - now_s
        if priority in {Priority.CHARGE, Priority.GIVE_BACK}:
            wait_s = max(wait_s, self._trials_from_s + EFFECT_TRIALS_AFTER_S - now_s)
        if wait_s <= 0:
            return None
        return CircuitOpen(math.ceil(min(wait_s, self._pause_s + EFFECT_TRIALS_AFTER_S)), self._cause)

    def enter(self, priority: Priority) -> Admission:
        """Admits a call or rejects it. The caller of a trial ends it with ``trial_ended`` or ``abandon``."""
        if self._trials_from_s is None:
            return Admission.FREE
        if priority is Priority.TOKEN:
            # A trial needs a token first. That the gateway gives tokens doesn't prove that it works.
            return Admission.FREE if self._clock.boot_s() >= self._trials_from_s else Admission.REJECTED
        if self.open_circuit(priority) is not None:
            return Admission.REJECTED
        self._trial_until_s = self._clock.boot_s() + self._trial_s
        return Admission.TRIAL

    def note(self, ending: Ending, cause: str) -> bool:
        """Counts a call that has ended and was no trial; gives True when this opened the circuit breaker."""
        if ending is Ending.NOTHING or self._trials_from_s is not None:
            return False
        return self._count(has_failed=ending is not Ending.ANSWERED, cause=cause)

    def trial_ended(self, ending: Ending, cause: str) -> None:
        """Takes the result of the trial, or of the failure to get an access token for it."""
        if self._trials_from_s is None:
            return
        self._trial_until_s = 0.0
        if ending is Ending.ANSWERED:
            self._trials_from_s = None
        elif ending is not Ending.NOTHING:
            self._pause_s = min(self._pause_s * 2, PAUSE_S_MAX)
            self._open(cause)

    def abandon(self) -> None:
        """Ends a trial without a result: another one may be made."""
        self._trial_until_s = 0.0

    def _count(self, *, has_failed: bool, cause: str) -> bool:
        now_s = int(self._clock.boot_s())
        if not self._seconds or self._seconds[-1][0] != now_s:
            self._seconds.append([now_s, 0, 0])
        newest = self._seconds[-1]
        newest[1] += 1
        if not has_failed:
            return False
        newest[2] += 1
        lately = [second for second in self._seconds if second[0] > now_s - COUNTED_BACK_S]
        ended, failed = (sum(second[index] for second in lately) for index in (1, 2))
        if ended < ENDED_MIN or failed * 2 < ended:
            return False
        self._pause_s = PAUSE_S
        self._open(cause)
        return True

    def _open(self, cause: str) -> None:
        self._trials_from_s = self._clock.boot_s() + self._pause_s
        self._cause = cause
        self._seconds.clear()
