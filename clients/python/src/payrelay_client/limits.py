"""The one retry rule: how long a call goes on, and how long it pauses. Pure but for the drawn jitter."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

PAUSE_SHARE_MIN: Final = 0.5
"""A pause is drawn between this share of its length and all of it, so that clients don't come back together."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Why a client pauses.

    Attributes:
        reason: a code of the service's, or ``no_answer``, ``time_out``, ``unreadable_answer``,
            ``no_credential``.
        seconds: how long it pauses.
        tries: how often the request was sent so far.
        request_id: finds the last request in the service's log.
        operation_id: the operation that is waited for, where one is known.
    """

    reason: str
    seconds: float
    tries: int
    request_id: str | None = None
    operation_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How often and how long a client tries; all times are in seconds.

    Attributes:
        tries: how often one request is sent at most.
        timeout_s: how long one request may take, its body included.
        total_s: how long a call may take in all, with its pauses and with following.
        wait_s: for how long the service is asked to hold an answer until the outcome is known; 0 for not at all.
        pause_s, pause_max_s: the first pause, and the longest one.
        draw: gives a number from 0 to 1 for the jitter.
    """

    tries: int = 6
    timeout_s: float = 60
    total_s: float = 120
    wait_s: int = 20
    pause_s: float = 1
    pause_max_s: float = 30
    draw: Callable[[], float] = field(default=random.random, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.tries < 1 or min(self.timeout_s, self.total_s, self.pause_max_s) <= 0 or self.pause_s < 0:
            raise ValueError("tries must be at least 1, and times must be greater than 0")
        if not 0 <= self.wait_s <= 60:  # noqa: PLR2004 - the service's own limit
            raise ValueError("wait_s must be 0 to 60")


class Budget:
    """What is left of one call's limits, by the clock that is given."""

    def __init__(self, limits: Limits, now_s: float) -> None:
        self.limits = limits
        self.tries = 0
        self.is_in_doubt = False
        """Whether a send of this call, or an earlier one of the same payment, may have been carried out."""
        self._ends_s = now_s + limits.total_s

    def left_s(self, now_s: float) -> float:
        """The seconds until the call must end; 0 where it must end now."""
        return max(0.0, self._ends_s - now_s)

    def pause_s(self, count: int, retry_after_s: float | None, now_s: float) -> float | None:
        """The pause after so many sends, no less than ``retry_after_s``; None where it would last too long."""
        longest = min(self.limits.pause_max_s, self.limits.pause_s * 2 ** min(count - 1, 32))
        share = PAUSE_SHARE_MIN + (1 - PAUSE_SHARE_MIN) * self.limits.draw()
        pause = max(longest * share, retry_after_s or 0.0)
        return pause if pause < self.left_s(now_s) else None
