"""The journal of operations: their requests, states, histories and stored answers.

Rules:

1. An operation, its first journal entry and its sealed call are stored together or not at all. So are every change, its
   journal entry, its answer and its event.
2. The unique indexes on claim and guard decide which operation was first. A read before them is only a hint.
3. A change names the version on which it was decided. Where the row has another version, the decision is void.
4. Every journal entry is chained to the one before it (``core.payments.audit_chain``). One statement writes hash,
   digests and row.
5. Nothing is concluded from a row whose digest is wrong, nor from a history whose hashes don't follow. Whoever asks for
   that operation, by its id, its claim or its history, gets OperationForged; what looks for operations passes it over.
   No change is stored of it. So it is never sent, recovered or answered from, and holds its claim and its guard.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.calls import Effect
from payrelay.core.payments.operation import (
    Event,
    JournalEntry,
    Kind,
    Operation,
    OperationFilter,
    State,
    captured_guard,
    claim_of_key,
)
from payrelay.errors import OperationForged, Outdated, StoreUnavailable
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows, count_rows, first_row
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.audit import Trail
from payrelay.store.payments.consequences import Consequences
from payrelay.store.payments.operation_rows import OperationRows, entry_of, failed_among
from payrelay.store.payments.remembered import RememberedCommit, RememberedCommits
from payrelay.store.statements.payments import operations as statements
from payrelay.store.statements.payments.operations import OPERATIONS

STRANDED_MAX: Final = 10_000
"""More operations than one process can have under way."""
HISTORY_ENTRIES_MAX: Final = 1_000
"""After the first days, resolution inquires daily: this is years."""
_ACCEPT_ATTEMPTS_MAX: Final = 3
"""Each further attempt needs another holder that let go between two statements."""
_SENDING_LATER: Final = frozenset({Event.RESENT, Event.RESENT_TO_RESOLVE, Event.DECIDED_SEND})
"""They are stored before the call of a stored operation is sent, the first time or once more."""
_INVALIDATING: Final = frozenset({Kind.REFUND, Kind.VOID, Kind.RETRY, Kind.CANCEL})
"""They change what reads of other subjects show: a refund names a payment and not its order."""


class AcceptedOperation(msgspec.Struct, frozen=True):
    """The operation is stored, with its chain, and holds its claim and its guard."""

    operation: Operation


class ClaimedOperation(msgspec.Struct, frozen=True):
    """An earlier operation holds the claim; ``answer`` is its stored answer."""

    operation: Operation
    answer: Answer | None


class GuardedOperation(msgspec.Struct, frozen=True):
    """Another operation holds a guard that this one needs free."""

    operation: Operation


class EqualRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation has that an equal request asked for.

    ``column`` says what it is found by, which is ``named``: order_id, payment_id or subscription_id, and for a void the
    account.
    """

    principal: str
    fingerprint: str
    column: str
    named: str | None


_READ_COLUMNS: Final = len(OPERATIONS.columns) + 1
"""An operation's columns and its digest."""
_FORGED_MAX: Final = 1_000
"""Forged rows that a page is read on behind; with more, somebody means to fill the list."""
_Operations: TypeAlias = list[Operation]
_Entries: TypeAlias = list[JournalEntry]

Acceptance: TypeAlias = AcceptedOperation | ClaimedOperation | GuardedOperation
Condition: TypeAlias = Callable[[str], Unit[None]]
"""Makes the unit that is carried out with the storing of an operation, of its id; what it raises undoes the storing."""


class _NewOperation(NamedTuple):
    """An operation with its first journal entry, and the parameters that store both."""

    operation: Operation
    entry: JournalEntry
    parameters: tuple[Value, ...]


