"""The schedules of the searches for orders: one slot for one process, and a reading that wakes what waits."""

import asyncio

import msgspec
import pytest
from tests.digests import CHAIN_KEY, digests_of
from tests.samples import NOTIFICATION, NOW_MS, PAYMENT

from payrelay.core.notifications.notification import Notification, NotificationReason, NotificationState
from payrelay.core.payments.order_search import LEASE_MS, PAUSES_MS, SCHEDULE_MS
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.inbox import Inbox
from payrelay.store.payments.order_searches import READING_MAX, OrderSearches

ORDER = (NOTIFICATION.merchant, NOTIFICATION.order_id)
EVERYTHING = query("SELECT * FROM order_searches")


@pytest.fixture
def searches(database: Database) -> OrderSearches:
    """Gives the schedules in an empty database."""
    return OrderSearches(database, CHAIN_KEY)


@pytest.fixture
def inbox(database: Database) -> Inbox:
    """Gives an inbox in the same database."""
    return Inbox(database, Seal((b"k" * 32,)), digests_of(database))


def waiting(number: int, **members: object) -> Notification:
    """Gives a notification that waits for an hour."""
    own = {"id": f"ntf_{number:04}", "digest": f"{number:064x}", "state": NotificationState.WAITING}
    later = {"next_at_ms": NOW_MS + 3_600_000, "reason": NotificationReason.NOT_SHOWN, "updated_at_ms": NOW_MS - 1}
    return msgspec.structs.replace(NOTIFICATION, **(own | later | members))


async def test_of_many_who_ask_at_once_one_gets_the_slot(searches: OrderSearches) -> None:
    """Each of them would call the gateway."""
    slots = await asyncio.gather(*(searches.take(*ORDER, (), now_ms=NOW_MS) for _ in range(8)))

    assert sum(slot.is_given for slot in slots) == 1
    assert (await searches.take("f" * 16, "A-1", (), now_ms=NOW_MS)).is_given
    assert (await searches.take(ORDER[0], "A-2", (), now_ms=NOW_MS)).is_given


async def test_a_slot_ends_with_its_reading(searches: OrderSearches) -> None:
    """Any process can answer by it what comes later; what the customer bought is not in it."""
    taken = (await searches.take(*ORDER, ("succeeded 100000 LKR",), now_ms=NOW_MS)).schedule
    assert await searches.reading(*ORDER) is None
    await searches.end(taken, (PAYMENT,), now_ms=NOW_MS + 50)
    await searches.end(taken, None, now_ms=NOW_MS + 60)

    reading = await searches.reading(*ORDER)
    assert reading is not None
    assert reading.payments == (msgspec.structs.replace(PAYMENT, description=""),)
    assert reading.read_at_ms == NOW_MS
    known = await searches.get(*ORDER)
    assert known is not None
    assert (known.leased_until_ms, known.occasions) == (None, ("succeeded 100000 LKR",))
    assert not (await searches.take(*ORDER, (), now_ms=NOW_MS + PAUSES_MS[0] - 1)).is_given
    assert (await searches.take(*ORDER, (), now_ms=NOW_MS + PAUSES_MS[0])).is_given


@pytest.mark.parametrize("forged", ["replace(reading, '100000', '100001')", "substr(reading, 66)"])
async def test_a_reading_that_was_written_by_hand_shows_nothing(
    searches: OrderSearches, database: Database, forged: str
) -> None:
    """Whoever can write to the database would otherwise have any order paid; without a reading the gateway is asked."""
    taken = (await searches.take(*ORDER, (), now_ms=NOW_MS)).schedule
    await searches.end(taken, (PAYMENT,), now_ms=NOW_MS + 50)
    forge = query(f"UPDATE order_searches SET reading = {forged}")  # noqa: S608, our own words
    await database.write(all_rows(Statement(forge, ())))

    assert await searches.reading(*ORDER) is None


async def test_a_reading_wakes_what_waits_for_the_order(searches: OrderSearches, inbox: Inbox) -> None:
    """One search answers all that wait, whichever process they wait in; what it answered already is left alone."""
    await inbox.put(waiting(1), b"1")
    await inbox.put(waiting(2, updated_at_ms=NOW_MS + 1), b"2")
    await inbox.put(waiting(3, updated_at_ms=NOW_MS + 1, reason=NotificationReason.SEARCH_WAITS), b"3")
    await inbox.put(waiting(4, order_id="A-2"), b"4")
    await inbox.put(waiting(5, state=NotificationState.IGNORED, next_at_ms=None), b"5")
    taken = (await searches.take(*ORDER, (), now_ms=NOW_MS)).schedule
    await searches.end(taken, (), now_ms=NOW_MS + 50)

    due = await inbox.lease_due(NOW_MS + 50, leased_until_ms=NOW_MS + 99, orders=9, of_an_order=9)
    assert [each.id for each in due] == ["ntf_0001", "ntf_0003"]


