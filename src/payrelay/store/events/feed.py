"""The feed of events: everything that was told, in one order that all who read it can see.

Rules:

1. An event gets its position after the commit that wrote it. One process gives positions at a time, each higher than
   all before it, so that whoever has read up to a position finds nothing new below it, ever.
2. Of two events of which one was caused by the other, that one has the higher position.
3. What is to be delivered of an event is written with its position; neither is without the other.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.core.events.delivery import Pattern
from payrelay.core.events.event import Plain, PublishedEvent
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.events import deliveries
from payrelay.store.statements.events import feed as statements
from payrelay.store.statements.events import outbox as outbox_statements

PUBLISHED_MAX: Final = 500
"""Events of one unit of work: they are held in memory, and whoever publishes is waited for."""
PAGE_MAX: Final = 1_000
"""Events of one page, whatever the caller asks for."""
SCANNED_MAX: Final = 10_000
"""Events that are looked at for one page of certain types; more are for the next page."""

_encode: Final = msgspec.json.Encoder().encode
_decode_data: Final = msgspec.json.Decoder(dict[str, Plain]).decode


class Reader(msgspec.Struct, frozen=True):
    """Whose events are read: those that a principal is told of, on a merchant account."""

    merchant: str
    principal: str


class FeedPage(msgspec.Struct, frozen=True):
    """Some events, and the position to go on behind: that of the last one that was looked at."""

    events: list[PublishedEvent]
    next: int


_Events: TypeAlias = list[PublishedEvent]


class Feed:
    """Publishes events, and reads them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def has_unpublished(self) -> bool:
        """Tells whether there is anything to be published; raises StoreUnavailable."""
        return bool(await self._database.read(all_rows(Statement(outbox_statements.HAS_UNPUBLISHED, ()))))

    async def publish(self, now_ms: int, limit: int = PUBLISHED_MAX) -> int:
        """Gives events that were committed their positions, and queues them for their endpoints; gives how many.

        Other processes wait meanwhile. May be repeated; raises StoreUnavailable.
        """
        if not await self.has_unpublished():
            return 0
        return await self._database.write(_publish(now_ms, limit))

    async def last_position(self) -> int:
        """Tells the last position that was given; 0 before the first one."""
        rows = await self._database.read(all_rows(Statement(statements.LAST_POSITION, ())))
        return int(rows[0][0] or 0)

    async def tail(self, after: int, limit: int) -> _Events:
        """Reads everybody's events behind a position, in their order."""
        return _events(await self._database.read(all_rows(Statement(statements.TAIL, (after, limit)))))

    async def read(self, reader: Reader, *, after: int, limit: int) -> FeedPage:
        """Reads a reader's events behind a position, in their order."""
        parameters = (reader.merchant, reader.principal, after, min(limit, PAGE_MAX))
        return _page(await self._database.read(all_rows(Statement(statements.READ_FEED, parameters))), after)

    async def read_about(self, reader: Reader, subject: str, *, after: int, limit: int) -> FeedPage:
        """Reads those about one subject."""
        parameters = (reader.merchant, reader.principal, after, min(limit, PAGE_MAX), subject)
        return _page(await self._database.read(all_rows(Statement(statements.READ_ABOUT, parameters))), after)

    async def read_types(self, reader: Reader, pattern: Pattern, *, after: int, limit: int) -> FeedPage:
        """Reads those of certain types; where few of many are, a page may be short and is not the last one."""
        return await self._database.read(_types(reader, pattern, after, min(limit, PAGE_MAX)))

    async def of_ids(self, reader: Reader, ids: tuple[str, ...]) -> _Events:
        """Reads a reader's events by their ids, in the order of the feed; those that are not there are missing."""
        parameters = (reader.merchant, reader.principal, _encode(ids).decode())
        return _events(await self._database.read(all_rows(Statement(statements.EVENTS_OF_IDS, parameters))))

    async def between(self, reader: Reader, from_ms: int, until_ms: int, *, after: int, limit: int) -> FeedPage:
        """Looks at ``limit`` of a reader's events behind a position, and gives those between two moments.

        The page's end is where to go on; it is ``after`` where nothing is behind it.
        """
        return await self._database.read(_between(reader, (from_ms, until_ms), after, limit))

    async def at(self, positions: list[int]) -> _Events:
        """Reads the events at some positions, in their order; those that were forgotten are not among them."""
        rows = await self._database.read(all_rows(Statement(statements.EVENTS_AT, (_encode(positions).decode(),))))
        return sorted(_events(rows), key=lambda event: event.position)

    async def forget(self, before_ms: int, limit: int) -> bool:
        """Forgets at most ``limit`` events from before a moment, with their deliveries; tells whether it did."""
        return await self._database.write(_forget(before_ms, limit))

    async def unpublished(self) -> tuple[int, int | None]:
        """Counts what has no position yet, and tells when the oldest of it happened."""
        [[count, oldest_ms]] = await self._database.read(all_rows(Statement(statements.OUTBOX_WAITING, ())))
        return msgspec.convert((count, oldest_ms), tuple[int, int | None])


