"""A database with a million operations and what hangs on them, made by the database itself from a series of numbers.

The rows are no genuine ones: their digests and sealed values are empty. What counts is how many there are, which values
are usual and which are rare, and that the rare ones are old, so that a search from the newest end meets them last.
"""

# ruff: noqa: S608 - all texts are our own

import sqlite3
from collections.abc import Iterator
from typing import Final, NamedTuple

import asyncpg

OPERATIONS: Final = 1_000_000


class Rows(NamedTuple):
    """The rows of one table: their number, and each column as an expression of the row's number ``n``, from 1 on."""

    table: str
    number: int
    columns: dict[str, str]


_KIND: Final = """CASE WHEN n % 30 = 11 THEN 'refund' WHEN n % 100 = 12 THEN 'authorization'
    WHEN n % 100 = 13 THEN 'capture' WHEN n % 200 = 14 THEN 'retry' WHEN n % 1000 = 15 THEN 'release'
    WHEN n % 1000 = 16 THEN 'cancel' ELSE 'charge' END"""
_STATE: Final = """CASE WHEN n < 400000 AND n % 4000 = 1 THEN 'needs_attention'
    WHEN n < 400000 AND n % 8000 = 2 THEN 'unknown'
    WHEN n < 200000 AND n % 10000 = 3 THEN 'pending' WHEN n > 999990 THEN 'accepted' WHEN n > 999980 THEN 'sending'
    WHEN n < 100 AND n % 25 = 6 THEN 'held' WHEN n % 1000 = 7 THEN 'failed' WHEN n % 300 = 8 THEN 'refused'
    WHEN n % 200 = 9 THEN 'not_sent' WHEN n % 33 = 10 THEN 'declined' ELSE 'succeeded' END"""
_PRINCIPAL: Final = (
    "CASE WHEN n < 20 THEN 'rare' WHEN n % 1000 = 0 THEN 'small' WHEN n % 10 = 3 THEN 'app' ELSE 'shop' END"
)
_ACCOUNT: Final = "CASE WHEN n % 500 = 0 THEN 'second' ELSE 'main' END"
_MERCHANT: Final = "CASE WHEN n % 500 = 0 THEN '1200002' ELSE '1200001' END"
_AT: Final = "1700000000000 + n * 100"
_HAS_PAYMENT: Final = "n % 33 <> 10 AND n % 200 <> 9 AND n % 1000 <> 15"
_CHECKOUT_STATE: Final = """CASE WHEN n % 5 = 1 THEN 'expired' WHEN n % 20 = 2 THEN 'cancelled'
    WHEN n % 50 = 3 THEN 'failed'
    WHEN n < 1000 AND n % 100 = 4 THEN 'notified' WHEN n > 199900 THEN 'open' ELSE 'completed' END"""
_NOTIFICATION_STATE: Final = """CASE WHEN n % 20 = 1 THEN 'ignored' WHEN n % 500 = 2 THEN 'refused'
    WHEN n < 10000 AND n % 1000 = 3 THEN 'needs_attention' WHEN n > 299950 THEN 'waiting'
    WHEN n > 299940 THEN 'received' ELSE 'applied' END"""
_SUBJECTS: Final = {"subject": "CASE WHEN n % 3 = 0 THEN {id:op} ELSE {id:chk} END"}
_ALERT: Final = {"version": "1", "created_at_ms": _AT, "next_try_at_ms": "CASE WHEN n < 10 THEN n END", "attempts": "1"}

