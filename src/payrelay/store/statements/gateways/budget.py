"""The budget of calls that processes share: a row for each place."""

# ruff: noqa: S608 - what is put into the texts are columns named here; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query

SERVER_NOW_MS: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
"""One clock for all who share a budget or a token. SQLite has none that doesn't jump: there the last parameter is the
time, which PostgreSQL is given and has no use for."""

ADD_PERMITS: Final = query(
    "add_places",
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
"""Makes those places of a merchant's budget that aren't there yet; free at once."""

CUT_PERMITS: Final = query(
    "cut_places",
    f"""
    UPDATE places SET free_at_ms = {SERVER_NOW_MS} + $2::bigint
    WHERE merchant = $1 AND free_at_ms > {SERVER_NOW_MS} + $2::bigint AND $3::bigint IS NOT NULL""",
    sqlite=("UPDATE places SET free_at_ms = $3 + $2 WHERE merchant = $1 AND free_at_ms > $3 + $2",),
)
"""Brings places that are free later than any place can be, because the clock was set back, within that time."""

TAKE_PERMITS: Final = query(
    "take_places",
    f"""
    WITH free AS (
        SELECT slot FROM places
        WHERE merchant = $1 AND slot >= 0 AND slot < $2::bigint AND free_at_ms <= {SERVER_NOW_MS}
          AND $6::bigint IS NOT NULL
          AND NOT EXISTS (
              SELECT 1 FROM places AS block
              WHERE block.merchant = $1 AND block.slot = -1 AND block.free_at_ms > {SERVER_NOW_MS})
        LIMIT $3::bigint FOR UPDATE SKIP LOCKED
    )
    UPDATE places SET free_at_ms = {SERVER_NOW_MS} + $5::bigint, holding = $4
    FROM free WHERE places.merchant = $1 AND places.slot = free.slot
    RETURNING places.slot""",
    sqlite=(
        """
        UPDATE places SET free_at_ms = $6 + $5, holding = $4
        WHERE merchant = $1 AND slot IN (
            SELECT slot FROM places
            WHERE merchant = $1 AND slot >= 0 AND slot < $2 AND free_at_ms <= $6
              AND NOT EXISTS (SELECT 1 FROM places WHERE merchant = $1 AND slot = -1 AND free_at_ms > $6)
            LIMIT $3)
        RETURNING slot""",
    ),
)
"""Takes free places of the first so many slots, until the latest possible end of their calls and a window after that.

The slot -1 is no place: until it is free, none is.
"""

NEXT_PERMIT: Final = query(
    "next_place",
    f"""
    SELECT count(*), GREATEST(min(free_at_ms), (SELECT free_at_ms FROM places WHERE merchant = $1 AND slot = -1))
        - {SERVER_NOW_MS}
    FROM places WHERE merchant = $1 AND slot >= 0 AND slot < $2::bigint AND $3::bigint IS NOT NULL""",
    sqlite=(
        """
        SELECT count(*),
            max(min(free_at_ms), COALESCE((SELECT free_at_ms FROM places WHERE merchant = $1 AND slot = -1), 0)) - $3
        FROM places WHERE merchant = $1 AND slot >= 0 AND slot < $2""",
    ),
)
"""Counts the first so many slots, and reads in how many milliseconds there may be a free one."""

END_PERMIT: Final = query(
    "end_place",
    f"""
    UPDATE places SET free_at_ms = {SERVER_NOW_MS} + $4::bigint, holding = NULL
    WHERE merchant = $1 AND slot = $2 AND holding = $3 AND $5::bigint IS NOT NULL""",
    sqlite=(
        """
        UPDATE places SET free_at_ms = $5 + $4, holding = NULL
        WHERE merchant = $1 AND slot = $2 AND holding = $3""",
    ),
)
"""Says when a place is free again, unless it is no longer held by this taking."""

BLOCK_PERMITS: Final = query(
    "block_places",
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
"""Keeps every place of a merchant's from being taken for a while."""
