"""Looks at the budget of each account now and then, so that the console can show how it was in the last hours.

Nothing is stored: each process has what it saw itself since it began, and no more than a day of it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from payrelay.clock import Clock
from payrelay.console.rules.trends import BudgetSample
from payrelay.core.gateways.permit_grants import BudgetSnapshot

EVERY_S: Final = 15.0
KEPT: Final = 5_760
"""Of each account: a day of one every quarter of a minute."""


class BudgetSamples:
    """What this process saw of the budgets.

    Args:
        snapshots: gives the budget of each account as it is now.
        clock: tells the time.
    """

    def __init__(self, snapshots: Callable[[], Mapping[str, BudgetSnapshot]], clock: Clock) -> None:
        self._snapshots = snapshots
        self._clock = clock
        self._by_account: dict[str, deque[BudgetSample]] = {}
        self._looking: asyncio.Task[None] | None = None

    def now(self) -> Mapping[str, BudgetSnapshot]:
        """Gives the budget of each account as it is now."""
        return self._snapshots()

    def of(self, account: str) -> tuple[BudgetSample, ...]:
        """Gives what was seen of an account's budget, the oldest first."""
        return tuple(self._by_account.get(account, ()))

    def look(self) -> None:
        """Looks once."""
        at_ms = self._clock.now_ms()
        for account, seen in self._snapshots().items():
            kept = self._by_account.setdefault(account, deque(maxlen=KEPT))
            kept.append(sample_of(seen, at_ms))

    def begin(self) -> None:
        """Begins to look, until ``end``."""
        self._looking = asyncio.get_running_loop().create_task(self._look_on())

    async def end(self) -> None:
        """Looks no more."""
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking

    async def _look_on(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(EVERY_S)


def sample_of(seen: BudgetSnapshot, at_ms: int) -> BudgetSample:
    """Gives what is kept of a budget as it is at a moment."""
    return BudgetSample(at_ms, seen.used, seen.waiting, seen.is_open)
