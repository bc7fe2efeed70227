"""Differences, and what each day came to."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query

DIFFERENCE_COLUMNS: Final = (
    "merchant, id, account, movement, identity, day, booked_on, currency, content, finding, concern,"
    " first_found_at_ms, last_found_at_ms, is_open, closed_at_ms, closed_by, closed_reason, alerted_at_ms"
)
DAY_COLUMNS: Final = "merchant, day, account, report, ran_at_ms, closed_at_ms, closed_by, closed_reason, act"

PUT_DIFFERENCE: Final = query(
    f"""
    INSERT INTO differences ({DIFFERENCE_COLUMNS})
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, 1, NULL, NULL, NULL, NULL)
    ON CONFLICT (merchant, id) DO UPDATE SET
      last_found_at_ms = excluded.last_found_at_ms, finding = excluded.finding, booked_on = excluded.booked_on,
      is_open = CASE WHEN differences.content = excluded.content THEN differences.is_open ELSE 1 END,
      concern = excluded.concern, content = excluded.content
    RETURNING is_open""",
)
"""Stores a difference, or that it was found again. One that a person closed is open again where it says another thing.
"""

GET_DIFFERENCE: Final = query(f"SELECT {DIFFERENCE_COLUMNS} FROM differences WHERE merchant = $1 AND id = $2")
"""Reads one difference."""

OPEN_DIFFERENCES: Final = query(
    f"""
    SELECT {DIFFERENCE_COLUMNS} FROM differences
    WHERE merchant = $1 AND is_open = 1 AND (booked_on, id) > ($2, $3) ORDER BY booked_on, id LIMIT $4""",
)
"""Reads the open differences of a merchant, the oldest first, behind one."""

DIFFERENCES_OF_DAY: Final = query(
    f"""
    SELECT {DIFFERENCE_COLUMNS} FROM differences
    WHERE merchant = $1 AND booked_on = $2 AND id > $3 ORDER BY id LIMIT $4""",
)
"""Reads the differences that are booked on a day, open or not, behind one."""

CLOSE_DIFFERENCE: Final = query(
    """
    UPDATE differences SET is_open = 0, closed_at_ms = $4, closed_by = $5, closed_reason = $6
    WHERE merchant = $1 AND id = $2 AND finding = $3 AND booked_on = $7 AND is_open = 1
    RETURNING id""",
)
"""Closes a difference that still says what the person saw; gives no row where it doesn't."""

PUT_RAN_DAY: Final = query(
    """
    INSERT INTO reconciled_days (merchant, day, account, report, ran_at_ms) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (merchant, day) DO UPDATE SET report = excluded.report, ran_at_ms = excluded.ran_at_ms
    WHERE reconciled_days.closed_at_ms IS NULL
    RETURNING day""",
)
"""Stores what a day came to; gives no row, and changes nothing, where it is closed."""

CLOSE_DAY: Final = query(
    """
    UPDATE reconciled_days
    SET report = $3, ran_at_ms = $4, closed_at_ms = $5, closed_by = $6, closed_reason = $7, act = $8
    WHERE merchant = $1 AND day = $2 AND closed_at_ms IS NULL AND ran_at_ms = $9
    RETURNING day""",
)
"""Closes a day with a report, as it was compared at a time; gives no row where it is closed, or was compared anew."""

TAKE_TURN: Final = query(
    """
    INSERT INTO meta (name, value) VALUES ($1, convert_to('1', 'UTF8'))
    ON CONFLICT (name) DO UPDATE
    SET value = convert_to((convert_from(meta.value, 'UTF8')::bigint + 1)::text, 'UTF8')
    RETURNING value""",
    sqlite=(
        """
        INSERT INTO meta (name, value) VALUES ($1, CAST('1' AS BLOB))
        ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(CAST(meta.value AS TEXT) AS INTEGER) + 1 || '' AS BLOB)
        RETURNING value""",
    ),
)
"""Counts what was read of a merchant's statements, and the days that were closed; gives the new number.

Whoever does either holds the row until the end of the transaction. So one knows what the other has done.
"""

GET_RAN_DAY: Final = query(f"SELECT {DAY_COLUMNS} FROM reconciled_days WHERE merchant = $1 AND day = $2")
"""Reads what a day came to."""

RAN_DAYS: Final = query(
    f"SELECT {DAY_COLUMNS} FROM reconciled_days WHERE merchant = $1 AND day >= $2 AND day <= $3 ORDER BY day",
)
"""Reads the days that were compared, from one day to another."""

OPEN_BY_DAY: Final = query(
    """
    SELECT booked_on, COUNT(*) AS number FROM differences
    WHERE merchant = $1 AND is_open = 1 AND booked_on >= $2 AND booked_on <= $3
    GROUP BY booked_on ORDER BY booked_on""",
)
"""Counts the open differences of each day, from one day to another."""

COUNT_OPEN: Final = query(
    "SELECT concern, COUNT(*), MIN(first_found_at_ms) FROM differences WHERE is_open = 1 GROUP BY concern",
)
"""Counts the open differences of all merchants by what makes them urgent, with when the first was found."""

LAST_CLOSED: Final = query(
    """
    SELECT day, closed_at_ms, ran_at_ms FROM reconciled_days
    WHERE merchant = $1 AND closed_at_ms IS NOT NULL ORDER BY day DESC LIMIT 1""",
)
"""Reads the newest closed day."""