class _Conflict(Exception):
    """Undoes a unit because another operation holds a conflicting guard."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row


class Journal:
    """Stores operations in a database. Secret parts are sealed, and the histories are chained by a key.

    ``rows`` checks the digests of rows. ``trail`` is the audit's view of the journal. ``acknowledged`` is called with
    each version of an operation, once the database has acknowledged its commit. ``remembered`` keeps the newest of
    them; None keeps none.
    """

    def __init__(
        self,
        database: Database,
        seal: Seal,
        rows: RowDigests,
        *,
        chain_key: bytes,
        acknowledged: Callable[[Operation], None] = lambda _: None,
        remembered: RememberedCommits | None = None,
    ) -> None:
        self._database = database
        self._rows = rows
        self._entries = OperationRows(seal, chain_key)
        self._consequences = Consequences(chain_key)
        self._acknowledged = acknowledged
        self.remembered = remembered or RememberedCommits()
        self.trail = Trail(database, seal, self._entries.key)

    async def find_claim(self, principal: str, claim: str, *, now_ms: int) -> ClaimedOperation | None:
        """Finds the operation that holds a claim which has not lapsed, and its answer. Raises OperationForged."""
        row = await self._database.read(first_row(Statement(statements.FIND_CLAIM, (principal, claim))))
        return None if row is None or _has_lapsed(row, now_ms) else await self._claimed(row)

    async def find_guard(self, merchant: str, guard: str) -> GuardedOperation | None:
        """Finds the operation that holds a guard."""
        row = await self._database.read(first_row(Statement(statements.FIND_GUARD, (merchant, guard))))
        return None if row is None else await self._guarded(row)

    async def newest_equal(self, equal: EqualRequest, *, since_ms: int, but_for: str) -> ClaimedOperation | None:
        """Finds a principal's newest operation since a time that an equal request asked for, with a key or without.

        ``but_for`` is the id of an operation that is left out. Raises OperationForged.
        """
        parameters = (equal.named, equal.principal, equal.fingerprint, f"op_{max(since_ms, 0):012x}", but_for)
        row = await self._database.read(first_row(Statement(statements.NEWEST_EQUAL_BY[equal.column], parameters)))
        return None if row is None else await self._claimed(row)

    async def accept(
        self,
        operation: Operation,
        entry: JournalEntry,
        call: Effect,
        *,
        conflicts_with: str | None,
        now_ms: int,
        beside: Sequence[Statement] = (),
        condition: Condition | None = None,
    ) -> Acceptance:
        """Stores a new operation with its first journal entry and its call, unless another operation is in its way.

        The claim comes first: the result for its holder is a ClaimedOperation. A claim that has lapsed is taken over.
        Next come the operation's guard and ``conflicts_with``, a guard that no operation of this merchant may hold: the
        result for their holder is a GuardedOperation. Last comes ``condition``: what it raises comes out here, and
        nothing is stored. Of many that try at once, one is accepted. Raises OperationForged where the row of the
        claim's holder was forged. That of a guard's holder counts as one that needs attention.

        ``beside`` is what else is stored with an accepted operation, or not at all, such as its signed texts.
        """
        chained, parameters = self._entries.accepted(operation, entry, call)
        new = _NewOperation(chained, entry, parameters)
        unit = _accept(new, conflicts_with, now_ms, self._consequences, beside=beside, condition=condition)
        try:
            holder = await self._database.write(unit)
        except _Conflict as conflict:
            return await self._guarded(conflict.row)
        if holder is None:
            self._note(chained, entry, partial(_accepted_again, chained, parameters, beside))
            return AcceptedOperation(chained)
        # The row of a claim's holder has the answer as one column more.
        return await (self._claimed(holder) if len(holder) > _READ_COLUMNS else self._guarded(holder))

    async def adopt(
        self,
        operation: Operation,
        entry: JournalEntry,
        call: Effect,
        *,
        changed: Operation,
        change: JournalEntry,
        answer: Answer,
        condition: Condition,
    ) -> Acceptance:
        """Stores a new operation together with its first change, at once or not at all; else as ``accept``.

        ``changed`` is the operation after the change, which has the journal entry ``change`` and an answer. The
        AcceptedOperation has it as it is stored.
        """
        chained, parameters = self._entries.accepted(operation, entry, call)
        changed = msgspec.structs.replace(changed, chain=chained.chain)
        stored, statement = self._entries.changed(changed, change, answer)
        now_ms, new = change.at_ms, _NewOperation(chained, entry, parameters)

        def adopted() -> Unit[Row | None]:
            holder = yield from _accept(new, None, now_ms, self._consequences, beside=(), condition=condition)
            if holder is None:
                yield from _record(
                    msgspec.structs.replace(statement, is_whole=False), stored, change, self._consequences
                )
            return holder

        holder = await self._database.write(adopted())
        if holder is None:
            self._note(chained, entry, partial(_accepted_again, chained, parameters, ()))
            self._note(stored, change, partial(_recorded_again, statement, stored, change, self._consequences))
            return AcceptedOperation(stored)
        return await (self._claimed(holder) if len(holder) > _READ_COLUMNS else self._guarded(holder))

    async def record(
        self, operation: Operation, entry: JournalEntry, answer: Answer | None, *, may_be_paid_again: bool = True
    ) -> Operation:
        """Stores a changed operation with the journal entry of the change, its event, and its answer where that is new.

        Gives the operation as it is stored, with its chain. ``operation`` must have the chain of the version before. It
        must also have all that can't change (a charge's order and amount, the principal) as that version had it,
        because the new journal entry covers the whole row. What follows from the change is stored with it
        (``store.payments.consequences``); ``may_be_paid_again`` is False where the order had nothing else that took
        money. Raises Outdated, and writes nothing, unless the row has the version and the chain before; OperationForged
        where the stored row or its history was forged.
        """
        chained, statement = self._entries.changed(operation, entry, answer)
        statement = msgspec.structs.replace(statement, begins_effect=entry.event in _SENDING_LATER)
        try:
            await self._database.write(
                _record(statement, chained, entry, self._consequences, may_be_paid_again=may_be_paid_again)
            )
        except Outdated:
            await self._one(Statement(statements.GET, (operation.id,)))
            raise
        self._note(chained, entry, partial(_recorded_again, statement, chained, entry, self._consequences))
        return chained

    async def bring_back(self) -> _Operations:
        """Stores again what this process remembers of answered operations and the database lacks.

        Gives these operations. Nothing is sent for them. May be repeated. Raises StoreError.
        """
        back = await self.remembered.bring_back(self._database)
        for operation in back:
            self._acknowledged(operation)
        return back

    async def get(self, operation_id: str) -> Operation | None:
        """Reads one operation. Raises OperationForged."""
        return await self._one(Statement(statements.GET, (operation_id,)))

    async def has_failed(self, refund: Operation) -> bool:
        """Tells whether a refund that succeeded failed later, as the gateway's record shows."""
        return bool(await self._rows.verified(lambda verifier: failed_among(refund.merchant, [refund.id], verifier)))

    async def answer_of(self, operation_id: str) -> Answer | None:
        """Reads the stored answer of an operation; None where there is none, and where it is no longer kept."""
        row = await self._database.read(first_row(Statement(statements.ANSWER_OF, (operation_id,))))
        return None if row is None or row[0] is None else self._entries.answer(operation_id, row[0])

    async def call_of(self, operation_id: str) -> Effect:
        """Reads the call of an operation; raises LookupError where there is no such operation.

        Raises CallCleared where the call is no longer kept.

        Raises StoreUnusable where a newer version of Payrelay wrote a call that this one doesn't know. The newer
        version can go on with it.
        """
        row = await self._database.read(first_row(Statement(statements.CALL_OF, (operation_id,))))
        if row is None:
            raise LookupError(f"no operation {operation_id}")
        return self._entries.call(operation_id, row[0])

    async def history(self, operation_id: str) -> _Entries:
        """Reads the history of an operation, the oldest journal entry first. Raises OperationForged."""
        statement = Statement(statements.HISTORY, (operation_id, HISTORY_ENTRIES_MAX))
        rows = await self._database.read(all_rows(statement))
        if not rows:
            closed = await self._database.read(first_row(Statement(statements.CLOSED_HISTORY, (operation_id,))))
            if closed is None:
                return []
            entries = self._entries.of_closed(closed)
        elif self._entries.are_chained(rows, is_whole=len(rows) < HISTORY_ENTRIES_MAX):
            entries = [entry_of(row) for row in rows]
        else:
            entries = []
        if not entries:
            await self._rows.report(f"{OPERATIONS.name}/{operation_id}")
            raise OperationForged(operation_id)
        return entries

    async def newest_by_key(self, account: str, principal: str | None, idempotency_key: str) -> Operation | None:
        """Finds the newest operation on an account under an Idempotency-Key, of one principal or, for None, of any.

        Raises OperationForged.
        """
        claim = claim_of_key(idempotency_key)
        if principal is None:
            return await self._one(Statement(statements.NEWEST_BY_KEY, (idempotency_key, claim, account)))
        return await self._one(Statement(statements.NEWEST_BY_KEY_OF, (idempotency_key, claim, account, principal)))

    async def stranded(self, *, before_ms: int) -> _Operations:
        """Finds accepted and sending operations whose time to be sent ended before a time."""
        return await self._many(Statement(statements.STRANDED, (before_ms, STRANDED_MAX)))

    async def capture_of(self, token_hash: str, merchant: str) -> Operation | None:
        """Finds the capture that succeeded with the authorization token with this hash."""
        guard = captured_guard(f"authorization/{token_hash}")
        holder = await self._first(Statement(statements.FIND_GUARD, (merchant, guard)))
        return holder if holder is not None and holder.kind is Kind.CAPTURE else None

    async def authorization_of(self, result_ref: str, merchant: str) -> Operation | None:
        """Finds the operation that yielded the authorization token with this hash."""
        return await self._first(Statement(statements.AUTHORIZATION_OF, (result_ref, merchant)))

    async def prune(self, now_ms: int, limit: int) -> int:
        """Ends at most ``limit`` lapsed claims; gives their number."""
        return await self._database.write(count_rows(Statement(statements.PRUNE, (now_ms, limit), is_whole=True)))

    async def list(self, filters: OperationFilter, *, before: str | None, limit: int) -> _Operations:
        """Reads one page, newest first: at most ``limit`` operations with ids below ``before``.

        Forged ones are passed over, and the page goes on behind them.
        """
        found: _Operations = []
        for _ in range(_FORGED_MAX):
            left = limit - len(found)
            rows = await statements.list_page(self._database, filters, before=before, limit=left)
            right = await self._rows.trusted(OPERATIONS, rows)
            found += [OPERATIONS.value(row) for row in right]
            if len(right) == len(rows):
                break
            before = str(rows[-1][0])
        return found

    def _note(self, operation: Operation, entry: JournalEntry, again: Callable[[], Unit[bool]]) -> None:
        self._acknowledged(operation)
        if self.remembered.commits_max:
            self.remembered.note(RememberedCommit(operation, entry.at_ms, again))

    async def _one(self, statement: Statement) -> Operation | None:
        row = await self._database.read(first_row(statement))
        return None if row is None else await self._trusted(row)

    async def _first(self, statement: Statement) -> Operation | None:
        found = await self._many(statement)
        return found[0] if found else None

    async def _many(self, statement: Statement) -> _Operations:
        rows = await self._database.read(all_rows(statement))
        return await self._rows.values(OPERATIONS, rows)

    async def _trusted(self, row: Row) -> Operation:
        if not await self._rows.is_right(OPERATIONS, row):
            raise OperationForged(str(row[0]))
        return OPERATIONS.value(row[:-1])

    async def _claimed(self, row: Row) -> ClaimedOperation:
        operation = await self._trusted(row[:_READ_COLUMNS])
        sealed = row[_READ_COLUMNS]
        return ClaimedOperation(operation, None if sealed is None else self._entries.answer(operation.id, sealed))

    async def _guarded(self, row: Row) -> GuardedOperation:
        operation = OPERATIONS.value(row[:-1])
        if await self._rows.is_right(OPERATIONS, row):
            return GuardedOperation(operation)
        return GuardedOperation(msgspec.structs.replace(operation, state=State.NEEDS_ATTENTION, principal=""))


