"""Pauses an account: no new effects on it, while reads, settling and repeats of finished requests go on.

Each process learns of it by reading the store again, at most PAUSES_KEPT_MS after it was done.
"""

import asyncio
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.gateways.pauses import Pause
from payrelay.errors import Code, Refusal
from payrelay.store.gateways.pauses import Pauses

PAUSES_KEPT_MS: Final = 1_000
"""How long a paused account may still take a new effect, and one that goes on refuse it."""
RETRY_AFTER_S: Final = 30
"""A pause lasts minutes; clients that ask every half minute find its end soon enough."""


class PausedAccounts:
    """Knows which accounts are paused."""

    def __init__(self, pauses: Pauses, clock: Clock, log: FilteringBoundLogger) -> None:
        self._pauses = pauses
        self._clock = clock
        self._log = log
        self._paused: dict[str, Pause] = {}
        self._read_at_s: float | None = None
        self._reading: asyncio.Task[None] | None = None

    async def require_open(self, account: str) -> None:
        """Raises Refusal (unavailable) where the account is paused, StoreUnavailable where that can't be known."""
        if await self.is_paused(account):
            # The reason is the operators' own business, and may name other clients.
            raise Refusal(
                Code.UNAVAILABLE,
                "new operations on this account are paused by an operator; nothing was sent",
                retry_after_s=RETRY_AFTER_S,
            )

    async def is_paused(self, account: str) -> bool:
        """Tells whether an account is paused. Raises StoreUnavailable where that can't be known."""
        await self.refresh()
        return account in self._paused

    async def refresh(self) -> None:
        """Reads the store again unless that was done less than PAUSES_KEPT_MS ago; what has changed is logged.

        However many ask for it at once, it is read once. Raises StoreUnavailable.
        """
        now_s = self._clock.boot_s()
        if self._read_at_s is not None and (now_s - self._read_at_s) * 1000 < PAUSES_KEPT_MS:
            return
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(now_s))
            self._reading.add_done_callback(self._have_read)
        # Whoever goes away ends this wait, and not the reading that others wait for.
        await asyncio.shield(self._reading)

    def _have_read(self, reading: "asyncio.Task[None]") -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # looked at here too, because those who waited may all be gone

    async def _read(self, now_s: float) -> None:
        paused = {pause.account: pause for pause in await self._pauses.list()}
        before, self._paused, self._read_at_s = self._paused, paused, now_s
        for name in sorted(paused.keys() - before.keys()):
            pause = paused[name]
            self._log.warning("account_paused", account=name, operator=pause.operator, reason=pause.reason)
        for name in sorted(before.keys() - paused.keys()):
            self._log.warning("account_resumed", account=name)
