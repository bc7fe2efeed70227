"""Who waits for a place, and who is next: by worth, then by arrival, and settling is never starved."""

import asyncio
from collections import deque
from enum import IntEnum
from typing import Final

from payrelay.core.calls import CancelSubscription, Effect, Refund, Void
from payrelay.core.gateways.permits import PermitGrant

RESOLUTION_SHARE: Final = 10
"""While settling waits, every so many places one goes to it: an outage leaves much to be looked for, and a shop that
uses up its budget day and night would never hear what became of it."""


class Priority(IntEnum):
    """What a call is worth; the smaller number is served first."""

    TOKEN = 0
    """Whoever waits for a place needs a token on it."""
    CHARGE = 1
    """Charges, authorizations, captures and retries: somebody stands at a till."""
    GIVE_BACK = 2
    """Refunds, releases and cancellations."""
    RESOLUTION = 3
    READ = 4


def priority_of(call: Effect) -> Priority:
    """Says what an effect is worth."""
    return Priority.GIVE_BACK if isinstance(call, Refund | Void | CancelSubscription) else Priority.CHARGE


class Waiter:
    """One who waits; ``granted`` becomes what they get, with the time at which it was asked for.

    Attributes:
        until_s: after that a place is of no use to them.
        is_patient: whether they wait where no place is free now.
    """

    __slots__ = ("granted", "is_patient", "priority", "until_s")

    def __init__(self, priority: Priority, until_s: float | None, now_s: float) -> None:
        self.priority = priority
        self.is_patient = until_s is not None and until_s > now_s
        self.until_s = until_s if until_s is not None and self.is_patient else float("inf")
        self.granted: asyncio.Future[tuple[PermitGrant, float] | None] = asyncio.get_running_loop().create_future()


class PermitQueue:
    """Those who wait."""

    def __init__(self) -> None:
        self._waiters: dict[Priority, deque[Waiter]] = {priority: deque() for priority in Priority}
        self._since_resolution = 0

    def __len__(self) -> int:
        return sum(map(len, self._waiters.values()))

    def push(self, waiter: Waiter) -> None:
        """Puts one behind all of the same worth."""
        self._waiters[waiter.priority].append(waiter)

    def pop(self, now_s: float) -> Waiter | None:
        """Takes out the one who gets the next place; whose time is over, while the machine slept, gets None."""
        while (waiters := self._next()) is not None:
            waiter = waiters.popleft()
            if waiter.granted.done():
                continue
            if waiter.until_s < now_s:
                waiter.granted.set_result(None)
                continue
            self._since_resolution = 0 if waiter.priority is Priority.RESOLUTION else self._since_resolution + 1
            return waiter
        return None

    def remove(self, waiter: Waiter) -> None:
        """Takes out one who goes away."""
        waiters = self._waiters[waiter.priority]
        if waiter in waiters:
            waiters.remove(waiter)

    def take_out(self, *, is_patient: bool) -> list[Waiter]:
        """Takes out all who can wait, or all who can't."""
        found: list[Waiter] = []
        for waiters in self._waiters.values():
            chosen = [waiter for waiter in waiters if waiter.is_patient is is_patient]
            for waiter in chosen:
                waiters.remove(waiter)
            found += chosen
        return found

    def priority(self) -> Priority | None:
        """Tells what the worthiest of those who wait is worth; None where nobody waits."""
        return next((priority for priority, waiters in self._waiters.items() if waiters), None)

    def _next(self) -> deque[Waiter] | None:
        resolution = self._waiters[Priority.RESOLUTION]
        if resolution and self._since_resolution >= RESOLUTION_SHARE:
            return resolution
        return next((waiters for waiters in self._waiters.values() if waiters), None)
