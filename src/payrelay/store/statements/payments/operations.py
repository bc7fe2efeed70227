"""The journal: operations, their histories, and the rows that are written beside them in one unit of work."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

import itertools
from typing import Final, NamedTuple

from payrelay.core.payments.operation import Kind, Operation, OperationFilter, State
from payrelay.store.engine.database import Database, Row, Value
from payrelay.store.engine.queries import Query, asked, batched_query, in_batch, query, query_among
from payrelay.store.engine.tables import TIMING, Binding, StructTable, Table, columns_for
from payrelay.store.statements.events.outbox import PUT_EVENT
from payrelay.store.statements.pagination import Among, ListIndex, Listing, columns_of, read_page


def call_context(operation_id: str) -> bytes:
    """Gives the seal context of an operation's call."""
    return f"{operation_id}/call".encode()


def answer_context(operation_id: str) -> bytes:
    """Gives the seal context of an operation's answer."""
    return f"{operation_id}/answer".encode()


CHAINED_DIGEST: Final = """CASE WHEN operations.chain = COALESCE(
        (SELECT hash FROM history WHERE operation_id = operations.id ORDER BY version DESC LIMIT 1),
        CASE WHEN operations.closed_history LIKE '[' || operations.version || ',%' THEN operations.chain END
    ) THEN operations.row_digest ELSE '' END"""
"""The digest of an operation's row, and none where the row is not the one that its newest journal entry left: so a row
that was put back whole to what it was before has none. Only where one snapshot shows both, as in a plain SELECT. A
closed history has no entry of its own, and names the version that its newest entry left."""


class _Operations(StructTable[Operation]):
    """In a row a void has another kind than in its operation (``Kind.stored``)."""

    def value(self, row: Row) -> Operation:
        """Converts the columns of a row."""
        if row[_KIND] == Kind.VOID.stored:
            row = (*row[:_KIND], Kind.VOID.value, *row[_KIND + 1 :])
        return super().value(row)

    def row(self, value: Operation) -> tuple[Value, ...]:
        """Gives the columns of a row."""
        columns = super().row(value)
        return (*columns[:_KIND], value.kind.stored, *columns[_KIND + 1 :])

    @property
    def packed(self) -> str:
        """A row as one JSON array, with CHAINED_DIGEST behind its columns."""
        return f"json_build_array('{self.name}', {self.qualified}, {CHAINED_DIGEST})"


OPERATIONS: Final = _Operations(
    name="operations",
    kind=Operation,
    columns=columns_for(Operation, inquire_at_ms="probe_at_ms"),
    uncovered={
        "claim": "it is forgotten without a change of the operation; the audit compares it",
        "claim_ends_at_ms": "it is forgotten with the claim",
        "probe_at_ms": TIMING,
        "closed_history": "it is signed by the key of the chain, and the audit compares it",
    },
    sealed={"sealed_call": Binding(call_context), "sealed_answer": Binding(answer_context)},
)

_KIND: Final = OPERATIONS.columns.index("kind")
READ_COLUMNS: Final = f"{OPERATIONS.listed}, {CHAINED_DIGEST}"
"""What is read of an operation: nothing is concluded from a row without its digest."""

_ACCEPTED_TYPES: Final = (*OPERATIONS.types, "bytea", "bigint", "text", "text", "text", "text")
"""Of an operation's columns, its sealed call, its first entry, and its digest."""
_RECORDED_TYPES: Final = (
    *("text", "text", "bigint", "text", "bigint", "text", "text", "bigint", "bigint", "bytea"),
    *("bigint", "text", "text", "bigint", "text", "text", "text", "text", "text"),
)
_ANSWERED_TYPES: Final = ("text", "text", "bigint", "text")
_EVENT_TYPES: Final = ("text", "text", "text", "text", "text", "text", "bigint", "text", "text")

_INSERTED: Final = OPERATIONS.into("sealed_call")
_INSERT_OPERATION: Final = f"""
    {_INSERTED}
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
            $24, $25, $26, $27, $32)
    ON CONFLICT DO NOTHING"""

