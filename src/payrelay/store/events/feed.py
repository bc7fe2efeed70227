"""The feed of events: all published events, in one order that every reader sees.

Rules:

1. An event gets its position after the commit that wrote it. One process gives positions at a time, each higher than
   all before it. So a reader that has read up to a position never finds a new event below it.
2. Of two events of which one caused the other, the effect has the higher position.
3. The deliveries of an event are written with its position; neither is stored without the other.
4. Nobody is told of an event whose digest is wrong, and no page ends before the others because of it. Publishing
   gives each event a digest that covers its position too, so that nobody moves it or puts it into the outbox again. An
   event that comes out of the outbox with a wrong digest gets a position and no digest: it is out of the way, and lies
   where the audit finds it.
"""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.core.events.delivery import Pattern
from payrelay.core.events.event import Plain, PublishedEvent
from payrelay.core.events.positions import before_first
from payrelay.store.digests.rows import RowDigests, RowKey, RowVerifier
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.engine.queries import distinct, query, query_among, query_for_each
from payrelay.store.engine.tables import Table, columns_for
from payrelay.store.events import deliveries
from payrelay.store.events.outbox import TRACEPARENT
from payrelay.store.statements.events import outbox as outbox_statements
from payrelay.store.statements.events.outbox import OUTBOX

PUBLISHED_MAX: Final = 500
"""Events of one unit of work: they are held in memory, and other processes wait for it."""
PAGE_MAX: Final = 1_000
"""Events of one page, whatever the caller asks for."""
SCANNED_MAX: Final = 10_000
"""Events that are scanned for one page of certain types; more are left for the next page."""

_NO_DIGEST: Final = ""

_encode: Final = msgspec.json.Encoder().encode
_decode_data: Final = msgspec.json.Decoder(dict[str, Plain]).decode


class Reader(msgspec.Struct, frozen=True):
    """The owner of the events that are read: a principal on a merchant account."""

    merchant: str
    principal: str


class FeedPage(msgspec.Struct, frozen=True):
    """Some events, and the position from which to go on: that of the last event that was scanned."""

    events: list[PublishedEvent]
    next: int


_Events: TypeAlias = list[PublishedEvent]


class Feed:
    """Publishes events, and reads them. An event whose digest is wrong counts as not existing."""

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def has_unpublished(self) -> bool:
        """Tells whether an event waits to be published; raises StoreUnavailable."""
        return bool(await self._database.read(all_rows(Statement(outbox_statements.HAS_UNPUBLISHED, ()))))

    async def publish(self, now_ms: int, limit: int = PUBLISHED_MAX, *, incarnation: int = 1) -> int:
        """Gives committed events their positions, and queues them for their endpoints; gives the number of events.

        The positions are of the incarnation's range, or of a higher one that another process knows of already.
        Other processes wait meanwhile. May be repeated; raises StoreUnavailable.
        """
        wrong: list[str] = []
        unit = _publish(now_ms, limit, before_first(incarnation), self._rows.key, wrong)
        count = await self._database.write(unit, is_patient=True)
        await self._rows.report_all(wrong)
        return count

    async def last_position(self) -> int:
        """Gives the last position that was given; 0 before the first one."""
        rows = await self._database.read(all_rows(Statement(LAST_POSITION, ())))
        return int(rows[0][0] or 0)

    async def last_kept(self, incarnation: int, lost_since_ms: int) -> int:
        """Gives the last position of an incarnation's range whose event is from before a loss; 0 where none is left."""
        parameters = (before_first(incarnation), before_first(incarnation + 1), lost_since_ms)
        rows = await self._database.read(all_rows(Statement(LAST_KEPT, parameters)))
        return int(rows[0][0] or 0)

    async def tail(self, after: int, limit: int) -> _Events:
        """Reads the events of all principals behind a position, in their order."""
        return await self._behind(after, limit, lambda last, left: Statement(TAIL, (last, left)))

    async def read(self, reader: Reader, *, after: int, limit: int) -> FeedPage:
        """Reads a reader's events behind a position, in their order."""
        owner = (reader.merchant, reader.principal)
        found = await self._behind(
            after, min(limit, PAGE_MAX), lambda last, left: Statement(READ_FEED, (*owner, last, left))
        )
        return _page(found, after)

    async def read_about(self, reader: Reader, subject: str, *, after: int, limit: int) -> FeedPage:
        """Reads a reader's events about one subject behind a position, in their order."""
        owner = (reader.merchant, reader.principal)
        found = await self._behind(
            after,
            min(limit, PAGE_MAX),
            lambda last, left: Statement(READ_ABOUT, (*owner, last, left, subject)),
        )
        return _page(found, after)

    async def read_types(self, reader: Reader, pattern: Pattern, *, after: int, limit: int) -> FeedPage:
        """Reads a reader's events of certain types. A page may be short without being the last one."""
        return await self._rows.verified(
            lambda verifier: _types(reader, pattern, after, min(limit, PAGE_MAX), verifier)
        )

    async def of_ids(self, reader: Reader, ids: tuple[str, ...]) -> _Events:
        """Reads a reader's events by their ids, in the order of the feed; unknown ids are left out."""
        parameters = (reader.merchant, reader.principal, _encode(ids).decode())
        return await self._right(await self._database.read(all_rows(Statement(EVENTS_OF_IDS, parameters))))

    async def between(self, reader: Reader, from_ms: int, until_ms: int, *, after: int, limit: int) -> FeedPage:
        """Scans ``limit`` of a reader's events behind a position, and gives those between two times.

        The page's end is the position from which to go on; it is ``after`` where no event is behind it.
        """
        return await self._rows.verified(lambda verifier: _between(reader, (from_ms, until_ms), after, limit, verifier))

    async def at(self, positions: list[int]) -> _Events:
        """Reads the events at some positions, in their order; forgotten events are left out."""
        rows = await self._database.read(all_rows(Statement(EVENTS_AT, (_encode(positions).decode(),))))
        return sorted(await self._right(rows), key=lambda event: event.position)

    async def forget(self, before_ms: int, limit: int) -> bool:
        """Forgets at most ``limit`` events from before a time, with their deliveries; tells whether it forgot any."""
        return await self._database.write(_forget(before_ms, limit))

    async def unpublished(self) -> tuple[int, int | None]:
        """Counts the events that have no position yet, and gives the time of the oldest; None where there is none."""
        [[count, oldest_ms]] = await self._database.read(all_rows(Statement(OUTBOX_WAITING, ())))
        return msgspec.convert((count, oldest_ms), tuple[int, int | None])

    async def _behind(self, after: int, limit: int, page: Callable[[int, int], Statement]) -> _Events:
        """Reads ``limit`` right events behind a position, or as many as there are."""
        found: _Events = []
        while (left := limit - len(found)) > 0:
            rows = await self._database.read(all_rows(page(after, left)))
            found += await self._right(rows)
            if len(rows) < left:
                break
            after = int(rows[-1][0] or 0)  # events that don't count must not end the page before the others
        return found

    async def _right(self, rows: Sequence[Row]) -> _Events:
        return _events(await self._rows.trusted(EVENTS, rows))


