"""The feed: events in the order in which all can see them."""

# ruff: noqa: S608 - what is put into the texts are columns named here; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query

EVENT_COLUMNS: Final = "position, id, type, account, merchant, principal, subject, at_ms, data"

LOCK_FEED: Final = query("hold_feed", "SELECT position FROM feed WHERE one = 1 FOR UPDATE")
"""Reads the last position that was given, and lets nobody else give one until the end of the unit."""

MOVE_FEED: Final = query("move_feed", "UPDATE feed SET position = $1 WHERE one = 1")
"""Says which position was given last."""

LAST_POSITION: Final = query("last_position", "SELECT position FROM feed WHERE one = 1")
"""Reads the last position that was given."""

PUBLISH: Final = query(
    "publish",
    f"""
    INSERT INTO events ({EVENT_COLUMNS})
    SELECT (event ->> 0)::bigint, event ->> 1, event ->> 2, event ->> 3, event ->> 4, event ->> 5, event ->> 6,
           (event ->> 7)::bigint, event ->> 8
    FROM json_array_elements($1::json) AS event
    ON CONFLICT DO NOTHING
    RETURNING position""",
    sqlite=(
        f"""
        INSERT INTO events ({EVENT_COLUMNS})
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
               value ->> 8
        FROM json_each($1) WHERE true
        ON CONFLICT DO NOTHING
        RETURNING position""",
    ),
)
"""Adds events to the feed: a JSON list of the columns of each. One that is there already stays where it is; gives the
positions of the others."""

TAIL: Final = query("tail", f"SELECT {EVENT_COLUMNS} FROM events WHERE position > $1 ORDER BY position LIMIT $2")
"""Reads everybody's events behind a position."""

READ_FEED: Final = query(
    "read_feed",
    f"""
    SELECT {EVENT_COLUMNS} FROM events
    WHERE merchant = $1 AND principal = $2 AND position > $3 ORDER BY position LIMIT $4""",
)
"""Reads one page of a principal's events behind a position."""

READ_ABOUT: Final = query(
    "read_about",
    f"""
    SELECT {EVENT_COLUMNS} FROM events
    WHERE subject = $5 AND merchant = $1 AND principal = $2 AND position > $3 ORDER BY position LIMIT $4""",
)
"""The same of the events about one subject."""

SCAN: Final = query(
    "look_through",
    """
    SELECT max(position) FROM (
        SELECT position FROM events
        WHERE merchant = $1 AND principal = $2 AND position > $3 ORDER BY position LIMIT $4
    ) AS looked_at""",
)
"""Reads how far so many of a principal's events reach."""

READ_TYPES: Final = query(
    "read_types",
    f"""
    SELECT {EVENT_COLUMNS} FROM events
    WHERE merchant = $1 AND principal = $2 AND position > $3 AND position <= $4 AND substr(type, 1, $5::int) = $6
    ORDER BY position LIMIT $7""",
)
"""Reads a principal's events between two positions whose types begin in a certain way."""

EVENTS_AT: Final = query(
    "events_at",
    f"""
    SELECT {EVENT_COLUMNS} FROM events
    WHERE position = ANY (ARRAY(SELECT wanted::bigint FROM json_array_elements_text($1::json) AS wanted))""",
    sqlite=(f"SELECT {EVENT_COLUMNS} FROM events WHERE position IN (SELECT value FROM json_each($1))",),
)
"""Reads the events at some positions: a JSON list of them."""

EVENTS_OF_IDS: Final = query(
    "events_of_ids",
    f"""
    SELECT {EVENT_COLUMNS} FROM events
    WHERE merchant = $1 AND principal = $2
      AND id = ANY (ARRAY(SELECT wanted FROM json_array_elements_text($3::json) AS wanted))
    ORDER BY position""",
    sqlite=(
        f"""
        SELECT {EVENT_COLUMNS} FROM events
        WHERE merchant = $1 AND principal = $2 AND id IN (SELECT value FROM json_each($3))
        ORDER BY position""",
    ),
)
"""Reads a principal's events by their ids: a JSON list of them."""

READ_BETWEEN: Final = query(
    "read_between",
    f"""
    SELECT {EVENT_COLUMNS} FROM events
    WHERE merchant = $1 AND principal = $2 AND position > $3 AND position <= $4 AND at_ms >= $5 AND at_ms < $6
    ORDER BY position""",
)
"""Reads a principal's events between two positions and two moments."""

PRUNABLE: Final = query(
    "prunable",
    """
    SELECT max(position) FROM (SELECT position, at_ms FROM events ORDER BY position LIMIT $2) AS oldest
    WHERE at_ms < $1""",
)
"""Reads up to where the oldest events, some at a time, may be forgotten."""

FORGET_EVENTS: Final = query("forget_events", "DELETE FROM events WHERE position <= $1 AND at_ms < $2")
"""Forgets events."""

FORGET_DELIVERIES: Final = query(
    "forget_deliveries",
    "DELETE FROM deliveries WHERE endpoint_id IN (SELECT id FROM endpoints) AND position <= $1",
)
"""Forgets what became of them."""

OUTBOX_WAITING: Final = query("outbox_waiting", "SELECT count(*), min(at_ms) FROM outbox")
"""Counts what is not published yet, with when the oldest of it happened."""