CONTENT: Final = (
    Rows(
        "operations",
        OPERATIONS,
        {
            "id": "{id:op}",
            "account": _ACCOUNT,
            "merchant": _MERCHANT,
            "principal": _PRINCIPAL,
            "kind": _KIND,
            "state": _STATE,
            "version": "3",
            "subject": "'order/A-' || n",
            "guard": "'order/A-' || n",
            "claim": "CASE WHEN n > 900000 THEN 'key/k-' || n END",
            "claim_ends_at_ms": f"CASE WHEN n > 900000 THEN {_AT} END",
            "idempotency_key": "CASE WHEN n % 2 = 0 THEN 'k-' || n END",
            "fingerprint": "'fingerprint-of-thirty-two-letters-' || n",
            "request_id": "'req-' || n",
            "order_id": "CASE WHEN n % 30 <> 11 THEN 'A-' || n END",
            "payment_id": f"CASE WHEN {_HAS_PAYMENT} THEN '' || (320000000000 + n - (n % 30) / 11 % 2) END",
            "subscription_id": "CASE WHEN n % 200 = 14 OR n % 1000 = 16 THEN '' || (4200000000 + n / 200 % 20000) END",
            "amount_minor": "100000",
            "currency": "'LKR'",
            "result_ref": "CASE WHEN n % 100 = 12 THEN 'token-' || n END",
            "created_at_ms": _AT,
            "updated_at_ms": _AT,
            "send_by_ms": _AT,
            "probe_at_ms": "CASE WHEN n < 400000 AND n % 8000 = 2 THEN 1700000000000 + n END",
            "chain": "'hash-3-' || n",
            "customer_id": "CASE WHEN n % 10 = 4 THEN 'cus_' || (n % 50000) END",
            "sealed_call": "{blob}",
            "sealed_answer": "{blob}",
            "closed_history": "CASE WHEN n < 300000 THEN '[3,' END",
        },
    ),
    Rows(
        "history",
        3 * OPERATIONS,
        {
            "operation_id": "{id3:op}",
            "version": "n % 3 + 1",
            "at_ms": "1700000000000 + n * 33",
            "event": "CASE WHEN n % 3 = 1 THEN 'granted' WHEN n % 3 = 2 THEN 'succeeded' END",
            "state": "CASE WHEN n % 3 = 0 THEN 'accepted' WHEN n % 3 = 1 THEN 'sending' ELSE 'succeeded' END",
            "evidence": "'{{}}'",
            "row_digest": "'digest-' || n",
            "hash": "'hash-' || (n % 3 + 1) || '-' || (n / 3)",
        },
    ),
    Rows(
        "events",
        OPERATIONS,
        {
            "position": "n",
            "id": "{id:evt}",
            "type": "CASE WHEN n % 50 = 1 THEN 'payment.declined' ELSE 'payment.succeeded' END",
            "account": _ACCOUNT,
            "merchant": _MERCHANT,
            "principal": _PRINCIPAL,
            "subject": "{id:op}",
            "at_ms": _AT,
            "data": "'{{}}'",
        },
    ),
    Rows(
        "outbox",
        5,
        {
            "id": "{id:evt}",
            "type": "'payment.succeeded'",
            "account": "'main'",
            "merchant": "'1200001'",
            "principal": "'shop'",
            "subject": "{id:op}",
            "at_ms": _AT,
            "data": "'{{}}'",
        },
    ),
    Rows(
        "endpoints",
        4,
        {
            "id": "'ep_' || n",
            "account": "'main'",
            "merchant": "'1200001'",
            "principal": "CASE WHEN n = 4 THEN 'app' ELSE 'shop' END",
            "url_hash": "'hash of ' || n",
            "sealed_url": "{blob}",
            "types": "'*'",
            "state": "CASE WHEN n = 3 THEN 'stopped' ELSE 'active' END",
            "sealed_secret": "{blob}",
            "held_until_ms": "0",
            "created_at_ms": _AT,
            "updated_at_ms": _AT,
        },
    ),
    Rows(
        "deliveries",
        500_000,
        {
            "endpoint_id": "'ep_' || (n % 3 + 1)",
            "position": "n",
            "event_id": "{id:evt}",
            "subject": "{id:op}",
            "state": "CASE WHEN n < 5000 AND n % 50 = 1 THEN 'given_up' WHEN n > 499900 THEN 'waiting'"
            " ELSE 'delivered' END",
            "attempts": "1",
            "queued_at_ms": _AT,
            "next_try_at_ms": f"CASE WHEN n > 499900 THEN {_AT} END",
        },
    ),
    Rows(
        "checkouts",
        200_000,
        {
            "id": "{id:chk}",
            "account": _ACCOUNT,
            "merchant": _MERCHANT,
            "principal": _PRINCIPAL,
            "kind": "CASE WHEN n % 50 = 1 THEN 'recurring' WHEN n % 50 = 2 THEN 'preapproval'"
            " WHEN n % 50 = 3 THEN 'authorization' ELSE 'payment' END",
            "state": _CHECKOUT_STATE,
            "version": "2",
            "order_id": "'B-' || n",
            "guard": "CASE WHEN n % 5 <> 1 THEN 'B-' || n END",
            "amount_minor": "100000",
            "currency": "'LKR'",
            "secret_hash": "'secret-' || n",
            "key_hash": "CASE WHEN n > 150000 THEN 'k-' || n END",
            "request_id": "'req-' || n",
            "reference_hash": "CASE WHEN n % 4 = 1 THEN 'person-' || (n % 30000) END",
            "bound_customer_id": "CASE WHEN n % 20 = 2 THEN 'cus_' || (n % 50000) END",
            "payment_id": "CASE WHEN n % 5 <> 1 THEN '' || (330000000000 + n) END",
            "subscription_id": "CASE WHEN n % 50 = 1 THEN '' || (4200000000 + n / 50) END",
            "customer_id": "CASE WHEN n % 50 = 2 THEN 'cus_' || (n % 50000) END",
            "created_at_ms": _AT,
            "updated_at_ms": _AT,
            "expires_at_ms": _AT,
            "opened_at_ms": f"CASE WHEN n % 3 <> 0 THEN {_AT} END",
            "ends_at_ms": _AT,
            "look_at_ms": _AT,
            "sealed": "CASE WHEN n > 150000 THEN {blob} END",
        },
    ),
    Rows(
        "notifications",
        300_000,
        {
            "id": "{id:ntf}",
            "account": _ACCOUNT,
            "merchant": _MERCHANT,
            "digest": "'digest-' || n",
            "verdict": "'genuine'",
            "state": _NOTIFICATION_STATE,
            "why": "'applied'",
            "version": "2",
            "kind": "'payment'",
            "told": "'2'",
            "order_id": "CASE WHEN n % 3 = 0 THEN 'B-' || (n / 3) ELSE 'A-' || n END",
            "payment_id": "'' || (320000000000 + n)",
            "subscription_id": "CASE WHEN n % 10 = 1 THEN '' || (4200000000 + n % 20000) END",
            "amount_minor": "100000",
            "currency": "'LKR'",
            "received_at_ms": _AT,
            "last_at_ms": _AT,
            "repeats": "0",
            "attempts": "1",
            "next_at_ms": f"CASE WHEN n > 299940 THEN {_AT} END",
            "gives_up_at_ms": _AT,
            "updated_at_ms": _AT,
            "sealed_body": "CASE WHEN n > 200000 THEN {blob} END",
        },
    ),
    Rows(
        "payments_seen",
        300_000,
        {
            "merchant": _MERCHANT,
            "payment_id": "'' || (320000000000 + n * 3)",
            "order_id": "'A-' || (n * 3)",
            "status": "CASE WHEN n % 50 = 1 THEN 'REFUNDED' WHEN n < 100 THEN 'CHARGEBACKED' ELSE 'RECEIVED' END",
            "currency": "'LKR'",
            "amount_minor": "100000",
            "seen_at_ms": _AT,
        },
    ),
    Rows(
        "signed_texts",
        300_000,
        {"merchant": _MERCHANT, "digest": "'digest-' || (n / 2)", **_SUBJECTS, "kind": "'payment'", "at_ms": _AT}
        | {"texts": "1"},
    ),
    Rows(
        "customers",
        100_000,
        {
            "id": "'cus_' || n",
            "account": _ACCOUNT,
            "merchant": _MERCHANT,
            "principal": _PRINCIPAL,
            "state": "CASE WHEN n % 100 = 1 THEN 'removed' WHEN n < 1000 AND n % 100 = 2 THEN 'erased'"
            " ELSE 'active' END",
            "version": "1",
            "order_id": "'B-' || n",
            "payment_id": "'' || (330000000000 + n)",
            "created_at_ms": _AT,
            "updated_at_ms": _AT,
            "token_hash": "'token-' || n",
            "reference_hash": "CASE WHEN n % 100 > 2 THEN 'person-' || (n / 2) END",
            "sealed_token": "CASE WHEN n % 100 = 1 OR n < 1000 AND n % 100 = 2 THEN NULL ELSE {blob} END",
        },
    ),
    Rows(
        "client_tokens",
        100_000,
        {
            "id": "{id:ct}",
            "principal": _PRINCIPAL,
            "credential_id": "'cred_' || (n % 20)",
            "account": _ACCOUNT,
            "customer_id": "'cus_' || (n % 50000)",
            "scopes": "'[]'",
            "issued_at_ms": _AT,
            "expires_at_ms": _AT,
        },
    ),
    Rows(
        "subscriptions",
        20_000,
        {
            "merchant": _MERCHANT,
            "subscription_id": "'' || (4200000000 + n)",
            "account": _ACCOUNT,
            "principal": f"CASE WHEN n % 20 <> 1 THEN {_PRINCIPAL} END",
            "order_id": "'B-' || (n * 10)",
            "currency": "'LKR'",
            "amount_minor": "100000",
            "version": "1",
        },
    ),
    Rows(
        "installments",
        200_000,
        {
            "merchant": "CASE WHEN n % 20000 % 500 = 0 THEN '1200002' ELSE '1200001' END",
            "subscription_id": "'' || (4200000000 + n % 20000)",
            "payment": "CASE WHEN n % 50 = 1 THEN 'ntf:' || n ELSE '' || (340000000000 + n) END",
            "is_paid": "CASE WHEN n % 20 = 2 THEN 0 ELSE 1 END",
            "amount_minor": "100000",
            "at_ms": _AT,
        },
    ),
    Rows(
        "accepted_tokens",
        20_000,
        {
            "merchant": _MERCHANT,
            "order_id": "'B-' || (n * 10)",
            "kind": "'authorization'",
            "token_hash": "'token-' || n",
            "sealed_token": "{blob}",
            "notification_id": "{id:ntf}",
            "accepted_at_ms": _AT,
        },
    ),
    Rows(
        "chargebacks",
        5_000,
        {
            "merchant": _MERCHANT,
            "payment_id": "'' || (320000000000 + n)",
            "order_id": "'A-' || n",
            "account": _ACCOUNT,
            "principal": _PRINCIPAL,
            "operation_id": "{id:op}",
            "currency": "'LKR'",
            "notification_id": "{id:ntf}",
            "noted_at_ms": _AT,
        },
    ),
    Rows(
        "order_searches",
        50_000,
        {
            "merchant": _MERCHANT,
            "order_id": "'A-' || n",
            "searches": "1",
            "asked_at_ms": _AT,
            "next_at_ms": _AT,
            "leased_until_ms": f"CASE WHEN n > 49990 THEN {_AT} END",
            "occasions": "''",
        },
    ),
    Rows(
        "readings", 50_000, {"merchant": _MERCHANT, "subject": "'order/A-' || n", "sealed": "{blob}", "read_at_ms": _AT}
    ),
    Rows("data_keys", 500_000, {"owner": "{id:chk}", "sealed_key": "{blob}"}),
    Rows(
        "anchors",
        10_000,
        {"number": "n", "from_ms": _AT, "until_ms": _AT, "lines": "100", "digest": "'d'", "made_at_ms": _AT},
    ),
    Rows(
        "anchor_checkpoints",
        5_000,
        {"number": "n", "anchor": "'a'", "entries": "9", "total": "'t'", "cleared": "9", "signature": "'s'"},
    ),
    Rows("clearing_skipped", 5_000, {"kind": "'answers'", "id": "{id:op}", "tried_at_ms": _AT}),
    Rows("alerts", 5_000, {"operation_id": "{id:op}", **_ALERT, "version": "CASE WHEN n % 50 = 0 THEN 1 ELSE 4 END"}),
    Rows("checkout_alerts", 1_000, {"checkout_id": "{id:chk}", **_ALERT}),
    Rows("row_alerts", 1_000, {"row_name": "'operations/' || n", **_ALERT}),
    Rows("anchor_alerts", 1_000, {"anchor": "'' || n", **_ALERT, "version": "n"}),
    Rows("endpoint_alerts", 1_000, {"endpoint_id": "'ep_' || n", **_ALERT}),
    Rows(
        "notification_alerts",
        1_000,
        {"notification_id": "{id:ntf}", "merchant": _MERCHANT, "subject": "'A-' || n", "day": "n", **_ALERT},
    ),
    Rows(
        "credentials",
        20,
        {
            "id": "'cred_' || n",
            "principal": "'shop'",
            "key_hash": "{blob}",
            "scopes": "'[]'",
            "created_at_ms": _AT,
        },
    ),
    Rows("places", 50, {"merchant": "'1200001'", "slot": "n", "free_at_ms": "0"}),
)
"""Every table that grows with what clients do, and the few rows of those that don't."""

