"""The last known answers to reads, and the versions that outdate them."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.statements.data_keys import key_of, put_key_after

_INVALIDATES: Final = "COALESCE((SELECT version FROM bumps WHERE merchant = $1), 0)"

_OPERATIONS_WITH: Final = f"SELECT {_INVALIDATES}, count(*), COALESCE(sum(version), 0)::bigint FROM operations WHERE "

VERSION_OF_MERCHANT: Final = query(f"SELECT {_INVALIDATES}")
"""Reads how often something happened that may change any reading of a merchant account's."""

VERSION_OF_ORDER: Final = query(_OPERATIONS_WITH + "order_id = $2 AND merchant = $1")
"""Reads the version of the merchant account, and the number and versions of the operations on an order. No operation is
ever removed, and each change raises its version."""

VERSION_OF_SUBSCRIPTION: Final = query(_OPERATIONS_WITH + "subscription_id = $2 AND merchant = $1")
"""Reads the version of the merchant account, and the number and versions of the operations on a subscription."""

LAST_READING: Final = query(
    f"SELECT sealed, {key_of('$3::text')}, read_at_ms FROM readings WHERE merchant = $1 AND subject = $2",
)
"""Reads the last answer to a read, and the data key of $3."""

_KEEP: Final = """
    INSERT INTO readings (merchant, subject, sealed, read_at_ms) VALUES ($1, $2, $3, $4)
    ON CONFLICT (merchant, subject) DO UPDATE SET sealed = excluded.sealed, read_at_ms = excluded.read_at_ms
    WHERE readings.read_at_ms <= excluded.read_at_ms"""
_KEEP_BOTH, _KEEP_KEY = put_key_after(_KEEP, owner="$5", sealed_key="$6")

KEEP_READING: Final = query(_KEEP_BOTH, sqlite=(_KEEP, _KEEP_KEY))
"""Stores an answer to a read in place of an earlier one, and its data key in place of that one's."""

SEEN_COLUMNS: Final = "merchant, payment_id, order_id, status, currency, amount_minor, seen_at_ms"

NOTE_PAYMENT: Final = query(
    f"""
    INSERT INTO payments_seen ({SEEN_COLUMNS}, row_digest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (merchant, payment_id) DO UPDATE
    SET order_id = excluded.order_id, status = excluded.status, currency = excluded.currency,
        amount_minor = excluded.amount_minor, seen_at_ms = excluded.seen_at_ms, row_digest = excluded.row_digest
    WHERE payments_seen.seen_at_ms <= excluded.seen_at_ms""",
)
"""Notes the status of a payment, unless a later one is known."""

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
