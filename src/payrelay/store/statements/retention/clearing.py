"""The clearing of old data: what it looks at, what it clears, and how far it has come."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query, query_among
from payrelay.store.statements.payments.operations import READ_COLUMNS

_STATES: Final = "('succeeded', 'declined', 'refused', 'not_sent')"
"""States that no step leads on from; a test compares them with the table of steps."""

BEGIN_CLEARING: Final = query(
    """
    INSERT INTO clearing (kind, reached, cleared, ran_at_ms) VALUES ($1, '', 0, $2)
    ON CONFLICT DO NOTHING""",
)
"""Makes sure that a kind of data has a row."""

GET_CLEARING: Final = query("SELECT kind, reached, cleared, ran_at_ms FROM clearing ORDER BY kind")
"""Reads how far the clearing of each kind has come."""

ADVANCE: Final = query(
    """
    UPDATE clearing SET reached = $3, cleared = cleared + $4::bigint, ran_at_ms = $5
    WHERE kind = $1 AND reached = $2
    RETURNING kind""",
)
"""Stores how far it has come; gives no row where another process was quicker."""

PAGE_OF_OPERATIONS: Final = query(
    f"""
    SELECT {READ_COLUMNS}, length(sealed_call), length(sealed_answer) FROM operations
    WHERE id > $1 ORDER BY id LIMIT $2""",
)
"""Reads operations behind an id, with the lengths of what is sealed of them."""

SKIPPED_OPERATIONS: Final = query(
    f"""
    SELECT {READ_COLUMNS}, length(sealed_call), length(sealed_answer) FROM operations
    WHERE id IN (
        SELECT id FROM clearing_skipped WHERE kind = $1 AND tried_at_ms < $2 ORDER BY tried_at_ms LIMIT $3
    ) ORDER BY id""",
)
"""Reads operations that could not be cleared before a time."""

FIRST_LEFT: Final = query("SELECT created_at_ms FROM operations WHERE id > $1 ORDER BY id LIMIT 1")
"""Reads when the first operation was made that the clearing has not come to."""

FIRST_NOTIFICATION_LEFT: Final = query("SELECT received_at_ms FROM notifications WHERE id > $1 ORDER BY id LIMIT 1")
"""Reads when the first notification came that the clearing has not come to."""

FIRST_EVENT: Final = query("SELECT at_ms FROM events ORDER BY position LIMIT 1")
"""Reads the time of the oldest event."""

COUNT_SKIPPED: Final = query("SELECT kind, count(*) FROM clearing_skipped GROUP BY kind")
"""Counts what is to be tried again."""

SKIP: Final = query(
    """
    INSERT INTO clearing_skipped (kind, id, tried_at_ms) VALUES ($1, $2, $3)
    ON CONFLICT (kind, id) DO UPDATE SET tried_at_ms = excluded.tried_at_ms""",
)
"""Notes an operation to be tried again."""

FORGET_SKIPPED: Final = query("DELETE FROM clearing_skipped WHERE kind = $1 AND id = $2")
"""Forgets an operation that needs no further try."""

CLEAR_CALL: Final = query(f"UPDATE operations SET sealed_call = $2 WHERE id = $1 AND state IN {_STATES} RETURNING id")
"""Puts a sealed mark in the place of a call."""

CLEAR_ANSWER: Final = query(
    f"""
    UPDATE operations SET sealed_answer = $2
    WHERE id = $1 AND state IN {_STATES} AND sealed_answer IS NOT NULL
      AND (claim_ends_at_ms IS NULL OR claim_ends_at_ms <= $3)
    RETURNING id""",
)
"""Puts a sealed mark in the place of an answer, unless a repeat still gets it."""

CLOSE_HISTORY: Final = query(
    f"""
    UPDATE operations SET closed_history = $3
    WHERE id = $1 AND chain = $2 AND state IN {_STATES} AND closed_history IS NULL
    RETURNING id""",
)
"""Keeps what is left of a history in the row of its operation, whose newest entry must have the hash $2."""

CLEAR_ENTRIES: Final = query_among(
    """
    DELETE FROM history
    WHERE operation_id @1 AND EXISTS (
        SELECT 1 FROM operations WHERE id = history.operation_id AND closed_history IS NOT NULL
    )
    RETURNING operation_id, version""",
)
"""Removes the journal entries of some operations whose histories are closed."""

ANCHOR_NUMBERED: Final = query(
    "SELECT number, from_ms, until_ms, lines, digest, made_at_ms FROM anchors WHERE number = $1"
)
"""Reads one anchor."""

_ANCHOR_COLUMNS: Final = "number, anchor, entries, total, cleared, signature"

GET_ANCHOR_CHECKPOINT: Final = query(f"SELECT {_ANCHOR_COLUMNS} FROM anchor_checkpoints WHERE number = $1 FOR UPDATE")
"""Reads the checkpoint of an anchor, and locks it until the transaction ends."""

PUT_ANCHOR_CHECKPOINT: Final = query(
    f"""
    INSERT INTO anchor_checkpoints ({_ANCHOR_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (number) DO UPDATE
    SET anchor = excluded.anchor, entries = excluded.entries, total = excluded.total, cleared = excluded.cleared,
        signature = excluded.signature""",
)
"""Stores the checkpoint of an anchor, in place of an earlier one."""

PAGE_OF_NOTIFICATIONS: Final = query("SELECT id, received_at_ms FROM notifications WHERE id > $1 ORDER BY id LIMIT $2")
"""Reads the ids and times of notifications behind an id."""

CLEAR_NOTIFICATIONS: Final = query(
    """
    DELETE FROM notifications
    WHERE id > $1 AND id <= $2 AND state IN ('applied', 'ignored') AND next_at_ms IS NULL AND sealed_body IS NULL
      AND accepted_at_ms IS NULL
      AND NOT EXISTS (
        SELECT 1 FROM accepted_tokens
        WHERE accepted_tokens.merchant = notifications.merchant AND accepted_tokens.order_id = notifications.order_id
          AND accepted_tokens.notification_id = notifications.id
      )
      AND NOT EXISTS (
        SELECT 1 FROM chargebacks
        WHERE chargebacks.merchant = notifications.merchant AND chargebacks.payment_id = notifications.payment_id
      )
    RETURNING id""",
)
"""Removes the notifications between two ids on which nothing rests: no accepted token, no chargeback, no decision."""

_PAGES: Final = 64
RELEASE_PAGES: Final = query("SELECT 0", sqlite=("PRAGMA incremental_vacuum(1)",) * _PAGES)
"""Gives some free pages of an embedded database's file back; PostgreSQL uses freed room again by itself.

Python's driver takes one step of such a statement, which frees one page, whatever number it names.
"""
