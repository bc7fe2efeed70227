"""Clears what is older than its period of retention, in small batches, and tells how far that has come.

Nothing is cleared while the database lacks commits, or a recovery is under way: what is old may be needed then.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from payrelay.core.database.incarnations import Incarnation
from payrelay.core.retention import Kept
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay
from payrelay.store.retention.clearing import BATCH, Clearing

IDLE_S: Final = 60.0
"""How long nothing is looked for after a batch that came to young data."""
CLEARED_IN_BATCHES: Final = (Kept.ANSWERS, Kept.CALLS, Kept.HISTORIES, Kept.NOTIFICATIONS)
"""Events have a job of their own, which ends with the deliveries."""
PAUSE_S: Final = 0.02
"""Between two rounds of a command: a service on the same database has its turn."""


class KindStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the clearing of one kind of data stands.

    Attributes:
        kind: what is kept.
        period_ms: how long; None for ever.
        oldest_ms: the time of the oldest data that the clearing has not come to; None where there is none.
        cleared: how many were cleared, ever.
        waiting: how many were passed over, such as operations that are open, and are tried again.
        ran_at_ms: when the last batch was cleared; None before the first.
    """

    kind: Kept
    period_ms: int | None
    oldest_ms: int | None
    cleared: int
    waiting: int
    ran_at_ms: int | None

    def overdue_ms(self, now_ms: int) -> int:
        """Gives by how much the oldest data is older than its period; 0 where it isn't."""
        if self.period_ms is None or self.oldest_ms is None:
            return 0
        return max(0, now_ms - self.oldest_ms - self.period_ms)


async def begin_clearing(relay: Relay) -> int:
    """Clears one batch of each kind that may have old data; returns how many were cleared. Raises StoreError."""
    now_s = relay.clock.boot_s()
    kinds = [
        kept
        for kept in CLEARED_IN_BATCHES
        if relay.clearing.periods.of(kept) is not None and relay.clearing.idle_until_s.get(kept, float("-inf")) <= now_s
    ]
    if not kinds or await relay.database.lost_commits.is_behind():
        return 0
    if (await relay.database.lost_commits.identity()).current.is_recovering:
        return 0
    cleared, done = await clear_round(relay.clearing, kinds, relay.clock.now_ms())
    relay.clearing.idle_until_s.update(dict.fromkeys(done, now_s + IDLE_S))
    return cleared


async def clear_round(
    clearing: Clearing, kinds: list[Kept], now_ms: int, *, limit: int = BATCH
) -> tuple[int, list[Kept]]:
    """Clears one batch of each kind; returns how many were cleared, and the kinds of which no more is old.

    Raises StoreError.
    """
    cleared, done = 0, []
    for kept in kinds:
        period_ms = clearing.periods.of(kept)
        if period_ms is None:
            done.append(kept)
            continue
        batch = await clearing.clear(kept, now_ms - period_ms, now_ms, limit=limit)
        cleared += batch.cleared
        if batch.is_done:
            if kept is not Kept.NOTIFICATIONS:
                cleared += await clearing.retry(kept, now_ms - period_ms, now_ms, limit=limit)
            done.append(kept)
    if cleared or done:
        await clearing.release_pages()
    return cleared, done


async def clear_all(
    clearing: Clearing,
    now_ms: int,
    *,
    current: Incarnation,
    pause: Callable[[float], Awaitable[None]],
) -> dict[Kept, int]:
    """Clears everything that is old now; returns how many of each kind. May run beside a service.

    ``current`` is the newest incarnation of the database. Raises Refusal while the database lacks commits or a recovery
    is under way; StoreError.
    """
    if current.is_recovering or current.behind:
        raise Refusal(Code.CONFLICT, "nothing is cleared while the database lacks commits or a recovery is under way")
    cleared = dict.fromkeys(CLEARED_IN_BATCHES, 0)
    for kept in CLEARED_IN_BATCHES:
        is_done = False
        while not is_done:
            number, done = await clear_round(clearing, [kept], now_ms)
            cleared[kept] += number
            is_done = bool(done)
            await pause(PAUSE_S)
    return cleared


async def clearing_status(clearing: Clearing) -> list[KindStatus]:
    """Tells how the clearing of each kind stands. Raises StoreError."""
    progress, skipped = await clearing.progress(), await clearing.skipped()
    return [
        KindStatus(
            kind=kept,
            period_ms=clearing.periods.of(kept),
            oldest_ms=await clearing.oldest_ms(kept, progress[kept].reached),
            cleared=progress[kept].cleared,
            waiting=skipped[kept],
            ran_at_ms=progress[kept].ran_at_ms or None,
        )
        for kept in Kept
    ]
