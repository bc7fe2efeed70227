"""The audit's view of the journal: rows as they lie in the database, and the anchors over them.

Nothing here trusts a row, because an attacker may have put anything into it.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec

from payrelay.core.payments.audit_chain import (
    EXPLANATION_PREFIX,
    HASHED,
    AnchorCheckpoint,
    AnchoredSpan,
    AnchorExplanation,
    ChainKey,
    HistoryCheckpoint,
    Link,
    closed_history,
    digest_of_values,
    weight,
)
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import StoreUnusable
from payrelay.store.digests.rows import ALERT_VERSION as ROW_ALERT_VERSION
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows, first_row
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.operation_rows import (
    CLEARED,
    answer_context,
    call_context,
    link_of,
)
from payrelay.store.statements import meta
from payrelay.store.statements.alerts import ADD_ANCHOR_ALERT, ADD_ROW_ALERT, GET_ROW_ALERT, TOLD_ON
from payrelay.store.statements.payments import audit as statements

PAGE: Final = 500
"""Rows that are read at once: few enough that a server which reads them delays no request."""
ENTRIES_OF_ONE_MAX: Final = 1_000_000
"""More journal entries than any operation ever has."""
READINGS_MAX: Final = 10
"""How often an operation may change while it is read again; each change takes a call to the gateway."""

_COLUMNS: Final = tuple(Operation.__struct_fields__)
_HASHED_PLACES: Final = tuple(_COLUMNS.index(name) for name in HASHED)
_BEFORE_ALL: Final = -(2**63)
_NO_ANSWER: Final = ""
_NUMBER_DIGITS_MAX: Final = 18
"""Of an anchor's number, which a 64-bit column holds."""


class ChainedEntry(NamedTuple):
    """A journal entry as it lies in the database: its hashed members, and the hash."""

    link: Link
    hash: str


_Entries: TypeAlias = tuple[ChainedEntry, ...]


class AuditRecord(NamedTuple):
    """Everything that is stored of one operation.

    Attributes:
        operation_id: its id.
        row: its columns by name; None where there is no such operation.
        entries: its history, the oldest entry first.
        can_open_call: whether the sealed call is this operation's, and unchanged.
        answer_digest: of the stored answer, empty where there is none; None where it can't be opened.
        is_call_cleared, is_answer_cleared: whether the sealed mark of the clearing is in the place of call or answer.
        checkpoint: what stands for the cleared beginning of its history; None where there is none.
        is_checkpoint_signed: whether the key of the chain has signed it.
        row_digest: of the row as it stands; empty where there is no row.
    """

    operation_id: str
    row: dict[str, Value] | None
    entries: _Entries
    can_open_call: bool
    answer_digest: str | None
    is_call_cleared: bool = False
    is_answer_cleared: bool = False
    checkpoint: HistoryCheckpoint | None = None
    is_checkpoint_signed: bool = True
    row_digest: str = ""


class Anchor(NamedTuple):
    """One anchor: the number of journal entries in a span of time, and a digest over them and the anchor before."""

    number: int
    from_ms: int
    until_ms: int
    entries: int
    digest: str
    made_at_ms: int

    @property
    def text(self) -> str:
        """Names it to people, who keep it outside the database: its number, a colon and its digest."""
        return f"{self.number}:{self.digest}"

    @property
    def span(self) -> AnchoredSpan:
        """The span that it covers."""
        return AnchoredSpan(self.number, self.from_ms, self.until_ms, self.made_at_ms)


_DIGEST_DIGITS: Final = 64
_BEHIND_PREFIX: Final = EXPLANATION_PREFIX[:-1] + chr(ord(EXPLANATION_PREFIX[-1]) + 1)
"""The first name behind all names of explanations."""

_decode_explanation: Final = msgspec.json.Decoder(AnchorExplanation).decode
_encode: Final = msgspec.json.Encoder().encode


