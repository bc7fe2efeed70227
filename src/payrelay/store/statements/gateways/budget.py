"""The budget of calls that processes share: a row for each permit."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query

SERVER_NOW_MS: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
"""One clock for all processes that share a budget or a token. SQLite has no clock that never jumps: there the last
parameter is the time. PostgreSQL gets it too, and doesn't use it."""

ADD_PERMITS: Final = query(
    """
    INSERT INTO places (merchant, slot, free_at_ms)
    SELECT $1, slot, 0 FROM generate_series(0, $2::bigint - 1) AS slot
    ON CONFLICT DO NOTHING""",
    sqlite=(
        """
        WITH RECURSIVE slots (slot) AS (SELECT 0 UNION ALL SELECT slot + 1 FROM slots WHERE slot + 1 < $2)
        INSERT INTO places (merchant, slot, free_at_ms) SELECT $1, slot, 0 FROM slots WHERE true
        ON CONFLICT DO NOTHING""",
    ),
)
"""Adds the missing permits of a merchant's budget; they are free at once."""

CUT_PERMITS: Final = query(
    f"""
    UPDATE places SET free_at_ms = {SERVER_NOW_MS} + $2::bigint
    WHERE merchant = $1 AND free_at_ms > {SERVER_NOW_MS} + $2::bigint AND $3::bigint IS NOT NULL""",
    sqlite=("UPDATE places SET free_at_ms = $3 + $2 WHERE merchant = $1 AND free_at_ms > $3 + $2",),
)
"""Shortens the wait for permits that would be free later than any permit can be, because the clock was set back."""

LOCK_BUDGET: Final = query("SELECT pg_advisory_xact_lock(hashtextextended('budget/' || $1, 0))", sqlite=("SELECT $1",))
"""Lets one process at a time give permits of a merchant's, so that each sees what the others gave before."""

READ_USAGES: Final = query(
    f"""
    WITH permits AS (
        SELECT consumer, free_at_ms - {SERVER_NOW_MS} AS free_in_ms FROM places
        WHERE merchant = $1 AND slot >= 0 AND slot < $2::bigint AND $4::bigint IS NOT NULL
    )
    SELECT consumer, count(*), sum((free_in_ms > 0)::int), sum((free_in_ms BETWEEN 1 - $3::bigint AND 0)::int),
        min(CASE WHEN free_in_ms > 0 THEN free_in_ms WHEN free_in_ms > -$3::bigint THEN free_in_ms + $3::bigint END),
        (SELECT free_at_ms - {SERVER_NOW_MS} FROM places WHERE merchant = $1 AND slot = -1)
    FROM permits GROUP BY consumer""",
    sqlite=(
        """
        WITH permits AS (
            SELECT consumer, free_at_ms - $4 AS free_in_ms FROM places
            WHERE merchant = $1 AND slot >= 0 AND slot < $2
        )
        SELECT consumer, count(*), sum(free_in_ms > 0), sum(free_in_ms BETWEEN 1 - $3 AND 0),
            min(CASE WHEN free_in_ms > 0 THEN free_in_ms WHEN free_in_ms > -$3 THEN free_in_ms + $3 END),
            (SELECT free_at_ms - $4 FROM places WHERE merchant = $1 AND slot = -1)
        FROM permits GROUP BY consumer""",
    ),
)
"""Counts the permits by their last consumers.

Gives for each how many there are, how many are not free, and how many were free for less than a window. Then in how
many milliseconds one of these numbers changes, and for how many the whole budget is blocked.
"""