ACCEPT: Final = query(
    f"""
    WITH accepted AS ({_INSERT_OPERATION} RETURNING id),
    line AS (
        INSERT INTO history (operation_id, version, at_ms, event, state, evidence, row_digest, hash)
        SELECT id, $7::bigint, $28::bigint, $29::text, $6::text, $30::text, $31::text, $25::text FROM accepted
    )
    SELECT id FROM accepted""",
    sqlite=(
        _INSERT_OPERATION,
        """INSERT INTO history (operation_id, version, at_ms, event, state, evidence, row_digest, hash)
           VALUES ($1, $7, $28, $29, $6, $30, $31, $25)""",
    ),
    batch=f"""
    WITH asked AS (SELECT * FROM {asked(_ACCEPTED_TYPES)}),
    accepted AS (
        {_INSERTED} SELECT {", ".join(f"p{number}" for number in (*range(1, 28), 32))} FROM asked ORDER BY p3, p9, place
        ON CONFLICT DO NOTHING RETURNING id
    ),
    line AS (
        INSERT INTO history (operation_id, version, at_ms, event, state, evidence, row_digest, hash)
        SELECT p1, p7, p28, p29, p6, p30, p31, p25 FROM asked JOIN accepted ON accepted.id = asked.p1
    )
    SELECT accepted.id, asked.place FROM asked JOIN accepted ON accepted.id = asked.p1""",
)
"""Stores an operation and its sealed call with its first journal entry. Gives no row, and writes nothing, where its id
exists or its claim or guard is held. A batch takes guards in one order: so two processes hardly ever wait for each
other."""

_UPDATE_OPERATION: Final = """
    UPDATE operations
    SET state = $2, version = $3::bigint, guard = $4, claim_ends_at_ms = $5, payment_id = $6, result_ref = $7,
        updated_at_ms = $8, send_by_ms = $9, sealed_answer = COALESCE($10::bytea, sealed_answer),
        probe_at_ms = $14, chain = $15, row_digest = $19{more}{source}
    WHERE id = $1 AND version = $3::bigint - 1 AND chain = $18
      AND (SELECT hash FROM history WHERE operation_id = $1 ORDER BY version DESC LIMIT 1) = $18"""

_ANSWERED: Final = ", order_id = $20, subscription_id = $21, amount_minor = $22, currency = $23"

_CLAIM_GIVEN_BACK: Final = ", claim = NULL"


class RecordStatement(NamedTuple):
    """Selects one of the statements that change an operation.

    Attributes:
        is_answered: the reply may set its order, subscription and amount.
        gives_claim_back: it gives its claim back.
        has_event: the change has an event.
    """

    is_answered: bool
    gives_claim_back: bool
    has_event: bool


def _record(choice: RecordStatement) -> Query:
    more = (_ANSWERED if choice.is_answered else "") + (_CLAIM_GIVEN_BACK if choice.gives_claim_back else "")
    update = _UPDATE_OPERATION.format(more=more, source="")
    batch_update = in_batch(_UPDATE_OPERATION.format(more=more, source=" FROM asked"))
    types = (
        *_RECORDED_TYPES,
        *(_ANSWERED_TYPES if choice.is_answered else ()),
        *(_EVENT_TYPES if choice.has_event else ()),
    )
    first = 24 if choice.is_answered else 20
    numbers = [f"${number}" for number in range(first, first + len(_EVENT_TYPES))]
    typed = ", ".join(f"{number}::{kind}" for number, kind in zip(numbers, _EVENT_TYPES, strict=True))
    event_part = f", told AS ({PUT_EVENT} SELECT {typed} FROM changed{{join}})" if choice.has_event else ""
    follows = f"""
        line AS (
            INSERT INTO history (
                operation_id, version, at_ms, event, state, evidence, row_digest, answer_digest, hash
            )
            SELECT id, $3::bigint, $11::bigint, $12::text, $2::text, $13::text, $16::text, $17::text, $15::text
            FROM changed{{join}}
        ){event_part}"""
    join = " JOIN asked ON asked.p1 = changed.id"
    return query(
        f"""
        WITH changed AS ({update} RETURNING id), {follows.format(join="")}
        SELECT id FROM changed""",
        batch=f"""
        WITH asked AS (SELECT * FROM {asked(types)}),
        changed AS ({batch_update} RETURNING operations.id), {in_batch(follows.format(join=join))}
        SELECT changed.id, asked.place FROM changed{join}""",
        sqlite=(
            update,
            """INSERT INTO history (
                   operation_id, version, at_ms, event, state, evidence, row_digest, answer_digest, hash
               )
               VALUES ($1, $3, $11, $12, $2, $13, $16, $17, $15)""",
            *([f"{PUT_EVENT} VALUES ({', '.join(numbers)})"] if choice.has_event else ()),
        ),
    )


