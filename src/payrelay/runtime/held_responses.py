"""Holds responses until an operation has its outcome or needs an operator.

A change by this process ends the wait at once (``notify``). A change by another process is seen at the next read: of
all requests that wait for one operation, one reads the store each POLL_EVERY_S.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from payrelay.core.payments.operation import AWAITS_OPERATOR, OPEN_STATES, Operation

HELD_STATES: Final = OPEN_STATES - AWAITS_OPERATOR
"""States for which a response is held, because they may soon end. No response waits for an operator's decision."""
WAITERS_MAX: Final = 1_000
"""Responses that are held at once; each has a connection, and costs the store up to one read in POLL_EVERY_S."""
POLL_EVERY_S: Final = 1.0
"""Between two reads of one operation, each by its primary key."""


class HeldResponse:
    """The response to all requests that wait for one operation."""

    __slots__ = ("_over", "_poll_every_s", "_polls_again_s", "waiting")

    def __init__(self, poll_every_s: float) -> None:
        self.waiting = 0
        self._poll_every_s = poll_every_s
        self._polls_again_s = float("-inf")
        self._over = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """True when the wait is over."""
        return self._over.is_set()

    def end(self) -> None:
        """Ends the wait of all requests."""
        self._over.set()

    def takes_turn(self) -> bool:
        """True for the request that is to read the store now."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._polls_again_s:
            return False
        self._polls_again_s = now_s + self._poll_every_s
        return True

    async def pause(self) -> None:
        """Waits until it is time to read again, or the wait is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), self._poll_every_s)


class HeldResponses:
    """The held responses by operation; at most ``limit`` requests wait."""

    def __init__(self, *, limit: int = WAITERS_MAX, poll_every_s: float = POLL_EVERY_S) -> None:
        self._limit = limit
        self._poll_every_s = poll_every_s
        self._by_operation: dict[str, HeldResponse] = {}
        self._count = 0
        self._is_closed = False

    @property
    def count(self) -> int:
        """How many requests wait now."""
        return self._count

    @contextmanager
    def slot(self, operation_id: str) -> Iterator[HeldResponse | None]:
        """Holds a response for an operation while the context is open; None at a stop, or where no slot is free."""
        if self._is_closed or self._count >= self._limit:
            yield None
            return
        held = self._by_operation.setdefault(operation_id, HeldResponse(self._poll_every_s))
        held.waiting += 1
        self._count += 1
        try:
            yield held
        finally:
            self._count -= 1
            held.waiting -= 1
            if held.waiting == 0:
                del self._by_operation[operation_id]

    def notify(self, operation: Operation) -> None:
        """Ends the wait for an operation that has its outcome, or that needs an operator."""
        held = self._by_operation.get(operation.id)
        if held is not None and operation.state not in HELD_STATES:
            held.end()

    def close(self) -> None:
        """Ends all waits, and begins none any more: the process is about to stop."""
        self._is_closed = True
        for held in self._by_operation.values():
            held.end()
