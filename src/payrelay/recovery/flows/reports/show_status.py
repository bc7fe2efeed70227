"""Shows an operator where a recovery stands."""

from collections import Counter

import msgspec

from payrelay.core.database.incarnations import Incarnation, repeats_end_at_ms
from payrelay.core.payments.operation import Kind
from payrelay.flows.operators.held.decide_held import HeldFilter, held_operations
from payrelay.flows.relay import Relay


class RecoveryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where a recovery stands.

    Attributes:
        database_id: the random id of the database, which it keeps for good.
        incarnation: the newest one.
        waiting_for: the principals that haven't acknowledged, by their stored names; none where none is awaited.
        held: how many operations of each kind are held.
        ahead_ms: how far in the future the end of the lost window is: by so much the clock was ahead when the recovery
            was begun; 0 where it wasn't.
        ends_at_ms: when the recovery ends by itself, in ms since 1970, UTC; None where none is under way, and where the
            database is behind: another one must begin.
    """

    database_id: str
    incarnation: Incarnation
    waiting_for: list[str]
    held: dict[Kind, int]
    ends_at_ms: int | None
    ahead_ms: int = 0


async def recovery_status(relay: Relay) -> RecoveryStatus:
    """Reads where a recovery stands; of a database that lost nothing, that none is under way. Raises StoreError."""
    identity = await relay.database.identities.read()
    current = identity.current
    counts = Counter([operation.kind async for operation in held_operations(relay, HeldFilter())])
    is_under_way = current.is_recovering and not current.behind
    known = await relay.access.principals.known() if is_under_way else []
    return RecoveryStatus(
        database_id=identity.id,
        incarnation=current,
        waiting_for=[each for each in known if each not in current.acknowledged],
        held=dict(sorted(counts.items())),
        ends_at_ms=repeats_end_at_ms(current, relay.settings.retention) if is_under_way else None,
        ahead_ms=0 if current.lost is None else max(0, current.lost.until_ms - relay.clock.now_ms()),
    )
