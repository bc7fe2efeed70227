"""The feed: events in the order in which all can see them, on each engine."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.digests import CHAIN_KEY, digests_of

from payrelay.clock import Clock
from payrelay.core.events.delivery import pattern_of
from payrelay.core.events.event import OutgoingEvent, event_id
from payrelay.core.payments.operation import Event
from payrelay.store import open_database
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Database, Unit
from payrelay.store.engine.sqlite import InlineExecutor, Sqlite
from payrelay.store.engine.sqlite_file import open_file
from payrelay.store.events import outbox
from payrelay.store.events.feed import SCANNED_MAX, Feed, Reader

Book = Any  # conftest.Book; test folders are not packages, so that it can't be imported
SHOP = Reader("m", "shop")
DAY_MS = 86_400_000


def event(number: int, **members: object) -> OutgoingEvent:
    """Gives an event by its number, but for what is named."""
    own: dict[str, Any] = {
        "id": event_id(1_000 + number, str(number)),
        "type": "customer.created",
        "account": "gateway",
        "merchant": "m",
        "principal": "shop",
        "subject": f"customer:cus_{number}",
        "at_ms": 1_000 + number,
        "data": {"number": number},
    }
    return OutgoingEvent(**(own | members))


async def put(database: Database, *events: OutgoingEvent) -> None:
    """Writes events, each in a unit of its own."""
    for one in events:
        await database.write(outbox.put(one, RowKey(CHAIN_KEY)))


async def numbers(feed: Feed, after: int = 0, limit: int = 1_000, reader: Reader = SHOP) -> list[object]:
    """Reads a page, and gives the numbers of its events."""
    return [one.data["number"] for one in (await feed.read(reader, after=after, limit=limit)).events]


async def test_an_event_is_in_the_feed_once_it_is_published(database: Database) -> None:
    """What is read has its position for good."""
    feed = Feed(database, digests_of(database))
    await put(database, event(1), event(2))
    assert await numbers(feed) == []

    assert await feed.publish(0) == 2
    page = await feed.read(SHOP, after=0, limit=10)
    assert [(one.position, one.id, one.data) for one in page.events] == [
        (1, event(1).id, {"number": 1}),
        (2, event(2).id, {"number": 2}),
    ]
    assert await feed.last_position() == page.next == 2
    assert await feed.publish(0) == 0


async def test_a_feed_is_read_page_by_page(database: Database) -> None:
    """Whoever goes on behind the last position sees each event once."""
    feed = Feed(database, digests_of(database))
    await put(database, *(event(number) for number in range(5)))
    await feed.publish(0, limit=3)
    await feed.publish(0, limit=3)

    page = await feed.read(SHOP, after=0, limit=2)
    assert await numbers(feed, page.next) == [2, 3, 4]
    assert (await feed.read(SHOP, after=5, limit=2)).next == 5


async def test_a_reader_sees_its_own_events_alone(database: Database) -> None:
    """Another principal's payments are nobody's business, nor the same one's on another merchant account."""
    feed = Feed(database, digests_of(database))
    await put(database, event(1), event(2, principal="other"), event(3, merchant="n"))
    await feed.publish(0)

    assert await numbers(feed) == [1]
    assert await numbers(feed, reader=Reader("m", "other")) == [2]
    assert await numbers(feed, reader=Reader("n", "shop")) == [3]
    assert [one.data["number"] for one in await feed.tail(1, 10)] == [2, 3]


async def test_events_about_a_subject_are_found(database: Database) -> None:
    """An app that waits for one payment reads no others."""
    feed = Feed(database, digests_of(database))
    await put(database, event(1), event(2), event(3, subject="customer:cus_1"), event(4, subject="customer:cus_1"))
    await put(database, event(5, subject="customer:cus_1", principal="other"))
    await feed.publish(0)

    page = await feed.read_about(SHOP, "customer:cus_1", after=1, limit=10)
    assert [one.data["number"] for one in page.events] == [3, 4]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("*", [1, 2, 3]), ("customer.*", [1, 2]), ("customer.created", [1]), ("operation.failed", [])],
)
async def test_events_of_a_type_are_found(database: Database, pattern: str, found: list[int]) -> None:
    """A type is compared whole: customer.created is not customer.created_again, were there such a type."""
    feed = Feed(database, digests_of(database))
    types = ("customer.created", "customer.created_again", "checkout.completed")
    await put(database, *(event(number, type=type_) for number, type_ in enumerate(types, 1)))
    await feed.publish(0)

    page = await feed.read_types(SHOP, pattern_of(pattern), after=0, limit=10)
    assert [one.data["number"] for one in page.events] == found
    assert page.next == 3


