"""The queries of resolution: which operations are due, and to which operation or checkout a payment belongs."""

from typing import Final, NamedTuple, TypeAlias

from payrelay.core.payments.operation import Operation, State
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows, first_row
from payrelay.store.engine.rows import moment_in
from payrelay.store.statements.payments import resolution as statements
from payrelay.store.statements.payments.operations import OPERATIONS


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
        return await self._database.read(moment_in(Statement(statements.NEXT_DUE, ())))

    async def lease_due(self, now_ms: int, *, leased_until_ms: int, limit: int) -> _Operations:
        """Leases at most ``limit`` operations that are due. No other process gets them before the lease ends."""
        statement = Statement(statements.LEASE_DUE, (now_ms, leased_until_ms, limit), is_whole=True)
        return await self._trusted(await self._database.write(all_rows(statement)))

    async def postpone(self, operation: Operation, inquire_at_ms: int) -> None:
        """Stores the time of the next status inquiry; does nothing where the operation was changed, or is final."""
        statement = Statement(statements.POSTPONE, (operation.id, operation.version, inquire_at_ms), is_whole=True)
        await self._database.write(all_rows(statement))

    async def in_state(self, state: State, *, after: str = "") -> _Operations:
        """Reads one page of the operations in an open state, oldest first, with ids above ``after``."""
        statement = Statement(statements.OPEN_OPERATIONS, (state, after, PAGE))
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
        return await self._database.read(first_row(Statement(statements.COMPETING_OPERATIONS, parameters))) is not None

    async def has_competing_retry(self, operation: Operation, *, from_ms: int, until_ms: int) -> bool:
        """Tells whether another retry of the subscription, under way between two times, may own a payment of it."""
        parameters = (operation.subscription_id, operation.merchant, operation.id, from_ms, until_ms)
        return await self._database.read(first_row(Statement(statements.COMPETING_RETRIES, parameters))) is not None

    async def has_other_refund(self, merchant: str, payment_id: str, operation_id: str) -> bool:
        """Tells whether another refund of the payment was, or may have been, made by Payrelay."""
        statement = Statement(statements.OTHER_REFUNDS, (payment_id, merchant, operation_id))
        return await self._database.read(first_row(statement)) is not None

    async def paid_order(self, merchant: str, *, other_than: str, before_ms: int) -> str | None:
        """Finds an order that is known to be paid: preferably one that was paid before a time."""
        for at_ms in (before_ms, NEVER_MS):
            order_id = await self._text(Statement(statements.PAID_ORDER, (merchant, other_than, at_ms)))
            if order_id is not None:
                return order_id
        return await self._text(Statement(statements.SEEN_ORDER, (merchant, other_than)))

    async def _trusted(self, rows: list[Row]) -> _Operations:
        return await self._rows.values(OPERATIONS, rows)

    async def _text(self, statement: Statement) -> str | None:
        row = await self._database.read(first_row(statement))
        return None if row is None else str(row[0])


def standing_of(operation: Operation) -> Unit[Standing]:
    """Reads how the other operations stand that act on the order, payment or subscription of an operation."""
    noun, _, id_ = operation.subject.partition("/")
    named = tuple(id_ if noun == each else None for each in ("order", "payment", "subscription"))
    rows = yield Statement(statements.STANDING, (*named, operation.merchant, operation.id))
    return Standing(operations=int(str(rows[0][0])), changes=int(str(rows[0][1])))


def _owned(operation: Operation, payment_ids: tuple[str, ...], before_ms: int | None = None) -> Unit[frozenset[str]]:
    owned = []
    for payment_id in payment_ids:
        parameters: tuple[Value, ...] = (payment_id, operation.merchant, operation.id)
        owners = Statement(statements.OWNERS_OF_PAYMENT, parameters)
        if before_ms is not None:
            owners = Statement(statements.OWNERS_BEFORE, (*parameters, before_ms))
        if (yield owners):
            owned.append(payment_id)
    return frozenset(owned)