GROWING: Final = frozenset(rows.table for rows in CONTENT if rows.number >= 1_000)
"""Tables that no statement may read whole."""

_SQLITE: Final = ("x'01'", "'{prefix}_' || printf('%026d', {n})")
_POSTGRESQL: Final = (r"'\x01'::bytea", "'{prefix}_' || lpad(({n})::text, 26, '0')")
_PREFIXES: Final = ("op", "chk", "ntf", "evt", "ct")


def fill_sqlite(connection: sqlite3.Connection) -> None:
    """Fills an empty and migrated database; its indexes are made anew afterwards, which takes half the time."""
    connection.executescript("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA cache_size = -400000")
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall()
    statistics = connection.execute("SELECT tbl, idx, stat FROM sqlite_stat1").fetchall()
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    for text in _inserts(
        _SQLITE, "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s LIMIT {count}) SELECT n FROM s)"
    ):
        connection.execute(text)
    for _, text in indexes:
        connection.execute(text)
    connection.execute("DELETE FROM sqlite_stat1")
    connection.executemany("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)", statistics)
    connection.commit()
    connection.execute("ANALYZE sqlite_schema")  # reads them anew


async def fill_postgresql(connection: asyncpg.Connection) -> None:
    """Fills an empty and migrated schema, and reads its statistics; else as ``fill_sqlite``."""
    indexes = await connection.fetch(
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() AND NOT EXISTS"
        " (SELECT 1 FROM pg_constraint WHERE conname = indexname AND connamespace = current_schema()::regnamespace)"
        " AND indexname NOT LIKE 'data_keys%'"
    )
    await connection.execute("SET synchronous_commit = off; SET maintenance_work_mem = '256MB'")
    await connection.execute("SET session_replication_role = replica")
    for name, _ in indexes:
        await connection.execute(f"DROP INDEX {name}")
    for text in _inserts(_POSTGRESQL, "(SELECT generate_series(1::bigint, {count}) AS n)"):
        await connection.execute(text)
    for _, text in indexes:
        await connection.execute(text)
    await connection.execute("RESET session_replication_role; ANALYZE")


def _inserts(dialect: tuple[str, str], series: str) -> Iterator[str]:
    blob, padded = dialect
    words = {f"{{id:{prefix}}}": padded.format(prefix=prefix, n="n") for prefix in _PREFIXES}
    words |= {f"{{id3:{prefix}}}": padded.format(prefix=prefix, n="n / 3") for prefix in _PREFIXES}
    words |= {"{blob}": blob, "{{}}": "{}"}
    for rows in CONTENT:
        values = ", ".join(rows.columns.values())
        for word, text in words.items():
            values = values.replace(word, text)
        names = ", ".join(rows.columns)
        yield f"INSERT INTO {rows.table} ({names}) SELECT {values} FROM {series.format(count=rows.number)} AS s"
