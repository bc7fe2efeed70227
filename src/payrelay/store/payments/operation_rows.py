"""Converts an operation to rows and back: its row, its chained journal entry, its sealed call and answer.

A journal entry covers the whole row and the stored answer: their digests are in its hash.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.calls import Effect
from payrelay.core.events.event import of_operation
from payrelay.core.payments.audit_chain import (
    ChainKey,
    Link,
    closed_history,
    row_digest,
)
from payrelay.core.payments.operation import JournalEntry, Kind, Operation
from payrelay.errors import CallCleared, StoreUnusable
from payrelay.store.digests.rows import RowKey, RowVerifier
from payrelay.store.engine.database import Row, Statement, Unit, Value
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import Seal
from payrelay.store.events import outbox
from payrelay.store.statements.payments import operations as statements
from payrelay.store.statements.payments.operations import FAILED_REFUNDS, OPERATIONS

_CHARGES: Final = frozenset({Kind.CHARGE, Kind.AUTHORIZATION})
"""They ask for an order, an amount and a currency. A reply with others is a difference, and changes none of them."""
_CHAIN_START: Final = ""
"""The hash to which the first journal entry is chained."""
_NO_ANSWER: Final = ""
CLEARED: Final = b""
"""The plain text of the sealed mark in the place of a cleared call or answer: no call and no answer is empty."""

call_context: Final = statements.call_context
answer_context: Final = statements.answer_context
_ENTRY_COLUMNS: Final = tuple(JournalEntry.__struct_fields__)

_encode_call = msgspec.msgpack.Encoder().encode
_decode_call = msgspec.msgpack.Decoder(Effect).decode
_encode_answer = msgspec.msgpack.Encoder().encode
_decode_answer = msgspec.msgpack.Decoder(Answer).decode
_encode_evidence = msgspec.json.Encoder().encode


class OperationRows:
    """Makes rows and journal entries, and reads them: sealed by one key, chained and digested by another."""

    def __init__(self, seal: Seal, chain_key: bytes) -> None:
        self._seal = seal
        self.key = ChainKey(chain_key)
        self._digests = RowKey(chain_key)

    def accepted(self, operation: Operation, entry: JournalEntry, call: Effect) -> tuple[Operation, tuple[Value, ...]]:
        """Chains a new operation; gives it as it is stored, and its columns with its first entry and its call."""
        sealed = self._seal.seal(_encode_call(call), call_context(operation.id))
        link = _link(operation, entry, _NO_ANSWER)
        chained = msgspec.structs.replace(operation, chain=self.key.entry(_CHAIN_START, link))
        columns = OPERATIONS.row(chained)
        digest = self._digests.of(OPERATIONS, columns)
        return chained, (*columns, sealed, link.at_ms, link.event, link.evidence, link.row_digest, digest)

    def changed(self, operation: Operation, entry: JournalEntry, answer: Answer | None) -> tuple[Operation, Statement]:
        """Chains a change to the entry before; gives the operation as it is stored, and the storing statement."""
        sealed, digest = None, _NO_ANSWER
        if answer is not None:
            plain = _encode_answer(answer)
            sealed = self._seal.seal(plain, answer_context(operation.id))
            digest = self.key.answer(operation.id, plain)
        link = _link(operation, entry, digest)
        chained = msgspec.structs.replace(operation, chain=self.key.entry(operation.chain, link))
        before_and_after = operation.chain, self._digests.of(OPERATIONS, OPERATIONS.row(chained))
        event = of_operation(operation, entry)
        told = () if event is None else outbox.parameters_of(event, self._digests)
        return chained, _record_statement(chained, link, sealed, before_and_after, told)

    def are_chained(self, rows: Sequence[Row], *, is_whole: bool) -> bool:
        """Tells whether the hashes of a history follow on each other, up to the one that its operation has.

        The rows have the hash of the operation behind an entry's columns. A history that isn't whole is compared as far
        as it goes.
        """
        previous = _CHAIN_START
        for *columns, _ in rows:
            link, entry_hash = link_of(columns)
            if self.key.entry(previous, link) != entry_hash:
                return False
            previous = entry_hash
        return not rows or not is_whole or previous == rows[-1][-1]

    def of_closed(self, row: Row) -> list[JournalEntry]:
        """Gives the newest entry of a closed history, which is all there is of it; none where it or the row was forged.

        The row has the columns of the operation, and behind them what is kept of the history.
        """
        *columns, kept = row
        closed = closed_history(kept, columns, self.key)
        return [entry_of(closed.newest)] if closed is not None and closed.is_right(self.key) else []

    def answer(self, operation_id: str, sealed: Value) -> Answer | None:
        """Opens the stored answer of an operation; None where it was cleared. Raises StoreUnusable."""
        plain = self._seal.open(blob_of(sealed), answer_context(operation_id))
        return None if plain == CLEARED else _decode_answer(plain)

    def call(self, operation_id: str, sealed: Value) -> Effect:
        """Opens the call of an operation. Raises CallCleared where it is no longer kept.

        Raises StoreUnusable where a newer version of Payrelay wrote a call that this one doesn't know. The newer
        version can go on with it.
        """
        plain = self._seal.open(blob_of(sealed), call_context(operation_id))
        if plain == CLEARED:
            raise CallCleared(operation_id)
        try:
            call: Effect = _decode_call(plain)
        except msgspec.ValidationError as error:
            raise StoreUnusable(f"the call of {operation_id} is of another version: {error}") from None
        return call


def _link(operation: Operation, entry: JournalEntry, digest_of_answer: str) -> Link:
    """Gives the hashed members of a journal entry; raises ValueError where it belongs to another version."""
    if (entry.version, entry.state) != (operation.version, operation.state):
        raise ValueError("the journal entry belongs to another version of the operation")
    return Link(
        operation.id,
        entry.version,
        entry.at_ms,
        entry.event,
        entry.state,
        _encode_evidence(entry.evidence).decode(),
        row_digest(operation),
        digest_of_answer,
    )


def _record_statement(
    operation: Operation,
    link: Link,
    sealed: bytes | None,
    before_and_after: tuple[str, str],
    told: tuple[Value, ...],
) -> Statement:
    """Gives the statement of a change; ``before_and_after`` are the hash before it and the row's digest after it.

    ``told`` are the parameters of the event, where the change has one.
    """
    parameters: tuple[Value, ...] = (
        operation.id,
        operation.state,
        operation.version,
        operation.guard,
        operation.claim_ends_at_ms,
        operation.payment_id,
        operation.result_ref,
        operation.updated_at_ms,
        operation.send_by_ms,
        sealed,
        link.at_ms,
        link.event,
        link.evidence,
        operation.inquire_at_ms,
        operation.chain,
        link.row_digest,
        link.answer_digest,
        *before_and_after,
    )
    is_answered = operation.kind not in _CHARGES
    if is_answered:
        parameters += (operation.order_id, operation.subscription_id, operation.amount_minor, operation.currency)
    choice = statements.RecordStatement(is_answered, operation.claim is None, bool(told))
    return Statement(statements.RECORDS[choice], parameters + told, is_whole=True)


def failed_among(merchant: str, ids: Sequence[str], verifier: RowVerifier) -> Unit[dict[str, int]]:
    """Gives those of some operations that are refunds which failed later, and when that became known."""
    rows = yield Statement(statements.FAILED_AMONG, (merchant, msgspec.json.encode(ids).decode()))
    return {str(row[0]): int(str(row[-1])) for row in verifier.right(FAILED_REFUNDS, rows)}


def link_of(row: Row) -> tuple[Link, str]:
    """Gives the hashed members of a stored journal entry, and its hash."""
    *members, entry_hash = row
    return Link(*members), str(entry_hash)  # type: ignore[arg-type] # columns have their types by the schema


def entry_of(row: Row) -> JournalEntry:
    """Converts a row that has the columns of a journal entry in their order, between other ones."""
    members = dict(zip(_ENTRY_COLUMNS, row[1:], strict=False))
    return msgspec.convert(members | {"evidence": msgspec.json.decode(str(members["evidence"]))}, JournalEntry)
