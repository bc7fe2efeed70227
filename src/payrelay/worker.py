"""Background upkeep while the service runs: takes up what was left behind, and gives lapsed claims back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from payrelay.errors import StoreError
from payrelay.operations.recover import recover
from payrelay.operations.relay import Relay

EVERY_S: Final = 5.0
"""How long a row may be left behind unnoticed; the two queries are answered from indexes."""
CLAIMS_MAX: Final = 500
"""Of one round, so that it never holds the store for long; the rest is for the next."""


@asynccontextmanager
async def working(relay: Relay, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> AsyncIterator[None]:
    """Works as long as the context is open; ``pause`` waits between two rounds."""
    work = asyncio.create_task(_work(relay, pause))
    try:
        yield
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


async def _work(relay: Relay, pause: Callable[[float], Awaitable[None]]) -> None:
    while True:
        await pause(EVERY_S)
        try:
            await tend(relay)
        except StoreError as error:
            relay.log.warning("upkeep_failed", reason=str(error))
        except Exception:  # a mistake in the upkeep must not end it, and with it the next round
            relay.log.exception("upkeep_failed")


async def tend(relay: Relay) -> None:
    """One round. Other processes may tend the same store; what they were quicker with is left alone.

    Only rows whose time is over are taken up, on the embedded database too: younger ones are being worked on here.
    """
    await recover(relay, is_sole_owner=False)
    await relay.journal.prune(relay.clock.now_ms(), CLAIMS_MAX)