class Trail:
    """Reads the journal for the audit, and stores anchors."""

    def __init__(self, database: Database, seal: Seal, key: ChainKey) -> None:
        self._database = database
        self._seal = seal
        self.key = key

    @classmethod
    def under(cls, database: Database, seal: Seal, secret: bytes) -> "Trail":
        """Makes one from the key of the audit chain."""
        return cls(database, seal, ChainKey(secret))

    async def count_operations(self) -> int:
        """Counts the operations."""
        rows = await self._rows(Statement(statements.COUNT_OPERATIONS, ()))
        return cast("int", rows[0][0])

    async def records(self) -> AsyncIterator[AuditRecord]:
        """Reads everything, in the order of the operations' ids; also journal entries without an operation.

        A row and its entries are read one after the other. Where the two disagree, ``record`` tells for certain.
        """
        operations, histories = self._operations(), self._histories()
        row, history = await anext(operations, None), await anext(histories, None)
        while row is not None or history is not None:
            ids = [str(row[0])] if row is not None else []
            operation_id = min([*ids, history[0].link.operation_id] if history else ids)
            entries: _Entries = ()
            if history and history[0].link.operation_id == operation_id:
                entries, history = history, await anext(histories, None)
            if row is not None and row[0] == operation_id:
                yield self._record(operation_id, row, entries)
                row = await anext(operations, None)
            else:
                yield self._record(operation_id, None, entries)

    async def record(self, operation_id: str) -> AuditRecord:
        """Reads one operation with its history as they were at one moment."""
        row, entries = await self._database.read(_reading(operation_id))
        return self._record(operation_id, row, entries)

    async def unguarded_checkouts(self) -> AsyncIterator[str]:
        """Reads the ids of checkouts that don't hold their order although they are open, or that hold another one."""
        after = ""
        while rows := await self._rows(Statement(statements.UNGUARDED_CHECKOUTS, (after, PAGE))):
            for (checkout_id,) in rows:
                after = str(checkout_id)
                yield after

    async def miscounted_texts(self) -> list[str]:
        """Reads some ids of checkouts and operations that have more or fewer signed texts than their rows say."""
        return [str(subject) for (subject,) in await self._rows(Statement(statements.MISCOUNTED, (PAGE,)))]

    async def last_anchor(self) -> Anchor | None:
        """Reads the newest anchor."""
        rows = await self._rows(Statement(statements.LAST_ANCHOR, ()))
        return _anchor(rows[0]) if rows else None

    async def last_anchor_before(self, at_ms: int) -> int:
        """Reads the number of the newest anchor that was made before a time; 0 where there is none."""
        [[number]] = await self._rows(Statement(statements.LAST_ANCHOR_BEFORE, (at_ms,)))
        return int(number or 0)

    async def anchors(self) -> AsyncIterator[Anchor]:
        """Reads all anchors, oldest first."""
        number = _BEFORE_ALL
        while rows := await self._rows(Statement(statements.LIST_ANCHORS, (number, PAGE))):
            for row in rows:
                yield _anchor(row)
            number = _anchor(rows[-1]).number

    async def has_anchor(self, text: str) -> bool:
        """Tells whether there is an anchor of this number and digest. Raises StoreUnavailable."""
        number, _, digest = text.partition(":")
        if not number.isdecimal() or len(number) > _NUMBER_DIGITS_MAX:
            return False
        rows = await self._rows(Statement(statements.LIST_ANCHORS, (int(number) - 1, 1)))
        return bool(rows) and _anchor(rows[0]).text == f"{int(number)}:{digest}"

    async def tell(self, anchor: Anchor, now_ms: int) -> str:
        """Stores that the alert channels are to be told an anchor; gives the one that they are told on this day.

        That is an earlier one where one was stored on this day already. Raises StoreUnavailable.
        """
        day = now_ms // DAY_MS
        parameters = (anchor.text, day, now_ms, now_ms)
        await self._database.write(all_rows(Statement(ADD_ANCHOR_ALERT, parameters, is_whole=True)))
        rows = await self._rows(Statement(TOLD_ON, (day,)))
        return str(rows[0][0]) if rows else anchor.text

    async def report(self, row_name: str, now_ms: int) -> None:
        """Stores an alert about a row, once for each name. Raises StoreUnavailable."""
        parameters = (row_name, ROW_ALERT_VERSION, now_ms, now_ms)
        await self._database.write(all_rows(Statement(ADD_ROW_ALERT, parameters, is_whole=True)))

    async def has_reported(self, row_name: str) -> bool:
        """Tells whether an alert was ever stored under a name. Raises StoreUnavailable."""
        return await self._database.read(first_row(Statement(GET_ROW_ALERT, (row_name,)))) is not None

    async def add(self, anchor: Anchor) -> bool:
        """Stores an anchor; False where another process was quicker."""
        statement = Statement(statements.ADD_ANCHOR, tuple(anchor), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def explanations(self) -> tuple[list[AnchorExplanation], list[str]]:
        """Reads the explanations of anchors, and the names of those that the key of the chain has not signed."""
        right, wrong = list[AnchorExplanation](), list[str]()
        for name, value in await self._rows(Statement(meta.META_BETWEEN, (EXPLANATION_PREFIX, _BEHIND_PREFIX))):
            signature, text = blob_of(value)[:_DIGEST_DIGITS], blob_of(value)[_DIGEST_DIGITS:]
            explanation = _decode_explanation(text) if self.key.explanation(text).encode() == signature else None
            if explanation is not None and explanation.name == name:
                right.append(explanation)
            else:
                wrong.append(str(name))
        return right, wrong

    async def explain(self, explanation: AnchorExplanation) -> bool:
        """Adds an explanation, signed by the key of the chain; False where there is one of the same entries."""
        text = _encode(explanation)
        value = self.key.explanation(text).encode() + text
        statement = Statement(meta.ADD_META, (explanation.name, value), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def time_of_entry(self, number: int, from_ms: int, until_ms: int) -> int | None:
        """Gives the time of the n-th journal entry in a span, counted from 0; None where there are fewer."""
        rows = await self._rows(Statement(statements.NTH_ENTRY_AT, (from_ms, until_ms, number)))
        return cast("int", rows[0][0]) if rows else None

    async def anchor(self, previous: str, span: AnchoredSpan) -> Anchor:
        """Computes the anchor over the journal entries that a span has now; stores nothing."""
        digest = self.key.anchor(previous, span)
        async for link, entry_hash in self._entries_of(span):
            digest.add(link.operation_id, link.version, entry_hash)
        return Anchor(span.number, span.from_ms, span.until_ms, digest.entries, digest.end(), span.made_at_ms)

    async def entries_of(self, operation_id: str) -> _Entries:
        """Reads the journal entries of one operation. Raises StoreUnavailable."""
        statement = Statement(statements.AUDIT_ENTRIES_OF, (operation_id, ENTRIES_OF_ONE_MAX))
        return tuple(map(chained_entry, await self._rows(statement)))

    async def sum_of(self, span: AnchoredSpan) -> tuple[int, int]:
        """Counts the journal entries that a span has now, and sums their weights. Raises StoreUnavailable."""
        entries = total = 0
        async for link, entry_hash in self._entries_of(span):
            entries += 1
            total += weight(self.key, link.operation_id, link.version, entry_hash)
        return entries, total

    async def anchor_checkpoint(self, number: int) -> AnchorCheckpoint | None:
        """Reads the checkpoint of an anchor; None where there is none that is signed. Raises StoreUnavailable."""
        rows = await self._rows(Statement(statements.ANCHOR_CHECKPOINTS, (number - 1, 1)))
        if not rows or rows[0][0] != number:
            return None
        *members, signature = rows[0]
        found = AnchorCheckpoint(*members)  # type: ignore[arg-type] # columns have their types by the schema
        return found if found.signature(self.key) == signature else None

    async def _entries_of(self, span: AnchoredSpan) -> AsyncIterator[ChainedEntry]:
        at_ms, operation_id, version = span.from_ms, "", _BEFORE_ALL
        while True:
            parameters = (at_ms, span.until_ms, operation_id, version, PAGE)
            rows = await self._rows(Statement(statements.AUDIT_ENTRIES_BY_TIME, parameters))
            if not rows:
                return
            for row in rows:
                yield chained_entry(row)
            operation_id, version, at_ms = chained_entry(rows[-1]).link[:3]

    async def _operations(self) -> AsyncIterator[Row]:
        operation_id, page = "", statements.FIRST_AUDIT_ROWS
        while rows := await self._rows(Statement(page, (operation_id, PAGE))):
            for row in rows:
                yield row
            operation_id, page = str(rows[-1][0]), statements.AUDIT_ROWS

    async def _histories(self) -> AsyncIterator[_Entries]:
        operation_id, version = "", _BEFORE_ALL
        entries: list[ChainedEntry] = []
        while rows := await self._rows(Statement(statements.AUDIT_ENTRIES, (operation_id, version, PAGE))):
            for entry in map(chained_entry, rows):
                if entries and entries[-1].link.operation_id != entry.link.operation_id:
                    yield tuple(entries)
                    entries = []
                entries.append(entry)
            operation_id, version = entries[-1].link[:2]
        if entries:
            yield tuple(entries)

    async def _rows(self, statement: Statement) -> list[Row]:
        # The embedded database reads without waiting: between two pages a server's requests must have their turn.
        await asyncio.sleep(0)
        return await self._database.read(all_rows(statement))

    def _record(self, operation_id: str, row: Row | None, entries: _Entries) -> AuditRecord:
        if row is None:
            return AuditRecord(operation_id, None, entries, can_open_call=False, answer_digest=None)
        *values, sealed_call, sealed_answer, kept = row
        call = self._opened(sealed_call, call_context(operation_id))
        answer = None if sealed_answer is None else self._opened(sealed_answer, answer_context(operation_id))
        checkpoint, is_signed = None, True
        if kept is not None:
            closed = closed_history(kept, values, self.key)
            is_signed = closed is not None and closed.is_signed
            if closed is not None:
                checkpoint = closed.checkpoint
                entries = (*entries, ChainedEntry(closed.newest, closed.hash))
        return AuditRecord(
            operation_id,
            dict(zip(_COLUMNS, values, strict=True)),
            entries,
            can_open_call=call is not None,
            answer_digest=self._answer_digest(operation_id, sealed_answer, answer),
            is_call_cleared=call == CLEARED,
            is_answer_cleared=answer == CLEARED,
            checkpoint=checkpoint,
            is_checkpoint_signed=is_signed,
            row_digest=digest_of_values(tuple(values[place] for place in _HASHED_PLACES)),
        )

    def _answer_digest(self, operation_id: str, sealed: Value, plain: bytes | None) -> str | None:
        if sealed is None or plain == CLEARED:
            return _NO_ANSWER
        return None if plain is None else self.key.answer(operation_id, plain)

    def _opened(self, sealed: Value, context: bytes) -> bytes | None:
        try:
            return self._seal.open(cast("bytes", sealed), context)
        except StoreUnusable:
            return None


def _reading(operation_id: str) -> Unit[tuple[Row | None, _Entries]]:
    """Reads the row before and after its entries, until both are equal: then the entries are of that moment."""
    row_statement = Statement(statements.AUDIT_ROW, (operation_id,))
    before = yield row_statement
    entries: list[Row] = []
    for _ in range(READINGS_MAX):
        entries = yield Statement(statements.AUDIT_ENTRIES_OF, (operation_id, ENTRIES_OF_ONE_MAX))
        after = yield row_statement
        if list(map(tuple, before)) == list(map(tuple, after)):
            break
        before = after
    return (before[0] if before else None), tuple(map(chained_entry, entries))


def chained_entry(row: Row) -> ChainedEntry:
    """Converts a row that has the columns of a journal entry with its hash."""
    return ChainedEntry(*link_of(row))


def _anchor(row: Row) -> Anchor:
    return Anchor(*row)  # type: ignore[arg-type] # columns have their types by the schema
