"""Who waits for which operation, so that those who wait hear of a change at once and the store is asked rarely.

A change made by this process is told (``tell``). One made by another is seen when somebody looks: of those who wait
for the same operation one looks at a time, each POLL_EVERY_S.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from payrelay.core.payments.operation import OPEN_STATES, Operation, State
from payrelay.runtime.hooks import Hooks

AWAITED: Final = OPEN_STATES - {State.NEEDS_ATTENTION}
"""What may change soon without anybody's doing; a person's decision is not waited for."""
WAITERS_MAX: Final = 1_000
"""Requests that are held at once; each has a connection, and costs the store up to one read in POLL_EVERY_S."""
POLL_EVERY_S: Final = 1.0
"""Between two looks at the store for one operation: each is one read by its primary key."""


class HeldResponse:
    """Those who wait for one operation, as long as there is one of them."""

    __slots__ = ("_over", "_poll_every_s", "_polls_again_s", "waiting")

    def __init__(self, poll_every_s: float) -> None:
        self.waiting = 0
        self._poll_every_s = poll_every_s
        self._polls_again_s = float("-inf")
        self._over = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """True when nothing more is to be waited for."""
        return self._over.is_set()

    def end(self) -> None:
        """Lets all of them go on."""
        self._over.set()

    def takes_turn(self) -> bool:
        """True for the one who is to look at the store now."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._polls_again_s:
            return False
        self._polls_again_s = now_s + self._poll_every_s
        return True

    async def pause(self) -> None:
        """Waits until it is time to look again, or the vigil is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), self._poll_every_s)


class HeldResponses:
    """The vigils by operation; there are at most ``limit`` who wait."""

    def __init__(self, *, limit: int = WAITERS_MAX, poll_every_s: float = POLL_EVERY_S) -> None:
        self._limit = limit
        self._poll_every_s = poll_every_s
        self._vigils: dict[str, HeldResponse] = {}
        self._count = 0
        self._is_closed = False

    @property
    def count(self) -> int:
        """How many wait now."""
        return self._count

    @contextmanager
    def slot(self, operation_id: str) -> Iterator[HeldResponse | None]:
        """Gives the vigil for an operation as long as the context is open; None where there is no room, or no time."""
        if self._is_closed or self._count >= self._limit:
            yield None
            return
        vigil = self._vigils.setdefault(operation_id, HeldResponse(self._poll_every_s))
        vigil.waiting += 1
        self._count += 1
        try:
            yield vigil
        finally:
            self._count -= 1
            vigil.waiting -= 1
            if vigil.waiting == 0:
                del self._vigils[operation_id]

    def tell(self, operation: Operation) -> None:
        """Ends the vigil for an operation that has come to where nothing more is awaited."""
        vigil = self._vigils.get(operation.id)
        if vigil is not None and operation.state not in AWAITED:
            vigil.end()

    def close(self) -> None:
        """Ends all vigils, and begins none any more: the program is about to stop."""
        self._is_closed = True
        for vigil in self._vigils.values():
            vigil.end()

    def told_by(self, hooks: Hooks) -> Hooks:
        """Gives the same watch, which tells the waiters too."""
        return replace(hooks, operation_changed=_both(hooks.operation_changed, self.tell))


def _both(first: Callable[[Operation], None], second: Callable[[Operation], None]) -> Callable[[Operation], None]:
    def tell(operation: Operation) -> None:
        first(operation)
        second(operation)

    return tell
