"""Knows the paused accounts: they get no new effects, while reads, resolution and repeats of finished requests go on.

Each process reads the pauses from the store, at most PAUSES_KEPT_MS after an operator changed them.
"""

import asyncio
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.gateways.pauses import Pause
from payrelay.errors import Code, Refusal
from payrelay.store.gateways.pauses import Pauses

PAUSES_KEPT_MS: Final = 1_000
"""How long an account may still accept effects after it was paused, and still refuse them after it was resumed."""
RETRY_AFTER_S: Final = 30
"""A pause lasts minutes; a client that tries every half minute finds its end soon enough."""


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
            # The reason is for operators only, and may name other clients.
            raise Refusal(
                Code.UNAVAILABLE,
                "new operations on this account are paused by an operator; this request was not sent",
                retry_after_s=RETRY_AFTER_S,
            )

    async def is_paused(self, account: str) -> bool:
        """Tells whether an account is paused. Raises StoreUnavailable where that can't be known."""
        await self.refresh()
        return account in self._paused

    async def refresh(self) -> None:
        """Reads the pauses, unless they were read less than PAUSES_KEPT_MS ago; logs changes.

        Callers at one moment share one read. Raises StoreUnavailable.
        """
        now_s = self._clock.boot_s()
        if self._read_at_s is not None and (now_s - self._read_at_s) * 1000 < PAUSES_KEPT_MS:
            return
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(now_s))
            self._reading.add_done_callback(self._have_read)
        # A client that goes away cancels its wait, not the read that others wait for.
        await asyncio.shield(self._reading)

    def _have_read(self, reading: "asyncio.Task[None]") -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # retrieved here too, because all waiting clients may be gone

    async def _read(self, now_s: float) -> None:
        paused = {pause.account: pause for pause in await self._pauses.list()}
        before, self._paused, self._read_at_s = self._paused, paused, now_s
        for name in sorted(paused.keys() - before.keys()):
            pause = paused[name]
            self._log.warning("account_paused", account=name, operator=pause.operator, reason=pause.reason)
        for name in sorted(before.keys() - paused.keys()):
            self._log.warning("account_resumed", account=name)
