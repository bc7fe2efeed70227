"""The queries of resolution: which operations are due, and to which operation or checkout a payment belongs."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final, NamedTuple, TypeAlias

from payrelay.core.payments.operation import OPEN_STATES, PAYMENT_KINDS, Operation, State
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows, first_row
from payrelay.store.engine.queries import query
from payrelay.store.engine.rows import moment_in
from payrelay.store.statements.pagination import Among
from payrelay.store.statements.payment_owners import (
    IS_OPEN,
    TOOK_NO_EFFECT,
    WAS_NOT_EXECUTED,
    listed,
    owners_of_payment,
)
from payrelay.store.statements.payments.operations import OPERATIONS, RARE, READ_COLUMNS


class Standing(NamedTuple):
    """How many operations act on one thing, and how many changes all of them had."""

    operations: int
    changes: int


PAGE: Final = 200
"""Operations of one page, where all in a state are read."""

_Operations: TypeAlias = list[Operation]


class ResolutionStore:
    """Queries about operations in the journal's tables. Changes only the times of the next status inquiries.

    Rows without their digests are passed over.
    """

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def next_due_ms(self) -> int | None:
        """Gives the time at which the next operation is due for a status inquiry; None where none is."""
        return await self._database.read(moment_in(Statement(NEXT_DUE, ())))

    async def lease_due(self, now_ms: int, *, leased_until_ms: int, limit: int) -> _Operations:
        """Leases at most ``limit`` operations that are due. No other process gets them before the lease ends."""
        statement = Statement(LEASE_DUE, (now_ms, leased_until_ms, limit), is_whole=True)
        return await self._trusted(await self._database.write(all_rows(statement)))

    async def postpone(self, operation: Operation, inquire_at_ms: int) -> None:
        """Stores the time of the next status inquiry; does nothing where the operation was changed, or is final."""
        statement = Statement(POSTPONE, (operation.id, operation.version, inquire_at_ms), is_whole=True)
        await self._database.write(all_rows(statement))

    async def in_state(self, state: State, *, after: str = "") -> _Operations:
        """Reads one page of the operations in an open state, oldest first, with ids above ``after``."""
        statement = Statement(OPEN_OPERATIONS, (state, after, PAGE))
        return await self._trusted(await self._database.read(all_rows(statement)))

    async def owned_by_others(self, operation: Operation, payment_ids: tuple[str, ...]) -> frozenset[str]:
        """Gives those of the payments that belong to other operations of the merchant account, or to checkouts."""
        return await self._database.read(_owned(operation, payment_ids))

    async def owned_before(self, operation: Operation, payment_ids: tuple[str, ...], before_ms: int) -> frozenset[str]:
        """Gives those of the payments that belonged to others, as ``owned_by_others`` says, before a time."""
        return await self._database.read(_owned(operation, payment_ids, before_ms))

    async def standing(self, operation: Operation) -> Standing:
        """Reads how the other operations stand that act on what an operation acts on."""
        return await self._database.read(standing_of(operation))

    async def has_competing(self, operation: Operation, *, failed_since_ms: int) -> bool:
        """Tells whether another operation, or a checkout, may own a payment of the order.

        An operation counts that is open, or that failed and could still be sent after ``failed_since_ms``. The payment
        of one that was decided or proved too early could show itself, and be taken for this operation's. A checkout
        counts that is open, or that asked for a subscription. The signed texts of others tell which payments may be
        theirs.
        """
        parameters = (operation.order_id, operation.merchant, operation.id, failed_since_ms)
        return await self._database.read(first_row(Statement(COMPETING_OPERATIONS, parameters))) is not None

    async def has_competing_retry(self, operation: Operation, *, from_ms: int, until_ms: int) -> bool:
        """Tells whether another retry of the subscription, under way between two times, may own a payment of it."""
        parameters = (operation.subscription_id, operation.merchant, operation.id, from_ms, until_ms)
        return await self._database.read(first_row(Statement(COMPETING_RETRIES, parameters))) is not None

    async def has_other_refund(self, merchant: str, payment_id: str, operation_id: str) -> bool:
        """Tells whether another refund of the payment was, or may have been, made by Payrelay."""
        statement = Statement(OTHER_REFUNDS, (payment_id, merchant, operation_id))
        return await self._database.read(first_row(statement)) is not None

    async def paid_order(self, merchant: str, *, other_than: str, before_ms: int) -> str | None:
        """Finds an order that is known to be paid: preferably one that was paid before a time."""
        for at_ms in (before_ms, NEVER_MS):
            order_id = await self._text(Statement(PAID_ORDER, (merchant, other_than, at_ms)))
            if order_id is not None:
                return order_id
        return await self._text(Statement(SEEN_ORDER, (merchant, other_than)))

    async def _trusted(self, rows: list[Row]) -> _Operations:
        return await self._rows.values(OPERATIONS, rows)

    async def _text(self, statement: Statement) -> str | None:
        row = await self._database.read(first_row(statement))
        return None if row is None else str(row[0])


def standing_of(operation: Operation) -> Unit[Standing]:
    """Reads how the other operations stand that act on the order, payment or subscription of an operation."""
    noun, _, id_ = operation.subject.partition("/")
    named = tuple(id_ if noun == each else None for each in ("order", "payment", "subscription"))
    rows = yield Statement(STANDING, (*named, operation.merchant, operation.id))
    return Standing(operations=int(str(rows[0][0])), changes=int(str(rows[0][1])))


def _owned(operation: Operation, payment_ids: tuple[str, ...], before_ms: int | None = None) -> Unit[frozenset[str]]:
    owned = []
    for payment_id in payment_ids:
        parameters: tuple[Value, ...] = (payment_id, operation.merchant, operation.id)
        owners = Statement(OWNERS_OF_PAYMENT, parameters)
        if before_ms is not None:
            owners = Statement(OWNERS_BEFORE, (*parameters, before_ms))
        if (yield owners):
            owned.append(payment_id)
    return frozenset(owned)


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