TAKE_PERMITS: Final = query(
    f"""
    WITH free AS (
        SELECT slot FROM places
        WHERE merchant = $1 AND slot >= 0 AND slot < $2::bigint AND free_at_ms <= {SERVER_NOW_MS}
          AND $6::bigint IS NOT NULL
          AND NOT EXISTS (
              SELECT 1 FROM places AS block
              WHERE block.merchant = $1 AND block.slot = -1 AND block.free_at_ms > {SERVER_NOW_MS})
        ORDER BY CASE WHEN consumer = $7 THEN 0 ELSE 1 END, free_at_ms
        LIMIT $3::bigint FOR UPDATE SKIP LOCKED
    )
    UPDATE places SET free_at_ms = {SERVER_NOW_MS} + $5::bigint, holding = $4, consumer = $7
    FROM free WHERE places.merchant = $1 AND places.slot = free.slot
    RETURNING places.slot""",
    sqlite=(
        """
        UPDATE places SET free_at_ms = $6 + $5, holding = $4, consumer = $7
        WHERE merchant = $1 AND slot IN (
            SELECT slot FROM places
            WHERE merchant = $1 AND slot >= 0 AND slot < $2 AND free_at_ms <= $6
              AND NOT EXISTS (SELECT 1 FROM places WHERE merchant = $1 AND slot = -1 AND free_at_ms > $6)
            ORDER BY CASE WHEN consumer = $7 THEN 0 ELSE 1 END, free_at_ms
            LIMIT $3)
        RETURNING slot""",
    ),
)
"""Gives a consumer free permits of the first so many slots, until one window after the latest possible end of a call.

Takes those that it had last before others, and then those that are free for longest, so that the budget goes on showing
what each consumer used. The slot -1 is no permit: until it is free, no permit is.
"""

END_PERMIT: Final = query(
    f"""
    UPDATE places SET free_at_ms = {SERVER_NOW_MS} + $4::bigint, holding = NULL,
        consumer = CASE WHEN $4::bigint > 0 THEN consumer END
    WHERE merchant = $1 AND slot = $2 AND holding = $3 AND $5::bigint IS NOT NULL""",
    sqlite=(
        """
        UPDATE places SET free_at_ms = $5 + $4, holding = NULL, consumer = CASE WHEN $4 > 0 THEN consumer END
        WHERE merchant = $1 AND slot = $2 AND holding = $3""",
    ),
)
"""Stores when a permit is free again, unless another taking holds it by now. What is free at once was not used."""

BLOCK_PERMITS: Final = query(
    f"""
    INSERT INTO places (merchant, slot, free_at_ms)
    SELECT $1, -1, {SERVER_NOW_MS} + $2::bigint WHERE $3::bigint IS NOT NULL
    ON CONFLICT (merchant, slot) DO UPDATE SET free_at_ms = GREATEST(places.free_at_ms, excluded.free_at_ms)""",
    sqlite=(
        """
        INSERT INTO places (merchant, slot, free_at_ms) VALUES ($1, -1, $3 + $2)
        ON CONFLICT (merchant, slot) DO UPDATE SET free_at_ms = max(places.free_at_ms, excluded.free_at_ms)""",
    ),
)
"""Keeps all permits of a merchant's from being taken for a while."""

_MERCHANTS: Final = (
    "SELECT merchant FROM places UNION SELECT merchant FROM operations UNION SELECT merchant FROM checkouts"
)
BLOCK_ALL_PERMITS: Final = query(
    f"""
    INSERT INTO places (merchant, slot, free_at_ms)
    SELECT merchant, -1, {SERVER_NOW_MS} + $1::bigint FROM ({_MERCHANTS}) AS known WHERE $2::bigint IS NOT NULL
    ON CONFLICT (merchant, slot) DO UPDATE SET free_at_ms = GREATEST(places.free_at_ms, excluded.free_at_ms)
    RETURNING merchant""",
    sqlite=(
        f"""
        INSERT INTO places (merchant, slot, free_at_ms) SELECT merchant, -1, $2 + $1 FROM ({_MERCHANTS}) WHERE true
        ON CONFLICT (merchant, slot) DO UPDATE SET free_at_ms = max(places.free_at_ms, excluded.free_at_ms)
        RETURNING merchant""",
    ),
)
"""Keeps the permits of every merchant that anything is known of from being taken for a while."""