RECORDS: Final = {
    choice: _record(choice)
    for choice in (RecordStatement(*choices) for choices in itertools.product((False, True), repeat=3))
}
"""The statements that change an operation that still has the version before.

They add the journal entry, and store the sealed answer where there is one. They give no row, and write nothing, where
the version, or the hash to which the new entry is chained, is another. Nor do they where the history's newest entry has
another hash: somebody put the row back to what it was before then, or took entries away.

The claim stays as it is unless it is given back. So a claim that has lapsed, and that another operation took over, is
not taken back. The order and amount of a charge stay too. Its reply can't change them, and a database rewrites an index
for every column that is set. An answered change takes four parameters more, and after them a change with an event takes
the event's nine. One statement writes both, which costs PostgreSQL no round trip.
"""

CLOSED_HISTORY: Final = query(
    f"""
    SELECT {OPERATIONS.listed}, closed_history FROM operations
    WHERE id = $1 AND closed_history IS NOT NULL""",
)
"""Reads what is kept of a cleared history, behind its operation's columns."""

FIND_CLAIM: Final = batched_query(
    f"SELECT {READ_COLUMNS}, sealed_answer FROM operations WHERE principal = $1 AND claim = $2", "text", "text"
)
"""Finds the operation that holds a claim, lapsed or not, and its sealed answer."""

GIVE_CLAIM_BACK: Final = query(
    """
    UPDATE operations SET claim = NULL, claim_ends_at_ms = NULL
    WHERE id = $1 AND claim_ends_at_ms <= $2
    RETURNING id""",
)
"""Takes a lapsed claim from the operation that holds it."""

FIND_GUARD: Final = query(f"SELECT {READ_COLUMNS} FROM operations WHERE merchant = $1 AND guard = $2")
"""Finds the operation that holds a guard."""

GET: Final = query(f"SELECT {READ_COLUMNS} FROM operations WHERE id = $1")
"""Reads one operation."""

ANSWER_OF: Final = query("SELECT sealed_answer FROM operations WHERE id = $1")
"""Reads the sealed answer of an operation."""

CALL_OF: Final = query("SELECT sealed_call FROM operations WHERE id = $1")
"""Reads the sealed call of an operation."""

HISTORY: Final = query(
    """
    SELECT operation_id, version, at_ms, event, state, evidence, row_digest, answer_digest, hash,
           (SELECT chain FROM operations WHERE id = $1)
    FROM history WHERE operation_id = $1 ORDER BY version LIMIT $2""",
)
"""Reads the history of an operation with its hashes, the oldest journal entry first, and the hash that the row has."""

NEWEST_BY_KEY: Final = query(
    f"""
    SELECT {READ_COLUMNS} FROM operations WHERE claim = $2 AND account = $3
    UNION ALL
    SELECT {READ_COLUMNS} FROM operations WHERE idempotency_key = $1 AND claim IS NULL AND account = $3
    ORDER BY id DESC LIMIT 1""",
)
"""Finds the newest operation on an account that any principal asked for under an Idempotency-Key, by the key or by its
claim."""

NEWEST_BY_KEY_OF: Final = query(
    f"""
    SELECT {READ_COLUMNS} FROM operations WHERE claim = $2 AND account = $3 AND principal = $4
    UNION ALL
    SELECT {READ_COLUMNS} FROM operations
    WHERE idempotency_key = $1 AND claim IS NULL AND account = $3 AND principal = $4
    ORDER BY id DESC LIMIT 1""",
)
"""Finds the newest operation on an account that one principal asked for under an Idempotency-Key, by the key or by its
claim."""


def _newest_equal(named: str) -> Query:
    return query(
        f"""
        SELECT {READ_COLUMNS}, sealed_answer FROM operations
        WHERE {named} AND fingerprint = $3 AND id > $4 AND id <> $5
          AND (idempotency_key IS NOT NULL OR state <> '{State.NOT_SENT}') ORDER BY id DESC LIMIT 1""",
    )


