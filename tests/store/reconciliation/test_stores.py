"""The stores of a reconciliation, on both databases: lines once, differences by name, days for good."""

from datetime import date, timedelta
from typing import Final

import msgspec
from tests.core.reconciliation.worlds import COMPLETE, DAY, NOON_MS, line, payment, refund_line
from tests.digests import digests_of

from payrelay.core.console.operator import NewAct
from payrelay.core.console.roles import Act
from payrelay.core.reconciliation.days import Closure
from payrelay.core.reconciliation.entries import Movement, StatementLine
from payrelay.core.reconciliation.judging import judge
from payrelay.core.reconciliation.payouts_compared import PayoutParts
from payrelay.store.engine.database import Database
from payrelay.store.reconciliation.differences import ReconciledDay
from payrelay.store.reconciliation.lines import StatementFile
from payrelay.store.reconciliation.stores import ReconciliationStores, reconciliation_stores

MERCHANT: Final = "0123456789abcdef"
SECRET: Final = b"c" * 32
PAYOUT: Final = line(9, movement=Movement.PAYOUT, identity="P9", payout_id="P9", order_id=None, payment_id=None)


def stores_of(database: Database) -> ReconciliationStores:
    """Gives the stores of a database."""
    return reconciliation_stores(database, digests_of(database), SECRET)


async def booked(stores: ReconciliationStores, day: date) -> list[StatementLine]:
    """Reads all lines that are booked on a day."""
    return [each async for page in stores.lines.booked_on(MERCHANT, day) for each in page]


async def test_a_line_is_stored_once_and_read_as_it_was(database: Database) -> None:
    """Another place, or another time of reading, makes it no other line; another amount does."""
    lines = stores_of(database).lines
    first = line(1, fee_minor=5, net_minor=6, payout_id="P9", at_ms=NOON_MS)
    again = msgspec.structs.replace(first, place="elsewhere", known_at_ms=9, expected_fee_minor=4)
    other = msgspec.structs.replace(first, amount_minor=7)
    assert await lines.add(MERCHANT, [first, again], ()) == 1
    assert await lines.add(MERCHANT, [first, other], ()) == 1
    assert await lines.of(MERCHANT, ["1"], []) == await lines.of(MERCHANT, [], ["A-1"])
    assert {each.amount_minor for each in await lines.of(MERCHANT, ["1"], ["A-1"])} == {7, 100_001}
    assert first in await booked(stores_of(database), DAY)
    assert await lines.of("another merchant", ["1"], ["A-1"]) == []


async def test_a_line_of_a_closed_day_is_booked_on_the_next(database: Database) -> None:
    """Its own day stays in it."""
    stores = stores_of(database)
    await stores.lines.add(MERCHANT, [line(1)], [Closure(DAY, 1)])
    assert await booked(stores, DAY) == []
    [found] = await booked(stores, DAY + timedelta(days=1))
    assert found.day == DAY


async def test_what_names_a_payout_is_summed_up(database: Database) -> None:
    """Payments count after their fees, and what was given back counts against them."""
    lines = stores_of(database).lines
    given_back = refund_line("r", 300, 1, payout_id="P9")
    paid = [line(1, payout_id="P9", amount_minor=1_000, fee_minor=33), line(2, payout_id="P9", net_minor=500)]
    await lines.add(MERCHANT, [*paid, given_back, PAYOUT], ())
    assert await lines.parts(MERCHANT, ["P9", "P1"]) == {"P9": PayoutParts(1_167, 3)}
    assert await lines.payouts(MERCHANT, DAY, DAY) == [PAYOUT]


async def test_files_days_and_searches_are_kept(database: Database) -> None:
    """The last search of an order counts, and a file that was read whole stays so."""
    stores = stores_of(database)
    file = StatementFile(
        merchant=MERCHANT,
        digest="d",
        name="a.csv",
        profile="payments",
        is_guess=0,
        summary="{}",
        imported_by="ann",
        imported_at_ms=1,
        is_whole=1,
    )
    await stores.lines.put_file(file)
    await stores.lines.put_file(msgspec.structs.replace(file, is_whole=0))
    assert await stores.lines.file(MERCHANT, "d") == file
    await stores.differences.write(
        lambda: stores.lines.complete_days(MERCHANT, [Movement.BANK], [DAY], ("ann", 1, "her word"))
    )
    [complete] = await stores.lines.complete(MERCHANT, Movement.BANK, DAY, DAY)
    assert (complete.day, complete.rests_on) == (DAY, "her word")
    await stores.lines.put_search(MERCHANT, "A-1", 5)
    await stores.lines.put_search(MERCHANT, "A-1", 4)
    assert await stores.lines.searches(MERCHANT, ["A-1", "A-2"]) == {"A-1": 5}


async def test_differences_and_days_are_closed_with_their_line_in_the_history(database: Database) -> None:
    """A day that is closed is compared no more, and a closed difference that says the same stays closed."""
    differences = stores_of(database).differences
    found = [each for each in judge([payment(1)], [], COMPLETE) if each.is_difference]
    await differences.put(MERCHANT, "shop", found, DAY, 5)
    [stored] = await differences.open(MERCHANT, limit=10)
    act = NewAct(at_ms=6, operator_id="", name="ann", act=Act.CLOSE_DIFFERENCE, subject=stored.id, reason="known")
    await differences.close(stored, act)
    await differences.put(MERCHANT, "shop", found, DAY, 7)
    assert await differences.open(MERCHANT, limit=10) == []
    [closed] = await differences.of_day(MERCHANT, DAY)
    assert (closed.closed_by, closed.closed_reason, closed.last_found_at_ms) == ("ann", "known", 7)
    day = ReconciledDay(
        merchant=MERCHANT,
        day=DAY,
        account="shop",
        report="{}",
        ran_at_ms=7,
        closed_at_ms=None,
        closed_by=None,
        closed_reason=None,
        act=None,
    )
    assert await differences.put_day(day)
    await differences.close_day(day, msgspec.structs.replace(act, act=Act.CLOSE_DAY, at_ms=8))
    assert not await differences.put_day(msgspec.structs.replace(day, report="other"))
    assert await differences.last_closed(MERCHANT) == Closure(DAY, 8)
    kept = await differences.day(MERCHANT, DAY)
    assert kept is not None
    assert (kept.report, kept.act) == ("{}", 2)


async def test_books_without_anything_are_empty(database: Database) -> None:
    """Every statement about our books is one that the database understands."""
    books = stores_of(database).books
    assert [each async for page in books.between(MERCHANT, 0, NOON_MS) for each in page] == []
    assert [each async for page in books.changed(MERCHANT, NOON_MS, 0) for each in page] == []
    assert await books.of(MERCHANT, ["1"], ["A-1"]) == []
