"""Shares the results of control queries among the requests of a short time."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Final

from payrelay.clock import Clock
from payrelay.core.payments.proof import Control

GOOD_FOR_S: Final = 30
"""How long a control query vouches for the gateway's search."""
BAD_FOR_S: Final = 5
"""How long one without a good result stands. A caller that asks on and on can't use up the budget with it."""


class ControlQueries:
    """Makes at most one control query of a merchant at a time, and keeps its result for a short time."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[Control, float]] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def result(self, merchant: str, clock: Clock, make: Callable[[], Awaitable[Control]]) -> Control:
        """Gives the result of the merchant's newest control query, and makes one where that is too old."""
        async with self._turns[merchant]:
            control, until_s = self._newest.get(merchant, (Control.NOT_FOUND, float("-inf")))
            if clock.boot_s() >= until_s:
                began_s = clock.boot_s()  # the answer is of this moment, however late it comes
                control = await make()
                kept_s = GOOD_FOR_S if control is Control.FOUND else BAD_FOR_S
                self._newest[merchant] = control, began_s + kept_s
            return control
