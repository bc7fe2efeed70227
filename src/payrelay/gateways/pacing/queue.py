"""The queue of callers that wait for a permit: by priority, then by arrival, with a share reserved for resolution."""

import asyncio
from collections import deque
from enum import IntEnum
from typing import Final

from payrelay.core.calls import CancelSubscription, Effect, Refund, Void
from payrelay.core.gateways.permit_grants import PermitGrant

RESOLUTION_SHARE: Final = 10
"""While resolution waits, one permit goes to it after so many others. An outage leaves many operations to resolve, and
a shop may use its whole budget day and night."""


class Priority(IntEnum):
    """The priority of a call; the smaller number is served first."""

    TOKEN = 0
    """An access token, for which callers that already have their turn wait."""
    CHARGE = 1
    """Charges, authorizations, captures and retries: a customer is waiting."""
    GIVE_BACK = 2
    """Refunds, voids and cancellations."""
    RESOLUTION = 3
    READ = 4


def priority_of(call: Effect) -> Priority:
    """Gives the priority of an effect."""
    return Priority.GIVE_BACK if isinstance(call, Refund | Void | CancelSubscription) else Priority.CHARGE


class Waiter:
    """A caller that waits. ``granted`` becomes its grant with the time at which the budget was asked, or None.

    Attributes:
        until_s: the time after which the caller has no use for a permit.
        is_patient: whether the caller waits where no permit is free now.
    """

    __slots__ = ("granted", "is_patient", "priority", "until_s")

    def __init__(self, priority: Priority, until_s: float | None, now_s: float) -> None:
        self.priority = priority
        self.is_patient = until_s is not None and until_s > now_s
        self.until_s = until_s if until_s is not None and self.is_patient else float("inf")
        self.granted: asyncio.Future[tuple[PermitGrant, float] | None] = asyncio.get_running_loop().create_future()


class PermitQueue:
    """The callers that wait for a permit."""

    def __init__(self) -> None:
        self._waiters: dict[Priority, deque[Waiter]] = {priority: deque() for priority in Priority}
        self._since_resolution = 0

    def __len__(self) -> int:
        return sum(map(len, self._waiters.values()))

    def push(self, waiter: Waiter) -> None:
        """Adds a caller behind all of its priority."""
        self._waiters[waiter.priority].append(waiter)

    def pop(self, now_s: float) -> Waiter | None:
        """Removes the caller that gets the next permit. A caller whose time is over gets None, and is passed over."""
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
        """Removes a caller that no longer waits."""
        waiters = self._waiters[waiter.priority]
        if waiter in waiters:
            waiters.remove(waiter)

    def take_out(self, *, is_patient: bool) -> list[Waiter]:
        """Removes all callers that wait where no permit is free, or all that don't."""
        found: list[Waiter] = []
        for waiters in self._waiters.values():
            chosen = [waiter for waiter in waiters if waiter.is_patient is is_patient]
            for waiter in chosen:
                waiters.remove(waiter)
            found += chosen
        return found

    def priority(self) -> Priority | None:
        """Gives the highest priority among the callers that wait; None where no caller waits."""
        return next((priority for priority, waiters in self._waiters.items() if waiters), None)

    def _next(self) -> deque[Waiter] | None:
        resolution = self._waiters[Priority.RESOLUTION]
        if resolution and self._since_resolution >= RESOLUTION_SHARE:
            return resolution
        return next((waiters for waiters in self._waiters.values() if waiters), None)
