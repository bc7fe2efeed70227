"""The last known answers to reads, and the versions that outdate them."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import Query, asked, batched_query, query, query_among
from payrelay.store.engine.tables import Table
from payrelay.store.statements.data_keys import key_of, put_key_after, put_keys

_INVALIDATES: Final = "COALESCE((SELECT version FROM bumps WHERE merchant = $1), 0)"

_OPERATIONS_WITH: Final = f"SELECT {_INVALIDATES}, count(*), COALESCE(sum(version), 0)::bigint FROM operations WHERE "

VERSION_OF_MERCHANT: Final = query(f"SELECT {_INVALIDATES}")
"""Reads how often something happened that may change any reading of a merchant account's."""

VERSION_OF_ORDER: Final = batched_query(_OPERATIONS_WITH + "order_id = $2 AND merchant = $1", "text", "text")
"""Reads the version of the merchant account, and the number and versions of the operations on an order. No operation is
ever removed, and each change raises its version."""

VERSION_OF_SUBSCRIPTION: Final = query(_OPERATIONS_WITH + "subscription_id = $2 AND merchant = $1")
"""Reads the version of the merchant account, and the number and versions of the operations on a subscription."""

LAST_READING: Final = query(
    f"SELECT sealed, {key_of('$3::text')}, read_at_ms FROM readings WHERE merchant = $1 AND subject = $2",
)
"""Reads the last answer to a read, and the data key of $3."""

_KEPT: Final = "INSERT INTO readings (merchant, subject, sealed, read_at_ms)"
_UNLESS_READ_LATER: Final = """
    ON CONFLICT (merchant, subject) DO UPDATE SET sealed = excluded.sealed, read_at_ms = excluded.read_at_ms
    WHERE readings.read_at_ms <= excluded.read_at_ms"""
_KEEP: Final = f"{_KEPT} VALUES ($2, $3, $4, $5) {_UNLESS_READ_LATER}"
_KEPT_TYPES: Final = ("text", "text", "text", "bytea", "bigint", "bytea")
"""Of an answer, before those of its payments: the owner of its data key, its columns, and its data key. Each answer has
another owner, so a batch of them is sorted by it."""

PAYMENTS_SEEN: Final = Table(
    name="payments_seen",
    columns=("merchant", "payment_id", "order_id", "status", "currency", "amount_minor", "seen_at_ms"),
    keys=2,
)
_NOTED: Final = PAYMENTS_SEEN.into()
_UNLESS_LATER: Final = """ON CONFLICT (merchant, payment_id) DO UPDATE
    SET order_id = excluded.order_id, status = excluded.status, currency = excluded.currency,
        amount_minor = excluded.amount_minor, seen_at_ms = excluded.seen_at_ms, row_digest = excluded.row_digest
    WHERE payments_seen.seen_at_ms <= excluded.seen_at_ms"""
_NOTED_TYPES: Final = ("text", "text", "text", "text", "text", "bigint", "bigint", "text")

NOTE_PAYMENT: Final = query(f"{PAYMENTS_SEEN.insert()} {_UNLESS_LATER}")
"""Notes the status of a payment, unless a later one is known."""

RETURNS_SEEN: Final = Table(name="returns_seen", columns=("merchant", "payment_id", "status", "seen_at_ms"), keys=3)
RECEIVED_AT: Final = query(
    "SELECT seen_at_ms FROM payments_seen WHERE merchant = $1 AND payment_id = $2 AND status = $3 AND seen_at_ms < $4"
)
"""Reads when a payment was last seen, where it was seen with the status of $3 before $4."""

LOCK_SEEN: Final = query_among(
    "SELECT payment_id FROM payments_seen WHERE merchant = $1 AND payment_id @2 ORDER BY payment_id FOR UPDATE",
)
"""Locks what was seen of some payments last until the transaction ends, in the order in which all units take them."""

RETURNED_AMONG: Final = query_among(
    """
    SELECT payment_id FROM returns_seen WHERE merchant = $1 AND payment_id @2
    UNION SELECT payment_id FROM chargebacks WHERE merchant = $1 AND payment_id @2
    UNION SELECT payment_id FROM imported_payments
    WHERE merchant = $1 AND payment_id @2 AND status <> 'RECEIVED'""",
)
"""Reads those of some payments of which anything says that they went back."""

_NOTED_RETURN: Final = f"""
    {RETURNS_SEEN.insert()}
    ON CONFLICT (merchant, payment_id, status) DO UPDATE
    SET seen_at_ms = excluded.seen_at_ms, row_digest = excluded.row_digest"""