def _publish(now_ms: int, limit: int, range_begins_at: int, key: RowKey, wrong: list[str]) -> Unit[int]:
    """Gives the number of events that were taken out; adds the names of those whose digest is wrong to ``wrong``."""
    locked = yield Statement(LOCK_FEED, ())
    last = max(int(locked[0][0] or 0), range_begins_at)
    # A statement of its own: it sees all that was committed before the feed was locked, and no other process takes any.
    unpublished = yield Statement(outbox_statements.TAKE_UNPUBLISHED, (limit,))
    if not unpublished:
        return 0
    published: list[Row] = []
    right: list[Row] = []
    for position, row in enumerate(sorted(tuple(row) for row in unpublished), last + 1):
        event = (position, *row[1:-1])
        if key.fits(OUTBOX, row):
            right.append(event)
            published.append((*event, key.of(EVENTS, event)))
        else:
            wrong.append(f"{EVENTS.name}/{position}")
            published.append((*event, _NO_DIGEST))
    until = last + len(published)
    yield Statement(PUBLISH, (_encode(published).decode(),))
    yield Statement(MOVE_FEED, (until,))
    subscribers = yield from deliveries.read_subscribers()
    if subscribers:
        # An event that was published before keeps its position. A delivery at the new one could never be sent, and
        # later deliveries would wait for it.
        added = {tuple(row) for row in (yield Statement(IDS_AMONG, (last, until)))}
        yield from deliveries.queue([event for event in right if event[:2] in added], subscribers, now_ms)
    return len(published)


def _types(reader: Reader, pattern: Pattern, after: int, limit: int, verifier: RowVerifier) -> Unit[FeedPage]:
    owner = (reader.merchant, reader.principal, after)
    [[until]] = yield Statement(SCAN, (*owner, SCANNED_MAX))
    if until is None:
        return FeedPage([], after)
    found: _Events = []
    while (left := limit - len(found)) > 0:
        parameters = (*owner[:2], after, until, pattern.compared, pattern.beginning, left)
        rows = yield Statement(READ_TYPES, parameters)
        found += _events(verifier.right(EVENTS, rows))
        if len(rows) < left:
            return FeedPage(found, int(until))
        after = int(rows[-1][0] or 0)
    return _page(found, after)


def _between(reader: Reader, moments: tuple[int, int], after: int, limit: int, verifier: RowVerifier) -> Unit[FeedPage]:
    owner = (reader.merchant, reader.principal, after)
    [[until]] = yield Statement(SCAN, (*owner, limit))
    if until is None:
        return FeedPage([], after)
    rows = yield Statement(READ_BETWEEN, (*owner, until, *moments))
    return FeedPage(_events(verifier.right(EVENTS, rows)), int(until))


def _forget(before_ms: int, limit: int) -> Unit[bool]:
    if not (yield Statement(IS_ANY_PRUNABLE, (before_ms,))):
        return False
    [[until]] = yield Statement(PRUNABLE, (before_ms, limit))
    if until is None:
        return False
    yield Statement(FORGET_DELIVERIES, (until,))
    yield Statement(FORGET_EVENTS, (until, before_ms))
    return True


def _page(events: _Events, after: int) -> FeedPage:
    return FeedPage(events, events[-1].position if events else after)


def _events(rows: Sequence[Row]) -> _Events:
    return [event_of(row) for row in rows]


def event_of(row: Row) -> PublishedEvent:
    """Converts a row that has the columns of an event in their order."""
    *members, text = row
    data = _decode_data(str(text))
    traceparent = data.pop(TRACEPARENT, None)
    values = dict(zip(PublishedEvent.__struct_fields__, (*members, data, traceparent), strict=True))
    return msgspec.convert(values, PublishedEvent)


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
