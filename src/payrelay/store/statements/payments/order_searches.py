"""The schedules of the searches for orders."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query

COLUMNS: Final = "merchant, order_id, searches, asked_at_ms, next_at_ms, leased_until_ms, read_at_ms, occasions"

BEGIN: Final = query(
    """
    INSERT INTO order_searches (merchant, order_id, searches, asked_at_ms, next_at_ms, occasions)
    VALUES ($1, $2, 0, 0, 0, '')
    ON CONFLICT (merchant, order_id) DO NOTHING""",
)
"""Makes sure that an order has a row, which can be locked. A row without a search in the last day is no schedule."""

LOCK: Final = query(f"SELECT {COLUMNS} FROM order_searches WHERE merchant = $1 AND order_id = $2 FOR UPDATE")
"""Reads the schedule of an order, and locks it until the transaction ends."""

GET: Final = query(f"SELECT {COLUMNS}, reading FROM order_searches WHERE merchant = $1 AND order_id = $2")
"""Reads the schedule of an order and its reading."""

CHANGE: Final = query(
    """
    UPDATE order_searches
    SET searches = $3, asked_at_ms = $4, next_at_ms = $5, leased_until_ms = $6, read_at_ms = $7, occasions = $8,
        reading = CASE WHEN $7::bigint IS NULL THEN NULL ELSE reading END
    WHERE merchant = $1 AND order_id = $2""",
)
"""Stores a schedule; one without a reading forgets that of an earlier schedule."""

END: Final = query(
    """
    UPDATE order_searches SET leased_until_ms = NULL
    WHERE merchant = $1 AND order_id = $2 AND asked_at_ms = $3 AND leased_until_ms IS NOT NULL
    RETURNING order_id""",
)
"""Ends the search that began at $3; gives no row where another process has taken the slot over."""

KEEP_READING: Final = query(
    "UPDATE order_searches SET read_at_ms = $3, reading = $4 WHERE merchant = $1 AND order_id = $2",
)
"""Stores what a search showed."""

WAKE: Final = query(
    """
    UPDATE notifications SET next_at_ms = $4::bigint
    WHERE merchant = $1 AND order_id = $2 AND state = 'waiting' AND next_at_ms > $4::bigint
      AND (updated_at_ms < $3 OR why = 'search_waits')""",
)
"""Makes the notifications of an order due at $4 that wait longer, and that nobody has worked on since $3, or that wait
for a search."""

BRING_FORWARD: Final = query(
    """
    UPDATE order_searches SET next_at_ms = $3::bigint
    WHERE merchant = $1 AND order_id = $2 AND next_at_ms > $3::bigint AND leased_until_ms IS NULL""",
)
"""Makes the next slot due."""

WAKE_INTERRUPTED: Final = query(
    """
    UPDATE notifications SET next_at_ms = $1::bigint
    WHERE state = 'waiting' AND next_at_ms > $1::bigint AND (merchant, order_id) IN (
        SELECT merchant, order_id FROM order_searches WHERE leased_until_ms > $1::bigint
    )""",
)
"""Makes the notifications due for whose orders a process that has died was searching."""

EXPIRE_LEASES: Final = query("UPDATE order_searches SET leased_until_ms = $1 WHERE leased_until_ms > $1")
"""Ends the leases of a process that has died."""

FORGET: Final = query(
    """
    DELETE FROM order_searches WHERE (merchant, order_id) IN (
        SELECT merchant, order_id FROM order_searches
        WHERE asked_at_ms < $1 AND (leased_until_ms IS NULL OR leased_until_ms < $1) ORDER BY asked_at_ms LIMIT $2
    )
    RETURNING order_id""",
)
"""Removes schedules without a search since a time, a limited number at a time."""