async def test_a_search_that_failed_wakes_for_the_next_slot(searches: OrderSearches, inbox: Inbox) -> None:
    """There is no reading to answer anything by, and nothing may be put off for longer than the next search."""
    await inbox.put(waiting(1), b"1")
    taken = (await searches.take(*ORDER, (), now_ms=NOW_MS)).schedule
    await searches.end(taken, None, now_ms=NOW_MS + 50)

    assert await inbox.next_due_ms() == taken.next_at_ms


async def test_a_reading_of_too_many_payments_is_not_stored(searches: OrderSearches) -> None:
    """A row has its bound too."""
    taken = (await searches.take(*ORDER, (), now_ms=NOW_MS)).schedule
    await searches.end(taken, (PAYMENT,) * (READING_MAX + 1), now_ms=NOW_MS)

    assert await searches.reading(*ORDER) is None


async def test_a_slot_that_was_taken_over_is_not_ended_by_the_first(searches: OrderSearches) -> None:
    """A process that was thought dead comes back, while another one is searching."""
    slow = (await searches.take(*ORDER, (), now_ms=NOW_MS)).schedule
    quick = await searches.take(*ORDER, (), now_ms=NOW_MS + LEASE_MS)
    await searches.end(slow, (PAYMENT,), now_ms=NOW_MS + LEASE_MS)

    assert quick.is_given
    assert await searches.get(*ORDER) == quick.schedule
    assert await searches.reading(*ORDER) is None


async def test_the_sole_owner_frees_what_a_dead_process_had(searches: OrderSearches) -> None:
    """It has just started: nobody else can be searching, and a paid customer looks at an empty page."""
    await searches.take(*ORDER, (), now_ms=NOW_MS)
    await searches.expire_leases(NOW_MS + 1)

    assert (await searches.take(*ORDER, (), now_ms=NOW_MS + 1)).is_given


async def test_the_sole_owner_wakes_what_waits_for_a_dead_search(searches: OrderSearches, inbox: Inbox) -> None:
    """Its lease would hide a chargeback for three minutes; what waits for another order keeps its time."""
    await inbox.put(waiting(1), b"body")
    await inbox.put(waiting(2, order_id="A-2"), b"body")
    await searches.take(*ORDER, (), now_ms=NOW_MS)
    await searches.expire_leases(NOW_MS + 1)

    due = await inbox.lease_due(NOW_MS + 1, leased_until_ms=NOW_MS + 9, orders=5, of_an_order=5)
    assert [each.id for each in due] == ["ntf_0001"]


async def test_an_operator_brings_the_next_slot_forward(searches: OrderSearches) -> None:
    """Whoever replays a notification has a reason, and shouldn't wait for hours."""
    taken = (await searches.take(*ORDER, (), now_ms=NOW_MS)).schedule
    await searches.end(taken, None, now_ms=NOW_MS)
    await searches.bring_forward(*ORDER, now_ms=NOW_MS + 1)

    assert (await searches.take(*ORDER, (), now_ms=NOW_MS + 1)).is_given


async def test_schedules_are_forgotten_after_a_day(searches: OrderSearches, database: Database) -> None:
    """A table with a row for each order that was ever paid would only grow; a day later a row says nothing."""
    old = (await searches.take(*ORDER, (), now_ms=NOW_MS)).schedule
    await searches.end(old, (PAYMENT,), now_ms=NOW_MS)
    await searches.take(ORDER[0], "A-2", (), now_ms=NOW_MS + SCHEDULE_MS)

    assert await searches.forget(NOW_MS + 1, 10) == 1
    assert await searches.get(*ORDER) is None
    assert len(await database.read(all_rows(Statement(EVERYTHING, ())))) == 1


async def test_a_new_schedule_has_no_reading_of_the_old_one(searches: OrderSearches) -> None:
    """What was shown yesterday answers nothing today."""
    old = (await searches.take(*ORDER, (), now_ms=NOW_MS)).schedule
    await searches.end(old, (PAYMENT,), now_ms=NOW_MS)
    await searches.take(*ORDER, (), now_ms=NOW_MS + SCHEDULE_MS)

    assert await searches.reading(*ORDER) is None