def _accept(
    new: _NewOperation,
    conflicts_with: str | None,
    now_ms: int,
    consequences: Consequences,
    *,
    beside: Sequence[Statement],
    condition: Condition | None,
) -> Unit[Row | None]:
    """Gives None where the operation is accepted, else the row of the one that holds the claim or the guard."""
    operation, entry, parameters = new
    # The insert comes first: it nearly always succeeds, and only the indexes can tell for certain. A conflicting guard
    # is searched for after it, in a statement of its own: by then the holder of an equal guard has committed.
    invalidates = _invalidates_reads(operation)
    is_held = operation.state is State.HELD
    is_whole = conflicts_with is None and condition is None and not (invalidates or beside or is_held)
    statement = Statement(statements.ACCEPT, parameters, is_whole=is_whole, begins_effect=not is_held)
    for _ in range(_ACCEPT_ATTEMPTS_MAX):
        if (yield statement):
            conflicting = [] if conflicts_with is None else (yield _guard_of(operation, conflicts_with))
            if conflicting:
                raise _Conflict(conflicting[0])
            if condition is not None:
                yield from condition(operation.id)
            if invalidates:
                yield Statement(statements.INVALIDATE, (operation.merchant,))
            for each in beside:  # noqa: UP028, a tuple takes no result
                yield each
            if is_held:
                yield from consequences.of_new_operation(operation, entry)
            return None
        claimed = yield Statement(statements.FIND_CLAIM, (operation.principal, operation.claim))
        if claimed and not _has_lapsed(claimed[0], now_ms):
            return claimed[0]
        if claimed:
            yield Statement(statements.GIVE_CLAIM_BACK, (claimed[0][0], now_ms))
            continue
        guarded = yield _guard_of(operation, operation.guard)
        if guarded:
            return guarded[0]
    raise StoreUnavailable("an operation could not be stored: operations in its way came and went")