NEWEST_EQUAL_BY: Final = {
    "order_id": _newest_equal("order_id = $1 AND principal = $2"),
    "payment_id": _newest_equal("payment_id = $1 AND principal = $2"),
    "subscription_id": _newest_equal("subscription_id = $1 AND principal = $2"),
    "account": _newest_equal(f"account = $1 AND principal = $2 AND kind = '{Kind.VOID.stored}'"),
}
"""Finds a principal's newest operation with a fingerprint, among those with ids above $4 other than $5, and its sealed
answer: by its order, payment or subscription, and a void, whose order may not be known, among all voids. A request
without a key that wasn't sent is left out: it may have been withdrawn in favour of the one that is to be found."""

STRANDED: Final = query(
    f"""
    SELECT {READ_COLUMNS} FROM operations
    WHERE state IN ('accepted', 'sending') AND send_by_ms < $1 ORDER BY send_by_ms LIMIT $2""",
)
"""Finds operations under way whose time to be sent ended before a time, the longest ended first."""

AUTHORIZATION_OF: Final = query(
    f"""
    SELECT {READ_COLUMNS} FROM operations
    WHERE result_ref = $1 AND merchant = $2 ORDER BY id DESC LIMIT 1""",
)
"""Finds the operation that yielded an authorization token, by the token's hash."""

PRUNE: Final = query(
    """
    UPDATE operations SET claim = NULL, claim_ends_at_ms = NULL
    WHERE id IN (
        SELECT id FROM operations WHERE claim_ends_at_ms <= $1 ORDER BY claim_ends_at_ms LIMIT $2
    )
    RETURNING id""",
)
"""Takes lapsed claims from the operations that hold them, a limited number at a time."""

_UNDER_WAY: Final = Among("state", ("accepted", "sending"))
RARE: Final = Among.all_but("state", (State.SUCCEEDED, *_UNDER_WAY.values), State)
"""The states of operations that did not end well, or not yet. All others succeeded, or are under way for a moment."""
_RARE_KINDS: Final = Among.all_but("kind", (Kind.CHARGE,), (kind.stored for kind in Kind))

LIST_OPERATIONS: Final = Listing(
    "operations",
    READ_COLUMNS,
    (
        ListIndex(("id",), is_narrow=True),
        ListIndex(("payment_id",), is_sorted=False, is_narrow=True),
        ListIndex(("order_id",), is_sorted=False, is_narrow=True),
        ListIndex(("subscription_id",), is_narrow=True),
        ListIndex(("customer_id",), is_narrow=True),
        ListIndex((), _UNDER_WAY, is_sorted=False),
        ListIndex(("principal", "account", "state"), RARE),
        ListIndex(("account", "state"), RARE),
        ListIndex(("state",), RARE),
        ListIndex(("principal", "account", "kind"), _RARE_KINDS),
        ListIndex(("account", "kind"), _RARE_KINDS),
        ListIndex(("principal", "account")),
        ListIndex(("account",)),
        ListIndex(("principal",), is_sorted=False),
    ),
)
"""The listed columns of operations, and the indexes of the list."""


async def list_page(database: Database, filters: OperationFilter, *, before: str | None, limit: int) -> list[Row]:
    """Reads the rows of one page of operations, newest first, with ids below ``before``. Raises StoreUnavailable."""
    equal = columns_of(filters)
    if filters.kind is not None:
        equal["kind"] = filters.kind.stored
    return await read_page(database, LIST_OPERATIONS, equal, before=before, limit=limit)


INVALIDATE: Final = query(
    """
    INSERT INTO bumps (merchant, version) VALUES ($1, 1)
    ON CONFLICT (merchant) DO UPDATE SET version = bumps.version + 1""",
)
"""Counts that something happened that may change any reading of a merchant account's."""

FAILED_REFUNDS: Final = Table(name="failed_refunds", columns=("operation_id", "merchant", "payment_id", "known_at_ms"))

ADD_FAILED: Final = query(
    f"""
    {FAILED_REFUNDS.insert()}
    ON CONFLICT (operation_id) DO NOTHING
    RETURNING operation_id""",
)
"""Stores that a refund has failed; gives no row where that is stored."""

END_UNKEYED_CLAIM: Final = query(
    "UPDATE operations SET claim = NULL, claim_ends_at_ms = NULL WHERE id = $1 AND claim LIKE 'fingerprint/%'"
)
"""Takes the claim of a request without a key from its operation, so that an equal request begins another one."""

FAILED_AMONG: Final = query_among(
    f"{FAILED_REFUNDS.select} WHERE merchant = $1 AND operation_id @2",
)
"""Reads those of some operations that are refunds which failed later."""
