"""The audit: histories as they are stored, and the anchors over all of them."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.statements.payments.operations import OPERATIONS

_WITH_SEALED: Final = f"{OPERATIONS.listed}, sealed_call, sealed_answer, closed_history"

AUDIT_ROWS: Final = query(
    f"SELECT {_WITH_SEALED} FROM operations WHERE id > $1 ORDER BY id LIMIT $2",
)
"""Reads operations with their sealed values, and what is kept of closed histories, in the order of their ids, behind an
id."""

FIRST_AUDIT_ROWS: Final = query(
    f"SELECT {_WITH_SEALED} FROM operations WHERE id >= $1 ORDER BY id LIMIT $2",
)
"""Reads the same from an id on: somebody may have written an operation with the empty id, the lowest of all."""

AUDIT_ROW: Final = query(f"SELECT {_WITH_SEALED} FROM operations WHERE id = $1")
"""Reads one operation, with the same beside it."""

_ENTRY_COLUMNS: Final = "operation_id, version, at_ms, event, state, evidence, row_digest, answer_digest, hash"

AUDIT_ENTRIES: Final = query(
    f"""
    SELECT {_ENTRY_COLUMNS} FROM history
    WHERE (operation_id, version) > ($1, $2) ORDER BY operation_id, version LIMIT $3""",
)
"""Reads journal entries with their hashes, one operation's after the other's."""

AUDIT_ENTRIES_OF: Final = query(
    f"SELECT {_ENTRY_COLUMNS} FROM history WHERE operation_id = $1 ORDER BY version LIMIT $2"
)
"""Reads the journal entries of one operation with their hashes."""

AUDIT_ENTRIES_BY_TIME: Final = query(
    f"""
    SELECT {_ENTRY_COLUMNS} FROM history
    WHERE at_ms >= $1 AND at_ms < $2 AND (at_ms, operation_id, version) > ($1, $3, $4)
    UNION ALL
    SELECT id, version, updated_at_ms, NULL, state, '', '', '', chain FROM operations
    WHERE closed_history IS NOT NULL
      AND updated_at_ms >= $1 AND updated_at_ms < $2 AND (updated_at_ms, id, version) > ($1, $3, $4)
    ORDER BY at_ms, operation_id, version LIMIT $5""",
)
"""Reads the journal entries of a span of time with their hashes, from one of them on.

Of the newest entry of a closed history it gives what an anchor covers, and not its event, evidence and digests.
"""

UNGUARDED_CHECKOUTS: Final = query(
    """
    SELECT id FROM checkouts
    WHERE id > $1 AND ((guard IS NULL AND state = 'open') OR (guard IS NOT NULL AND guard <> order_id))
    ORDER BY id LIMIT $2""",
)
"""Reads the ids of checkouts that don't hold their order although they are open, or hold another one."""

NTH_ENTRY_AT: Final = query(
    "SELECT at_ms FROM history WHERE at_ms >= $1 AND at_ms < $2 ORDER BY at_ms LIMIT 1 OFFSET $3"
)
"""Reads the time of the n-th journal entry in a span, counted from 0."""

COUNT_OPERATIONS: Final = query("SELECT count(*) FROM operations")
"""Counts all operations."""

_ANCHOR_COLUMNS: Final = "number, from_ms, until_ms, lines, digest, made_at_ms"

LAST_ANCHOR: Final = query(f"SELECT {_ANCHOR_COLUMNS} FROM anchors ORDER BY number DESC LIMIT 1")
"""Reads the newest anchor."""

LAST_ANCHOR_BEFORE: Final = query("SELECT max(number) FROM anchors WHERE made_at_ms < $1")
"""Reads the number of the newest anchor that was made before a time."""

LIST_ANCHORS: Final = query(f"SELECT {_ANCHOR_COLUMNS} FROM anchors WHERE number > $1 ORDER BY number LIMIT $2")
"""Reads anchors, oldest first, from a number on."""

ADD_ANCHOR: Final = query(
    f"""
    INSERT INTO anchors ({_ANCHOR_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT DO NOTHING
    RETURNING number""",
)
"""Stores an anchor; gives no row where another process was quicker with this number."""

MISCOUNTED: Final = query(
    """
    SELECT subject FROM signed_texts GROUP BY subject
    HAVING count(*) <> min(texts) OR count(*) <> max(texts) ORDER BY subject LIMIT $1""",
)
"""Finds what has another number of texts in the list than it should."""

ANCHOR_CHECKPOINTS: Final = query(
    """
    SELECT number, anchor, entries, total, cleared, signature FROM anchor_checkpoints
    WHERE number > $1 ORDER BY number LIMIT $2""",
)
"""Reads the checkpoints of anchors, in their order, from a number on."""