def _guard_of(operation: Operation, guard: str | None) -> Statement:
    return Statement(statements.FIND_GUARD, (operation.merchant, guard))


def _record(
    statement: Statement,
    operation: Operation,
    entry: JournalEntry,
    consequences: Consequences,
    *,
    may_be_paid_again: bool = True,
) -> Unit[None]:
    has_consequences = consequences.may_follow(operation, may_be_paid_again=may_be_paid_again)
    invalidates = _invalidates_reads(operation)
    if has_consequences or invalidates:
        statement = msgspec.structs.replace(statement, is_whole=False)
    changed = yield statement
    if not changed:
        raise Outdated(f"the operation {statement.parameters[0]!r} was changed since it was read")
    if has_consequences:
        yield from consequences.store(operation, entry, may_be_paid_again=may_be_paid_again)
    if invalidates:
        yield Statement(statements.INVALIDATE, (operation.merchant,))


def _accepted_again(operation: Operation, parameters: tuple[Value, ...], beside: Sequence[Statement]) -> Unit[bool]:
    """Stores an accepted operation as it was; gives False where its claim or its guard is held by now.

    Nobody is called to it again: what the gateway has answered needs no person.
    """
    if not (yield Statement(statements.ACCEPT, parameters)):
        return False
    if _invalidates_reads(operation):
        yield Statement(statements.INVALIDATE, (operation.merchant,))
    for each in beside:  # noqa: UP028, a tuple takes no result
        yield each
    return True


def _recorded_again(
    statement: Statement, operation: Operation, entry: JournalEntry, consequences: Consequences
) -> Unit[bool]:
    """Stores a change as it was, with its event; gives False where the version before isn't there."""
    try:
        again = msgspec.structs.replace(statement, is_whole=False, begins_effect=False)
        yield from _record(again, operation, entry, consequences)
    except Outdated:
        return False
    return True


def _invalidates_reads(operation: Operation) -> bool:
    """True where a change of it may change what reads of other subjects show (``store.gateways.readings``)."""
    return operation.kind in _INVALIDATING or (operation.kind is Kind.CAPTURE and operation.order_id is None)


def _has_lapsed(row: Row, now_ms: int) -> bool:
    ends_at_ms = row[OPERATIONS.columns.index("claim_ends_at_ms")]
    return isinstance(ends_at_ms, int) and ends_at_ms <= now_ms