def _publish(now_ms: int, limit: int) -> Unit[int]:
    held = yield Statement(statements.LOCK_FEED, ())
    last = int(held[0][0] or 0)
    # A statement of its own: it sees all that was committed before the feed was held, and nobody else takes any.
    taken = yield Statement(outbox_statements.TAKE_UNPUBLISHED, (limit,))
    if not taken:
        return 0
    in_order = sorted(tuple(row) for row in taken)
    columns = [(last + number, *row[1:]) for number, row in enumerate(in_order, 1)]
    rows = yield Statement(statements.PUBLISH, (_encode(columns).decode(),))
    yield Statement(statements.MOVE_FEED, (last + len(columns),))
    # What was told before has no place of its own: a delivery of it could never be sent, and what follows would wait.
    added = {row[0] for row in rows}
    yield from deliveries.queue([event for event in _events(columns) if event.position in added], now_ms)
    return len(columns)


def _types(reader: Reader, pattern: Pattern, after: int, limit: int) -> Unit[FeedPage]:
    whose = (reader.merchant, reader.principal, after)
    [[until]] = yield Statement(statements.SCAN, (*whose, SCANNED_MAX))
    if until is None:
        return FeedPage([], after)
    parameters = (*whose, until, pattern.compared, pattern.beginning, limit)
    rows = yield Statement(statements.READ_TYPES, parameters)
    return _page(rows, after) if len(rows) == limit else FeedPage(_events(rows), int(until))


def _between(reader: Reader, moments: tuple[int, int], after: int, limit: int) -> Unit[FeedPage]:
    whose = (reader.merchant, reader.principal, after)
    [[until]] = yield Statement(statements.SCAN, (*whose, limit))
    if until is None:
        return FeedPage([], after)
    rows = yield Statement(statements.READ_BETWEEN, (*whose, until, *moments))
    return FeedPage(_events(rows), int(until))


def _forget(before_ms: int, limit: int) -> Unit[bool]:
    [[until]] = yield Statement(statements.PRUNABLE, (before_ms, limit))
    if until is None:
        return False
    yield Statement(statements.FORGET_DELIVERIES, (until,))
    yield Statement(statements.FORGET_EVENTS, (until, before_ms))
    return True


def _page(rows: list[Row], after: int) -> FeedPage:
    events = _events(rows)
    return FeedPage(events, events[-1].position if events else after)


def _events(rows: Sequence[Row]) -> _Events:
    return [event_of(row) for row in rows]


def event_of(row: Row) -> PublishedEvent:
    """Makes an event of a row that has its columns in their order."""
    *members, data = row
    values = dict(zip(PublishedEvent.__struct_fields__, (*members, _decode_data(str(data))), strict=True))
    return msgspec.convert(values, PublishedEvent)
