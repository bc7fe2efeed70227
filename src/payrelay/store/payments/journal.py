"""The journal of operations: who asked for what, where it stands, how it came there, and the answer that is kept.

Rules:

1. An operation, the first line of its history and its sealed call are stored together or not at all, and so are every
   change, its line, its answer and the event that tells of it.
2. The unique indexes on claim and guard decide who was first; whatever is read before them is only a hint.
3. A change names the version that it was decided on. Another version in the row means that the decision is void.
4. Every line is chained to the one before it (``core.payments.audit_chain``): hash, digests and row are written by one
   statement.
"""

from typing import Final, TypeAlias

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.calls import Effect
from payrelay.core.payments.idempotency import claim_of
from payrelay.core.payments.operation import JournalEntry, Kind, Operation, OperationFilter, State
from payrelay.errors import Outdated, StoreUnavailable
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows, count_rows, first_row
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.audit import Trail
from payrelay.store.payments.entries import (
    COLUMNS,
    Entries,
    entry_of,
    operation_of,
)
from payrelay.store.statements.alerts import ADD_OPERATION_ALERT
from payrelay.store.statements.pagination import given_of, page_of
from payrelay.store.statements.payments import operations as statements

STRANDED_MAX: Final = 10_000
"""More operations than one process can have under way."""
HISTORY_ENTRIES_MAX: Final = 1_000
"""Settling looks daily after the first days: this is years."""
_ACCEPT_ATTEMPTS_MAX: Final = 3
"""Each further attempt needs another holder to have let go between two statements."""
_FELT_EVERYWHERE: Final = frozenset({Kind.REFUND, Kind.VOID, Kind.RETRY, Kind.CANCEL})
"""They change what reads of other subjects show: a refund names a payment and not its order."""


class AcceptedOperation(msgspec.Struct, frozen=True):
    """The operation is stored, with its chain, and holds its claim and its guard."""

    operation: Operation


class ClaimedOperation(msgspec.Struct, frozen=True):
    """An earlier operation holds the claim; ``answer`` is what is kept of it."""

    operation: Operation
    answer: Answer | None


class GuardedOperation(msgspec.Struct, frozen=True):
    """Another operation stands in the way."""

    operation: Operation


_Operations: TypeAlias = list[Operation]
_Lines: TypeAlias = list[JournalEntry]

Acceptance: TypeAlias = AcceptedOperation | ClaimedOperation | GuardedOperation