NOTE_RECEIVED: Final = query(f"{_NOTED_RETURN} WHERE returns_seen.seen_at_ms < excluded.seen_at_ms")
"""Notes when a payment's record showed it as received before it showed another status, or again; the latest counts."""

FORGET_RETURN: Final = query("DELETE FROM returns_seen WHERE merchant = $1 AND payment_id = $2 AND status = $3")
"""Forgets a time at which a payment's record showed it so."""

_RECEIVED_MS: Final = """COALESCE((
    SELECT received.seen_at_ms FROM returns_seen AS received
    WHERE received.merchant = $1 AND received.payment_id = $2 AND received.status = $6
), -1)"""

NOTE_RETURN: Final = query(
    f"""{_NOTED_RETURN}
    WHERE (returns_seen.seen_at_ms < {_RECEIVED_MS} AND excluded.seen_at_ms > returns_seen.seen_at_ms)
        OR (excluded.seen_at_ms > {_RECEIVED_MS} AND excluded.seen_at_ms < returns_seen.seen_at_ms)"""
)
"""Notes by when a payment's record showed it as given back or charged back. The first time since it showed the status
of $6 counts."""

NOTED_WITH_MAX: Final = 4
"""Payments that are noted by the statement that stores their reading. An order has one, and rarely two."""


def _keep_reading(payments: int) -> Query:
    """Writes the query that stores an answer and notes the status of some payments, whose values follow on each other.

    Where a later answer is stored already, it writes nothing.
    """
    size, first = len(_NOTED_TYPES), len(_KEPT_TYPES) + 1
    numbers = [range(start, start + size) for start in range(first, first + payments * size, size)]
    typed = [", ".join(f"${n}::{kind}" for n, kind in zip(each, _NOTED_TYPES, strict=True)) for each in numbers]
    noted = [f"{_NOTED} SELECT {values} FROM changed {_UNLESS_LATER}" for values in typed]
    both, keep_key = put_key_after(_KEEP, owner="$1", sealed_key="$6", beside=noted)
    plain = [", ".join(f"${n}" for n in each) for each in numbers]
    return query(
        both,
        sqlite=(_KEEP, keep_key, *(f"{_NOTED} VALUES ({values}) {_UNLESS_LATER}" for values in plain)),
        batch=_keep_readings(numbers),
    )


def _keep_readings(numbers: list[range]) -> str:
    """Writes the text that keeps several answers at once; of a payment that several show, the latest state counts."""
    notes = " UNION ALL ".join(f"SELECT {', '.join(f'p{number}' for number in each)} FROM kept" for each in numbers)
    named = PAYMENTS_SEEN.read
    noted = f""",
    noted AS (
        {_NOTED} SELECT DISTINCT ON (merchant, payment_id) {named} FROM ({notes}) AS shown ({named})
        ORDER BY merchant, payment_id, seen_at_ms DESC {_UNLESS_LATER}
    )"""
    return f"""
    WITH asked AS (SELECT * FROM {asked((*_KEPT_TYPES, *_NOTED_TYPES * len(numbers)))}),
    changed AS (
        {_KEPT} SELECT p2, p3, p4, p5 FROM asked ORDER BY p1 {_UNLESS_READ_LATER} RETURNING merchant, subject
    ),
    kept AS (
        SELECT asked.* FROM asked JOIN changed ON changed.merchant = asked.p2 AND changed.subject = asked.p3
    ){noted if numbers else ""},
    keys AS ({put_keys("SELECT p1, p6 FROM kept ORDER BY p1")} RETURNING owner)
    SELECT keys.owner, kept.place FROM kept JOIN keys ON keys.owner = kept.p1"""


KEEP_READINGS: Final = tuple(_keep_reading(payments) for payments in range(NOTED_WITH_MAX + 1))
"""Store an answer to a read in place of an earlier one, and its data key in place of that one's. With them goes the
status of as many payments as the query's place says."""

FORGET_READING: Final = query("DELETE FROM readings WHERE merchant = $1 AND subject = $2 RETURNING subject")
"""Forgets the last answer to a read."""

PRUNE_CACHED_READINGS: Final = query(
    """
    DELETE FROM readings WHERE (merchant, subject) IN (
        SELECT merchant, subject FROM readings WHERE read_at_ms < $1 ORDER BY read_at_ms LIMIT $2
    )
    RETURNING merchant, subject""",
)
"""Forgets the oldest answers to reads, a limited number at a time."""
