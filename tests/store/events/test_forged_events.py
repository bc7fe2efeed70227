# ruff: noqa: S608 - what is put into the texts are the columns that are named here

"""What somebody tries who can write to the database, and wants a shop told what never happened."""

from typing import Final

import pytest
from tests.digests import digests_of
from tests.store.conftest import Tamper
from tests.store.events.test_feed import SHOP, event, numbers, put

from payrelay.console.store.sent_events import SentEvents
from payrelay.core.events.delivery import pattern_of
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.engine.database import Database
from payrelay.store.events.deliveries import Deliveries
from payrelay.store.events.feed import EVENTS, Feed, Reader
from payrelay.store.statements.events.outbox import OUTBOX

COLUMNS: Final = "id, type, account, merchant, principal, subject, at_ms, data"
CHANGES: Final = (
    "type = 'checkout.completed'",
    "account = 'other'",
    "subject = 'customer:cus_1'",
    "at_ms = 5000",
    """data = '{"number":2,"amount":"9.00"}'""",
    "data = 'no JSON at all'",
    "id = 'evt_other'",
    "position = 9",
    "row_digest = ''",
    "row_digest = (SELECT row_digest FROM events WHERE position = 1)",
)
"""What may be changed of the second of three published events."""


async def wrong(database: Database) -> list[str]:
    """Gives the rows of the outbox and of the feed that the audit names."""
    rows = digests_of(database)
    return [row.name for table in (OUTBOX, EVENTS) async for row in rows.check(table) if not row.is_right]


async def alerted(database: Database) -> list[str]:
    """Gives the rows about which an alert waits."""
    due = await Alerts(database, AlertSubject.ROW).lease_due(2**60, leased_until_ms=2**61, limit=100)
    return sorted(alert.subject_id for alert in due)


async def test_an_event_that_was_written_into_the_outbox_is_told_to_nobody(database: Database, tamper: Tamper) -> None:
    """It is out of the way once it was met: the next ones are published, and the audit finds where it lies."""
    feed = Feed(database, digests_of(database))
    await put(database, event(1))
    planted = "'evt_0', 'checkout.completed', 'gateway', 'm', 'shop', 'checkout:chk_1', 1, '{\"number\":0}'"
    await tamper(f"INSERT INTO outbox ({COLUMNS}) VALUES ({planted})")
    await tamper(f"INSERT INTO outbox ({COLUMNS}) VALUES ({planted.replace('evt_0', 'evt_00').replace('{', '')})")
    await put(database, event(2))
    assert len(await wrong(database)) == 2
    assert await feed.publish(0) == 4

    assert await numbers(feed) == [1, 2]
    assert not await feed.has_unpublished()
    assert await wrong(database) == ["events/2", "events/3"]
    assert await alerted(database) == ["events/2", "events/3"]
    assert await feed.publish(0) == 0


@pytest.mark.parametrize("change", CHANGES)
async def test_an_event_that_was_changed_is_told_to_nobody(database: Database, tamper: Tamper, change: str) -> None:
    """However it is read: by its owner, about its subject, by its type, id, time or place, or by operators."""
    rows = digests_of(database)
    feed = Feed(database, rows)
    await put(database, *(event(number, subject="customer:cus_0") for number in (1, 2, 3)))
    await feed.publish(0)
    await tamper(f"UPDATE events SET {change} WHERE position = 2")

    assert await numbers(feed) == [1, 3]
    assert [one.position for one in await feed.tail(0, 9)] == [1, 3]
    about = await feed.read_about(SHOP, "customer:cus_0", after=0, limit=9)
    of_type = await feed.read_types(SHOP, pattern_of("customer.*"), after=0, limit=9)
    between = await feed.between(SHOP, 0, 10_000, after=0, limit=9)
    assert [[one.position for one in page.events] for page in (about, of_type, between)] == [[1, 3]] * 3
    assert [one.position for one in await feed.at([1, 2, 3, 9])] == [1, 3]
    assert await feed.of_ids(SHOP, (event(2).id, "evt_other")) == []
    told = await SentEvents(rows).about("m", ["customer:cus_0", "customer:cus_1"])
    assert [one.position for one in told.events] == [1, 3]
    place = 9 if change == "position = 9" else 2
    assert await alerted(database) == await wrong(database) == [f"events/{place}"]


async def test_an_event_is_not_told_to_another_principal(database: Database, tamper: Tamper) -> None:
    """A kiosk would hear who pays what at the shop."""
    feed = Feed(database, digests_of(database))
    await put(database, event(1), event(2))
    await tamper("UPDATE outbox SET principal = 'kiosk' WHERE seq = (SELECT min(seq) FROM outbox)")
    await feed.publish(0)
    await tamper("UPDATE events SET principal = 'kiosk'")

    assert await numbers(feed, reader=Reader("m", "kiosk")) == []
    assert await wrong(database) == ["events/1", "events/2"]


async def test_a_published_event_is_not_put_into_the_outbox_again(database: Database, tamper: Tamper) -> None:
    """Its digest has its position: a copy of one that was forgotten comes no second time."""
    feed = Feed(database, digests_of(database))
    await put(database, event(1))
    await feed.publish(0)
    await tamper(f"INSERT INTO outbox ({COLUMNS}, row_digest) SELECT {COLUMNS}, row_digest FROM events")
    await tamper("DELETE FROM events")
    await feed.publish(0)

    assert await numbers(feed) == []


async def test_no_page_ends_before_the_others_because_of_forged_events(database: Database, tamper: Tamper) -> None:
    """Somebody fills the feed: a reader goes on behind the last event that he was given, and misses none."""
    feed = Feed(database, digests_of(database))
    await put(database, *(event(number) for number in range(1, 8)))
    await feed.publish(0)
    await tamper("UPDATE events SET account = 'other' WHERE position NOT IN (1, 6)")
    pattern = pattern_of("customer.*")

    assert [one.position for one in await feed.tail(0, 2)] == [1, 6]
    assert [(await feed.read(SHOP, after=after, limit=1)).next for after in (0, 1, 6)] == [1, 6, 6]
    assert [(await feed.read_types(SHOP, pattern, after=after, limit=1)).next for after in (0, 1, 6)] == [1, 6, 7]
    assert [(await feed.read_about(SHOP, event(6).subject, after=0, limit=1)).next] == [6]


async def test_nothing_is_queued_for_a_forged_event(database: Database, tamper: Tamper) -> None:
    """It would be signed with the shop's own secret, which says that it comes from here."""
    feed = Feed(database, digests_of(database))
    await tamper(
        "INSERT INTO endpoints (id, account, merchant, principal, url_hash, sealed_url, types, state, sealed_secret,"
        " held_until_ms, created_at_ms, updated_at_ms) VALUES ('end_1', 'gateway', 'm', 'shop', '', X'00', '*',"
        " 'active', X'00', 0, 1, 1)"
    )
    await put(database, event(1), event(2))
    await tamper("UPDATE outbox SET data = '{}' WHERE seq = (SELECT min(seq) FROM outbox)")
    await feed.publish(0)

    assert [one.position for one in await Deliveries(database).list("end_1", state=None, before=None, limit=9)] == [2]