async def test_a_page_of_a_type_goes_on_where_it_ended(database: Database) -> None:
    """A full page ends at its last event, an unfinished one at the last that was scanned."""
    feed = Feed(database, digests_of(database))
    await put(
        database, *(event(number, type=f"customer.{'created' if number % 2 else 'updated'}") for number in range(8))
    )
    await feed.publish(0)
    pattern = pattern_of("customer.created")

    first = await feed.read_types(SHOP, pattern, after=0, limit=3)
    second = await feed.read_types(SHOP, pattern, after=first.next, limit=3)
    nothing = await feed.read_types(SHOP, pattern, after=second.next, limit=3)
    assert [one.data["number"] for one in (*first.events, *second.events)] == [1, 3, 5, 7]
    assert (second.next, nothing.next, nothing.events) == (8, 8, [])
    assert SCANNED_MAX > 8


async def test_what_a_unit_undid_was_never_published(database: Database) -> None:
    """An event without its change would be a lie."""

    def fails() -> Unit[None]:
        yield from outbox.put(event(1), RowKey(CHAIN_KEY))
        raise LookupError("undone")

    with pytest.raises(LookupError):
        await database.write(fails())
    assert await Feed(database, digests_of(database)).publish(0) == 0


async def test_an_event_that_is_written_twice_is_published_once(database: Database) -> None:
    """Whoever can't know whether a commit came through may do it again."""
    feed = Feed(database, digests_of(database))
    await put(database, event(1), event(1), event(2))
    await feed.publish(0)
    await put(database, event(1), event(3))
    await feed.publish(0)

    assert await numbers(feed) == [1, 2, 3]


async def test_a_change_of_an_operation_is_stored_with_its_event(book: Book) -> None:
    """The event and the change are one unit of work, and a change without an event has none."""
    feed = Feed(book.database, digests_of(book.database))
    await book.accept(book.new(1))
    unknown = await book.advance(book.new(1), Event.UNKNOWN)
    looked = await book.advance(unknown, Event.INQUIRED_ABOUT)
    await book.advance(looked, Event.PROVED)

    await feed.publish(0)
    page = await feed.read(Reader("0123456789abcdef", "shop"), after=0, limit=10)
    assert [(one.type, one.data["version"]) for one in page.events] == [
        ("operation.unknown", 2),
        ("operation.succeeded", 4),
    ]


async def test_an_outdated_change_tells_nothing(book: Book) -> None:
    """Of two that decided on the same version one is right, and one event is published."""
    feed = Feed(book.database, digests_of(book.database))
    await book.accept(book.new(1))
    stored = book.stored(book.new(1))
    results = await asyncio.gather(
        book.advance(stored, Event.DECLINED), book.advance(stored, Event.SUCCEEDED), return_exceptions=True
    )

    await feed.publish(0)
    assert sum(isinstance(result, Exception) for result in results) == 1
    assert len(await feed.tail(0, 10)) == 1


async def test_an_old_event_behind_a_younger_one_is_forgotten(database: Database) -> None:
    """Positions are given in the order of commits, and processes' clocks differ."""
    feed = Feed(database, digests_of(database))
    await put(database, event(1, at_ms=2 * DAY_MS), event(2, at_ms=1))
    await feed.publish(0)

    assert await feed.forget(DAY_MS, 10)
    assert await numbers(feed) == [1]


async def test_a_look_for_old_events_reads_the_oldest_alone(tmp_path: Path) -> None:
    """It comes every few seconds for as long as the service runs, and hardly ever finds one."""
    connections = open_file(tmp_path / "payrelay.db", clock=Clock())
    loop = asyncio.get_running_loop()
    database = Sqlite(connections, executor=InlineExecutor(), loop=loop, lock=None, busy_s=1, list_timeout_s=None)
    feed = Feed(database, digests_of(database))
    await asyncio.gather(*(put(database, event(number)) for number in range(400)))
    while await feed.publish(0):
        pass
    steps = itertools.count()
    connections.writer.set_progress_handler(lambda: next(steps) < 0, 1)
    assert not await feed.forget(0, 1_000)
    await database.close()

    assert next(steps) < 500


