"""The feed: events in the order in which all readers see them."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.events.event import PublishedEvent
from payrelay.store.engine.queries import distinct, query, query_among, query_for_each
from payrelay.store.engine.tables import Table, columns_for

EVENTS: Final = Table(name="events", columns=columns_for(PublishedEvent)[:-1])
"""The last member of an event, its trace context, lies among its data."""

LOCK_FEED: Final = query("SELECT position FROM feed WHERE one = 1 FOR UPDATE")
"""Reads the last position, and keeps others from giving one until the unit's end."""

MOVE_FEED: Final = query("UPDATE feed SET position = $1 WHERE one = 1")
"""Stores the last position."""

LAST_POSITION: Final = query("SELECT position FROM feed WHERE one = 1")
"""Reads the last position."""

LAST_KEPT: Final = query("SELECT max(position) FROM events WHERE position > $1 AND position <= $2 AND at_ms < $3")
"""Reads the last position in a range whose event is older than a time."""

PUBLISH: Final = query_for_each(
    f"""
    {EVENTS.into()}
    SELECT (event ->> 0)::bigint, event ->> 1, event ->> 2, event ->> 3, event ->> 4, event ->> 5, event ->> 6,
           (event ->> 7)::bigint, event ->> 8, event ->> 9
    FROM json_array_elements($1::json) AS event
    ON CONFLICT DO NOTHING""",
    sqlite=f"{EVENTS.insert()} ON CONFLICT DO NOTHING",
)
"""Adds events to the feed: a JSON list of the columns of each, its digest last. An event that is there already stays at
its position."""

IDS_AMONG: Final = query("SELECT position, id FROM events WHERE position > $1 AND position <= $2")
"""Reads the positions behind one, up to another one, each with its event's id."""

TAIL: Final = query(f"{EVENTS.select} WHERE position > $1 ORDER BY position LIMIT $2")
"""Reads the events of all principals behind a position."""

READ_FEED: Final = query(
    f"""
    {EVENTS.select}
    WHERE merchant = $1 AND principal = $2 AND position > $3 ORDER BY position LIMIT $4""",
)
"""Reads one page of a principal's events behind a position."""

READ_ABOUT: Final = query(
    f"""
    {EVENTS.select}
    WHERE subject = $5 AND merchant = $1 AND principal = $2 AND position > $3 ORDER BY position LIMIT $4""",
)
"""Reads one page of a principal's events about one subject behind a position."""

SCAN: Final = query(
    """
    SELECT max(position) FROM (
        SELECT position FROM events
        WHERE merchant = $1 AND principal = $2 AND position > $3 ORDER BY position LIMIT $4
    ) AS looked_at""",
)
"""Reads the position of the last of so many of a principal's events."""

READ_TYPES: Final = query(
    f"""
    {EVENTS.select}
    WHERE merchant = $1 AND principal = $2 AND position > $3 AND position <= $4 AND substr(type, 1, $5::int) = $6
    ORDER BY position LIMIT $7""",
)
"""Reads a principal's events between two positions whose types begin with $6."""

EVENTS_AT: Final = query(
    f"""
    {EVENTS.select}
    WHERE position = ANY (ARRAY(SELECT wanted::bigint FROM json_array_elements_text($1::json) AS wanted))""",
    sqlite=(f"{EVENTS.select} WHERE position IN (SELECT value FROM json_each($1))",),
)
"""Reads the events at some positions: a JSON list of them."""

EVENTS_OF_IDS: Final = query_among(
    f"""
    {EVENTS.select}
    WHERE merchant = $1 AND principal = $2 AND id @3
    ORDER BY position""",
)
"""Reads a principal's events by their ids: a JSON list of them."""

READ_BETWEEN: Final = query(
    f"""
    {EVENTS.select}
    WHERE merchant = $1 AND principal = $2 AND position > $3 AND position <= $4 AND at_ms >= $5 AND at_ms < $6
    ORDER BY position""",
)
"""Reads a principal's events between two positions and two times."""

IS_ANY_PRUNABLE: Final = query(
    """
    SELECT 1 FROM (SELECT at_ms FROM events ORDER BY position LIMIT 20) AS oldest
    WHERE at_ms < $1 LIMIT 1""",
)
"""Tells whether any of the oldest events is from before a time: a few are looked at, because positions and times differ
in their order by seconds."""

PRUNABLE: Final = query(
    """
    SELECT max(position) FROM (SELECT position, at_ms FROM events ORDER BY position LIMIT $2) AS oldest
    WHERE at_ms < $1""",
)
"""Reads the position up to which the oldest events may be forgotten, a limited number at a time."""

FORGET_EVENTS: Final = query("DELETE FROM events WHERE position <= $1 AND at_ms < $2")
"""Forgets events."""

FORGET_DELIVERIES: Final = query(
    f"DELETE FROM deliveries WHERE endpoint_id IN ({distinct('deliveries', 'endpoint_id')}) AND position <= $1",
)
"""Forgets the deliveries of events up to a position, also to endpoints that are gone."""

OUTBOX_WAITING: Final = query("SELECT count(*), min(at_ms) FROM outbox")
"""Counts the unpublished events, and reads the time of the oldest."""
