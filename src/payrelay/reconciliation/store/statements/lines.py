"""The lines of statements, the files that they came in, and what is complete."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query, query_among

FILE_COLUMNS: Final = "merchant, digest, name, profile, is_guess, summary, imported_by, imported_at_ms, is_whole"
LINE_COLUMNS: Final = (
    "movement, identity, currency, amount_minor, day, state, at_ms, fee_minor, net_minor, expected_fee_minor,"
    " order_id, payment_id, payout_id, source, place, word, known_at_ms"
)
_KEPT: Final = f"merchant, content, booked_on, {LINE_COLUMNS}"
_INTEGERS: Final = frozenset({"amount_minor", "at_ms", "fee_minor", "net_minor", "expected_fee_minor", "known_at_ms"})


def _from_json(form: str, integer: str) -> str:
    names = _KEPT.split(", ")
    return ", ".join(form.format(number) + (integer if name in _INTEGERS else "") for number, name in enumerate(names))


ADD_LINES: Final = query(
    f"""
    INSERT INTO statement_lines ({_KEPT})
    SELECT {_from_json("(value ->> {})", "::bigint")} FROM json_array_elements($1::json)
    ON CONFLICT DO NOTHING
    RETURNING identity""",
    sqlite=(
        f"""
        INSERT INTO statement_lines ({_KEPT})
        SELECT {_from_json("json_extract(value, '$[{}]')", "")} FROM json_each($1) WHERE true
        ON CONFLICT DO NOTHING
        RETURNING identity""",
    ),
)
"""Stores lines, each once; gives those that are new."""

LINES_BOOKED_ON: Final = query(
    f"""
    SELECT {LINE_COLUMNS}, content FROM statement_lines
    WHERE merchant = $1 AND booked_on = $2 AND (movement, identity, content) > ($3, $4, $5)
    ORDER BY movement, identity, content LIMIT $6""",
)
"""Reads the lines that are booked on a day, behind one."""

LINES_OF: Final = query_among(
    f"""
    SELECT {LINE_COLUMNS} FROM statement_lines
    WHERE payment_id @2 AND merchant = $1 AND movement IN ('payment', 'refund', 'chargeback')
    UNION
    SELECT {LINE_COLUMNS} FROM statement_lines
    WHERE order_id @3 AND merchant = $1 AND movement IN ('payment', 'refund', 'chargeback')""",
)
"""Reads all lines about some payments and some orders."""

PAYOUTS_ON: Final = query_among(
    f"""
    SELECT {LINE_COLUMNS} FROM statement_lines
    WHERE merchant = $1 AND booked_on @2 AND movement IN ('payout', 'bank')
    ORDER BY booked_on, movement, identity, content LIMIT $3""",
)
"""Reads the payouts, and the lines of the bank's account, that are booked on some days.

By days, and by no range of them: a range would pass over all payments of a month, to find a few payouts.
"""

PARTS_OF: Final = query_among(
    """
    SELECT payout_id,
      sum(CASE WHEN movement = 'payment' THEN COALESCE(net_minor, amount_minor - COALESCE(fee_minor, 0))
               ELSE COALESCE(fee_minor, 0) - amount_minor END),
      count(*)
    FROM statement_lines
    WHERE payout_id @2 AND merchant = $1 AND movement IN ('payment', 'refund', 'chargeback')
      AND state <> 'not_taken' AND state <> 'authorized'
    GROUP BY payout_id""",
)
"""Sums up, for some payouts, what the lines come to that name them, without what moved no money."""

PUT_FILE: Final = query(
    f"""
    INSERT INTO statement_files ({FILE_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (merchant, digest) DO UPDATE SET is_whole = excluded.is_whole
    WHERE statement_files.is_whole < excluded.is_whole
    RETURNING digest""",
)
"""Stores a file, or that all of it was read now."""

GET_FILE: Final = query(f"SELECT {FILE_COLUMNS} FROM statement_files WHERE merchant = $1 AND digest = $2")
"""Reads a file by its digest."""

LIST_FILES: Final = query(
    f"SELECT {FILE_COLUMNS} FROM statement_files WHERE merchant = $1 AND digest > $2 ORDER BY digest LIMIT $3"
)
"""Reads the files of a merchant, behind a digest."""

PUT_DAY: Final = query(
    """
    INSERT INTO statement_days (merchant, movement, day, said_by, said_at_ms, rests_on)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (merchant, movement, day) DO UPDATE
    SET said_by = excluded.said_by, said_at_ms = excluded.said_at_ms, rests_on = excluded.rests_on
    RETURNING day""",
)
"""Stores that a person said of a day that its files have everything; the last word holds."""

DAYS_BETWEEN: Final = query(
    """
    SELECT movement, day, said_by, said_at_ms, rests_on FROM statement_days
    WHERE merchant = $1 AND movement = $2 AND day >= $3 AND day <= $4 ORDER BY day LIMIT $5""",
)
"""Reads the complete days of a movement between two days."""

PUT_SEARCH: Final = query(
    """
    INSERT INTO statement_searches (merchant, order_id, searched_at_ms) VALUES ($1, $2, $3)
    ON CONFLICT (merchant, order_id) DO UPDATE SET searched_at_ms = excluded.searched_at_ms
    WHERE statement_searches.searched_at_ms < excluded.searched_at_ms
    RETURNING order_id""",
)
"""Stores when the gateway was asked for an order."""

SEARCHES_OF: Final = query_among(
    "SELECT order_id, searched_at_ms FROM statement_searches WHERE merchant = $1 AND order_id @2",
)
"""Reads when the gateway was asked for some orders."""
