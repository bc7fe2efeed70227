"""Leaves a gateway that fails alone for a while: whoever comes then is refused before anything is stored.

Rules:

1. It shuts when enough calls ended lately and half of them failed. One failure shuts nothing.
2. While it is shut nothing goes out but one probe at a time, and that only after a pause, which doubles.
3. A probe that is answered opens it. Calls that were under way when it shut prove nothing.
4. Who changes nothing goes first: an effect is the probe only where nobody else came for a moment.
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
"""With half of so many calls failed in so many seconds the gateway is no longer tried by everybody."""
PAUSE_S: Final = 10.0
PAUSE_S_MAX: Final = 60.0
"""Long enough to spare the gateway, short enough that its return is noticed within a minute."""
EFFECT_TRIALS_AFTER_S: Final = 2.0
"""How long an effect leaves the probing to reads and settling."""


class Ending(StrEnum):
    """What a call's end says of the gateway, whatever it says of the call."""

    ANSWERED = "answered"
    """It works: also where it declines, refuses, or doesn't let us in."""
    FAILED = "failed"
    """It didn't come to a reply, or to one that nobody can read."""
    BLOCKED = "blocked"
    """It takes no more calls for now (429)."""
    NOTHING = "nothing"
    """It says nothing: we didn't get so far."""


class CircuitOpen(msgspec.Struct, frozen=True):
    """Why there is no call now, and when to come again."""

    retry_after_s: int
    cause: str


class Admission(StrEnum):
    """Whether somebody may go on to ask for a place."""

    FREE = "free"
    TRIAL = "probe"
    REJECTED = "barred"


class CircuitBreaker:
    """Decides whether the gateway is called. ``trial_s`` is the longest that a probe takes."""

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
        """True when only probes go out."""
        return self._trials_from_s is not None

    def refusal(self, priority: Priority) -> CircuitOpen | None:
        """Tells why a call may not be made now; None where it may, be it as the probe."""
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
        """Lets one go on, or not; who is the probe ends that with ``trial_ended`` or ``abandon``."""
        if self._trials_from_s is None:
            return Admission.FREE
        if priority is Priority.TOKEN:
            # A token is fetched for the probe, before it; that the gateway gives tokens doesn't say that it works.
            return Admission.FREE if self._clock.boot_s() >= self._trials_from_s else Admission.REJECTED
        if self.refusal(priority) is not None:
            return Admission.REJECTED
        self._trial_until_s = self._clock.boot_s() + self._trial_s
        return Admission.TRIAL

    def note(self, ending: Ending, cause: str) -> bool:
        """Counts a call that has ended and was no probe; gives True when it shut at this."""
        if ending is Ending.NOTHING or self._trials_from_s is not None:
            return False
        return self._count(has_failed=ending is not Ending.ANSWERED, cause=cause)

    def trial_ended(self, ending: Ending, cause: str) -> None:
        """Learns what the probe came to, or that no token was to be had for it."""
        if self._trials_from_s is None:
            return
        self._trial_until_s = 0.0
        if ending is Ending.ANSWERED:
            self._trials_from_s = None
        elif ending is not Ending.NOTHING:
            self._pause_s = min(self._pause_s * 2, PAUSE_S_MAX)
            self._open(cause)

    def abandon(self) -> None:
        """The probe came to nothing: another may be made."""
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