async def test_old_events_are_forgotten(database: Database) -> None:
    """The feed keeps some weeks, and no position is given again."""
    feed = Feed(database, digests_of(database))
    await put(database, event(1, at_ms=1), event(2, at_ms=2), event(3, at_ms=2 * DAY_MS))
    await feed.publish(0)

    assert await feed.forget(DAY_MS, 1)
    assert await numbers(feed) == [2, 3]
    assert await feed.forget(DAY_MS, 10)
    assert not await feed.forget(DAY_MS, 10)
    assert await numbers(feed) == [3]
    await put(database, event(4))
    await feed.publish(0)
    assert (await feed.tail(3, 1))[0].position == 4


async def test_what_waits_to_be_published_is_counted(database: Database) -> None:
    """A number that grows says that nobody publishes."""
    feed = Feed(database, digests_of(database))
    assert await feed.unpublished() == (0, None)
    await put(database, event(2), event(1))
    assert await feed.unpublished() == (2, 1_001)


async def test_no_reader_ever_finds_a_lower_position_later(engine: str, url: str, database: Database) -> None:
    """Whoever has read up to a position goes on behind it: what appeared below it later would be lost.

    Writers, publishers and readers run at once, on PostgreSQL each with connections of its own.
    """
    others = [await open_database(url, clock=Clock(), owner=False) for _ in range(2 if engine == "postgresql" else 0)]
    databases = [database, *others]
    writing = [asyncio.create_task(put(databases[n % len(databases)], *_chain(n))) for n in range(6)]
    is_over = asyncio.Event()

    async def publish(own: Database) -> None:
        while not is_over.is_set():
            await Feed(own, digests_of(own)).publish(0, limit=7)
            await asyncio.sleep(0)

    async def follow(own: Database) -> list[tuple[object, object]]:
        seen: list[tuple[object, object]] = []
        position = 0
        while len(seen) < 6 * 25:
            page = await Feed(own, digests_of(own)).read(SHOP, after=position, limit=11)
            assert [one.position for one in page.events] == list(range(position + 1, page.next + 1))
            seen += [(one.data["chain"], one.data["number"]) for one in page.events]
            position = page.next
            await asyncio.sleep(0)
        return seen

    publishing = [asyncio.create_task(publish(own)) for own in databases]
    async with asyncio.timeout(60):
        read = await asyncio.gather(*(follow(own) for own in databases))
    is_over.set()
    await asyncio.gather(*writing, *publishing)
    for own in others:
        await own.close()

    assert all(one == read[0] for one in read)
    for chain in range(6):
        assert [number for own, number in read[0] if own == chain] == list(range(25)), (
            "an effect stands behind its cause"
        )


def _chain(chain: int) -> list[OutgoingEvent]:
    """Gives events of which each is written after the one before was committed."""
    return [
        event(
            number,
            id=event_id(1, f"{chain}/{number}"),
            subject=f"customer:cus_{chain}",
            data={"chain": chain, "number": number},
        )
        for number in range(25)
    ]


async def test_each_incarnation_has_positions_of_its_own_above_all_before(database: Database) -> None:
    """The lost events had the next positions: given again, a reader would take other events for those it knows."""
    feed = Feed(database, digests_of(database))
    await put(database, event(1), event(2))
    await feed.publish(0)
    await put(database, event(3))
    await feed.publish(0, incarnation=2)
    await put(database, event(4))
    await feed.publish(0)  # a process that doesn't know of the new incarnation yet

    page = await feed.read(SHOP, after=0, limit=10)
    assert [each.position for each in page.events] == [1, 2, 10**13 + 1, 10**13 + 2]
    assert await numbers(feed, after=2) == [3, 4]


async def test_the_last_kept_position_is_of_the_last_event_from_before_the_loss(database: Database) -> None:
    """What was published after a restore, before anybody knew of it, has positions that lost events had too."""
    feed = Feed(database, digests_of(database))
    assert await feed.last_kept(1, 2_000) == 0
    await put(database, event(1), event(2), event(3, at_ms=5_000))
    await feed.publish(0)
    await put(database, event(4))
    await feed.publish(0, incarnation=2)

    assert (await feed.last_kept(1, 2_000), await feed.last_kept(1, 9_000), await feed.last_kept(2, 9_000)) == (
        2,
        3,
        10**13 + 1,
    )
