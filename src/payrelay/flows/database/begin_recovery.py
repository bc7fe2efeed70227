"""Begins a recovery: a new incarnation of the database, with the time whose commits may be lost."""

from collections.abc import Iterable
from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.store.database.identity import IdentityStore

BUDGETS_WAIT_MS: Final = 60_000
"""How long no call is made at the beginning: longer than the window of a usual budget."""


async def begin_recovery(
    identities: IdentityStore,
    clock: Clock,
    *,
    lost_since_ms: int,
    operator: str,
    note: str,
    number_above: int = 0,
    merchants: Iterable[str] = (),
) -> Incarnation:
    """Begins an incarnation whose lost window reaches from ``lost_since_ms`` (since 1970, UTC) until now; returns it.

    At once or not at all; before that, all budgets of calls are blocked for BUDGETS_WAIT_MS, also those of
    ``merchants``, of which the database may know nothing any more. Where a recovery is under
    way, its lost window belongs to the new one, and what principals acknowledged before counts no more: they may have
    sent something since. Where another database took the place of this one, this one is served from again. No two
    incarnations may have one number: it is above that of the other database, and above ``number_above``, because a
    restored backup doesn't know how many came after it. Raises StoreError.
    """
    now_ms = clock.now_ms()
    # Before any process may send anything again: nobody knows which permits were used in the lost window.
    await identities.block_budgets(now_ms, BUDGETS_WAIT_MS, merchants)

    def begun(identity: DatabaseIdentity) -> DatabaseIdentity:
        current = identity.current
        since_ms = min(lost_since_ms, now_ms)
        if current.is_recovering and current.lost is not None:
            since_ms = min(since_ms, current.lost.since_ms)
        began = Incarnation(
            number=max(current.number + bool(identity.copied_to), number_above) + 1,
            reason=Beginning.RECOVERED,
            began_at_ms=now_ms,
            lost=LostWindow(since_ms=since_ms, until_ms=now_ms),
            operator=operator,
            note=note,
        )
        return msgspec.structs.replace(identity, incarnations=(*identity.incarnations, began), copied_to="")

    return (await identities.change(begun)).current
