"""The queries of resolution: which operations are due, and which rows support or contradict a proof."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.payments.operation import OPEN_STATES, PAYMENT_KINDS, State
from payrelay.store.engine.queries import query
from payrelay.store.statements.pagination import Among
from payrelay.store.statements.payment_owners import (
    IS_OPEN,
    TOOK_NO_EFFECT,
    WAS_NOT_EXECUTED,
    listed,
    owners_of_payment,
)
from payrelay.store.statements.payments.operations import OPERATIONS, RARE, READ_COLUMNS

LEASE_DUE: Final = query(
    f"""
    UPDATE operations SET probe_at_ms = $2::bigint
    WHERE id IN (
        SELECT id FROM operations WHERE probe_at_ms <= $1::bigint ORDER BY probe_at_ms LIMIT $3 FOR UPDATE SKIP LOCKED
    )
    RETURNING {OPERATIONS.read}""",
)
"""Leases operations that are due for a status inquiry until $2, so that no other process inquires about them meanwhile.
"""

POSTPONE: Final = query(
    "UPDATE operations SET probe_at_ms = $3 WHERE id = $1 AND version = $2 AND probe_at_ms IS NOT NULL"
)
"""Stores when the next status inquiry about an operation is due, unless the operation was changed meanwhile."""

NEXT_DUE: Final = query("SELECT min(probe_at_ms) FROM operations WHERE probe_at_ms IS NOT NULL")
"""Reads when the next operation is due for a status inquiry."""

_OPEN_OPERATIONS: Final = """
    SELECT {columns} FROM operations
    WHERE state = {bound}$1 AND {among} AND id > $2 ORDER BY id LIMIT $3"""
_WAITING: Final = Among.all_but("state", (State.ACCEPTED, State.SENDING), OPEN_STATES)
OPEN_OPERATIONS: Final = query(
    _OPEN_OPERATIONS.format(columns=READ_COLUMNS, among=f"{RARE.text} AND {_WAITING.text}", bound=""),
    sqlite=(_OPEN_OPERATIONS.format(columns=READ_COLUMNS, among=RARE.text, bound="+"),),
)
"""Reads the operations that wait in one of the open states, oldest first, from an id on.

The other rare states, which grow with the database, are kept out for PostgreSQL's planner. With them it expects many
rows of a state that it doesn't know yet, and plans the statement anew each time. So would SQLite, which is kept from it
as on pages.
"""

OWNERS_OF_PAYMENT: Final = query(owners_of_payment(asking="operations"))
"""Finds another operation, or a checkout, that a payment belongs to."""

OWNERS_BEFORE: Final = query(owners_of_payment(asking="operations", and_also="AND updated_at_ms < $4"))
"""Finds the same where the owner has not changed since a time, so that the payment was its own by then."""

STANDING: Final = query(
    """
    SELECT count(*), coalesce(sum(version), 0)::bigint FROM operations
    WHERE (order_id = $1 OR payment_id = $2 OR subscription_id = $3) AND merchant = $4 AND id <> $5""",
)
"""Reads how many operations there are on an order, a payment or a subscription, and how often they were changed."""

COMPETING_OPERATIONS: Final = query(
    f"""
    SELECT id FROM operations
    WHERE order_id = $1 AND merchant = $2 AND id <> $3 AND kind IN ('charge', 'authorization', 'capture')
      AND ({IS_OPEN} OR state = 'failed' AND send_by_ms >= $4)
    UNION ALL
    SELECT id FROM checkouts
    WHERE order_id = $1 AND merchant = $2
      AND (state = 'open' OR kind = 'recurring')
    LIMIT 1""",
)
"""Finds another operation or a checkout on an order that may turn out to own a payment of it.

An operation competes that is open, or that failed and could still be sent after a time. An open checkout competes, even
where our page was never shown: whoever asked for it got the signed form as well. One that asked for a subscription
always competes: installments have the order's id, and a customer may have subscribed twice. Of the other checkouts
their signed texts tell which payments may be theirs.
"""

COMPETING_RETRIES: Final = query(
    f"""
    SELECT id FROM operations
    WHERE subscription_id = $1 AND merchant = $2 AND id <> $3 AND kind = 'retry' AND payment_id IS NULL
      AND NOT {WAS_NOT_EXECUTED} AND send_by_ms >= $4 AND created_at_ms <= $5 LIMIT 1""",
)
"""Finds another retry of a subscription that was, or may have been, made at about the same time, and whose payment
nobody knows."""

OTHER_REFUNDS: Final = query(
    f"""
    SELECT id FROM operations
    WHERE payment_id = $1 AND merchant = $2 AND id <> $3 AND kind = 'refund' AND NOT {TOOK_NO_EFFECT} LIMIT 1""",
)
"""Finds another refund of a payment that was, or may have been, made."""

PAID_ORDER: Final = query(
    f"""
    SELECT order_id FROM operations
    WHERE merchant = $1 AND kind = 'charge' AND state = 'succeeded' AND order_id <> $2 AND updated_at_ms <= $3
      AND payment_id IS NOT NULL AND kind IN {listed(PAYMENT_KINDS)}
    ORDER BY length(payment_id) DESC, payment_id DESC LIMIT 1""",
)
"""Finds another order that an operation paid before a time: the one with the newest payment. Ids of payments grow."""

SEEN_ORDER: Final = query(
    """
    SELECT order_id FROM payments_seen
    WHERE merchant = $1 AND status = 'RECEIVED' AND order_id <> $2 LIMIT 1""",
)
"""Finds another order that was seen paid at the gateway."""