class _Conflict(Exception):
    """Undoes a unit because a guard that bars the operation is held."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row


class Journal:
    """Keeps operations in a database; what is secret of them is sealed, and their histories are chained by a key.

    ``trail`` is what the audit reads of it.
    """

    def __init__(self, database: Database, seal: Seal, *, chain_key: bytes) -> None:
        self._database = database
        self._entries = Entries(seal, chain_key)
        self.trail = Trail(database, seal, self._entries.key)

    async def find_claim(self, principal: str, claim: str, *, now_ms: int) -> ClaimedOperation | None:
        """Finds the operation that holds a claim which has not lapsed, and its answer."""
        row = await self._database.read(first_row(Statement(statements.FIND_CLAIM, (principal, claim))))
        return None if row is None or _has_lapsed(row, now_ms) else self._claimed(row)

    async def accept(
        self, operation: Operation, entry: JournalEntry, call: Effect, *, conflicts_with: str | None, now_ms: int
    ) -> Acceptance:
        """Stores a new operation with its first line and its call, unless another one stands in the way.

        The claim is looked at first: its holder is answered as Claimed, unless the claim has lapsed, which is then
        taken over. Next the guard of the operation and ``conflicts_with``, a guard which no operation of this merchant
        may hold: their holder is answered as GuardedOperation. Of many that try at once, one is accepted.
        """
        chained, parameters = self._entries.accepted(operation, entry, call)
        unit = _accept(chained, parameters, conflicts_with, now_ms)
        try:
            holder = await self._database.write(unit)
        except _Conflict as barred:
            return GuardedOperation(operation_of(barred.row))
        if holder is None:
            return AcceptedOperation(chained)
        # The row of a claim's holder has the answer as one column more.
        return self._claimed(holder) if len(holder) > len(COLUMNS) else GuardedOperation(operation_of(holder))

    async def record(self, operation: Operation, entry: JournalEntry, answer: Answer | None) -> Operation:
        """Stores a changed operation with the line that tells why, its event, and its answer where it now has another.

        Gives the operation as it is stored, with its chain. ``operation`` is to have the chain of the version before,
        and whatever it can't change (what a charge asked for, who asked) as that version had it, because the new line
        answers for the whole row. Raises Outdated, and writes nothing, unless the row has the version and the chain
        before.
        """
        chained, statement = self._entries.changed(operation, entry, answer)
        await self._database.write(_record(statement, chained))
        return chained

    async def get(self, operation_id: str) -> Operation | None:
        """Reads one operation."""
        return await self._one(Statement(statements.GET, (operation_id,)))

    async def answer_of(self, operation_id: str) -> Answer | None:
        """Reads the answer that is kept of an operation."""
        row = await self._database.read(first_row(Statement(statements.ANSWER_OF, (operation_id,))))
        return None if row is None or row[0] is None else self._entries.answer(operation_id, row[0])

    async def call_of(self, operation_id: str) -> Effect:
        """Reads what an operation was asked to do; raises LookupError where there is no such operation.

        Raises StoreUnusable where a newer version asked for what this one doesn't know; that one may go on with it.
        """
        row = await self._database.read(first_row(Statement(statements.CALL_OF, (operation_id,))))
        if row is None:
            raise LookupError(f"no operation {operation_id}")
        return self._entries.call(operation_id, row[0])

    async def history(self, operation_id: str) -> _Lines:
        """Reads how an operation came to where it stands, oldest line first."""
        statement = Statement(statements.HISTORY, (operation_id, HISTORY_ENTRIES_MAX))
        return [entry_of(row) for row in await self._database.read(all_rows(statement))]

    async def newest_by_key(self, account: str, principal: str | None, idempotency_key: str) -> Operation | None:
        """Finds the newest operation on an account under an Idempotency-Key, of one principal or, for None, of any."""
        claim = claim_of(idempotency_key, "", is_unkeyed_claimed=False)
        if principal is None:
            return await self._one(Statement(statements.NEWEST_BY_KEY, (idempotency_key, claim, account)))
        return await self._one(Statement(statements.NEWEST_BY_KEY_OF, (idempotency_key, claim, account, principal)))

    async def stranded(self, *, before_ms: int) -> _Operations:
        """Finds accepted and sending operations whose time to be sent ended before a moment."""
        return await self._many(Statement(statements.STRANDED, (before_ms, STRANDED_MAX)))

    async def authorization_of(self, result_ref: str, merchant: str) -> Operation | None:
        """Finds the operation that yielded the authorization token with this hash."""
        return await self._one(Statement(statements.AUTHORIZATION_OF, (result_ref, merchant)))

    async def prune(self, now_ms: int, limit: int) -> int:
        """Takes at most ``limit`` lapsed claims back; gives how many there were."""
        return await self._database.write(count_rows(Statement(statements.PRUNE, (now_ms, limit), is_whole=True)))

    async def list(self, wanted: OperationFilter, *, before: str | None, limit: int) -> _Operations:
        """Reads one page, newest first: at most ``limit`` operations with ids below ``before``."""
        given = given_of(wanted)
        if wanted.kind is not None:
            given["kind"] = wanted.kind.stored
        return await self._many(page_of(statements.LIST_OPERATIONS, given, before=before, limit=limit))

    async def _one(self, statement: Statement) -> Operation | None:
        row = await self._database.read(first_row(statement))
        return None if row is None else operation_of(row)

    async def _many(self, statement: Statement) -> _Operations:
        return [operation_of(row) for row in await self._database.read(all_rows(statement))]

    def _claimed(self, row: Row) -> ClaimedOperation:
        operation = operation_of(row[: len(COLUMNS)])
        sealed = row[len(COLUMNS)]
        return ClaimedOperation(operation, None if sealed is None else self._entries.answer(operation.id, sealed))


def _accept(
    operation: Operation, parameters: tuple[Value, ...], conflicts_with: str | None, now_ms: int
) -> Unit[Row | None]:
    """Gives None for accepted, else the row of the operation that holds the claim or the guard."""
    # The insert comes first: nearly always nobody stands in the way, and only the indexes can tell for certain. What
    # bars is looked for after it, in a statement of its own: by then the holder of the same guard has committed.
    is_felt = _is_felt_everywhere(operation)
    statement = Statement(statements.ACCEPT, parameters, is_whole=conflicts_with is None and not is_felt)
    for _ in range(_ACCEPT_ATTEMPTS_MAX):
        if (yield statement):
            barring = [] if conflicts_with is None else (yield _guard_of(operation, conflicts_with))
            if barring:
                raise _Conflict(barring[0])
            if is_felt:
                yield Statement(statements.INVALIDATE, (operation.merchant,))
            return None
        claiming = yield Statement(statements.FIND_CLAIM, (operation.principal, operation.claim))
        if claiming and not _has_lapsed(claiming[0], now_ms):
            return claiming[0]
        if claiming:
            yield Statement(statements.GIVE_CLAIM_BACK, (claiming[0][0], now_ms))
            continue
        guarding = yield _guard_of(operation, operation.guard)
        if guarding:
            return guarding[0]
    raise StoreUnavailable("an operation could not be stored: those that stood in its way came and went")


def _guard_of(operation: Operation, guard: str | None) -> Statement:
    return Statement(statements.FIND_GUARD, (operation.merchant, guard))


def _record(statement: Statement, operation: Operation) -> Unit[None]:
    is_for_a_person, is_felt = operation.state is State.NEEDS_ATTENTION, _is_felt_everywhere(operation)
    changed = yield statement._replace(is_whole=False) if is_for_a_person or is_felt else statement
    if not changed:
        raise Outdated(f"the operation {statement.parameters[0]!r} was changed since it was read")
    if is_for_a_person:
        yield Statement(ADD_OPERATION_ALERT, (operation.id, operation.version, operation.updated_at_ms))
    if is_felt:
        yield Statement(statements.INVALIDATE, (operation.merchant,))


def _is_felt_everywhere(operation: Operation) -> bool:
    """True where a change of it may change what reads of other subjects show (``store.gateways.readings``)."""
    return operation.kind in _FELT_EVERYWHERE or (operation.kind is Kind.CAPTURE and operation.order_id is None)


def _has_lapsed(row: Row, now_ms: int) -> bool:
    ends_at_ms = row[COLUMNS.index("claim_ends_at_ms")]
    return isinstance(ends_at_ms, int) and ends_at_ms <= now_ms
