"""The stores of a reconciliation, on both databases: lines once, differences by name, days for good."""

import asyncio
from datetime import date, timedelta
from typing import Final

import msgspec
import pytest
from tests.core.reconciliation.worlds import COMPLETE, DAY, NOON_MS, line, payment, refund_line
from tests.digests import digests_of

from payrelay.core.operators.operator import NewAct
from payrelay.core.operators.roles import Act
from payrelay.errors import Outdated, Refusal
from payrelay.reconciliation.rules.days import Closure, SeenDay
from payrelay.reconciliation.rules.entries import LineState, Movement, StatementLine
from payrelay.reconciliation.rules.judging import judge
from payrelay.reconciliation.rules.payouts_compared import PayoutParts
from payrelay.reconciliation.store.differences import ReconciledDay
from payrelay.reconciliation.store.lines import StatementFile
from payrelay.reconciliation.store.stores import ReconciliationStores, reconciliation_stores
from payrelay.store.engine.database import Database

MERCHANT: Final = "0123456789abcdef"
SECRET: Final = b"c" * 32
PAYOUT: Final = line(9, movement=Movement.PAYOUT, identity="P9", payout_id="P9", order_id=None, payment_id=None)


def stores_of(database: Database) -> ReconciliationStores:
    """Gives the stores of a database."""
    return reconciliation_stores(database, digests_of(database), SECRET)


def day_of(day: date, report: str = "{}") -> ReconciledDay:
    """Makes a day that was compared."""
    return ReconciledDay(
        merchant=MERCHANT,
        day=day,
        account="shop",
        report=report,
        ran_at_ms=7,
        closed_at_ms=None,
        closed_by=None,
        closed_reason=None,
        act=None,
    )


async def closed(stores: ReconciliationStores, day: date, *, turn: int, seen: Closure | None = None) -> bool:
    """Stores a comparison, and closes the day."""
    act = NewAct(at_ms=8, operator_id="", name="ann", act=Act.CLOSE_DAY, subject=f"shop/{day}", reason="month end")
    await stores.differences.put_day(day_of(day))
    shown = SeenDay(ran_at_ms=7, open_differences=0, is_closed=False)
    return await stores.differences.close_day(day_of(day), act, shown=shown, before=seen, turn=turn)


async def booked(stores: ReconciliationStores, day: date) -> list[StatementLine]:
    """Reads all lines that are booked on a day."""
    return [each async for page in stores.lines.booked_on(MERCHANT, day) for each in page]


async def test_a_line_is_stored_once_and_read_as_it_was(database: Database) -> None:
    """Another place, or another time of reading, makes it no other line; another amount, or another word, does."""
    lines = stores_of(database).lines
    first = line(1, fee_minor=5, net_minor=6, payout_id="P9", at_ms=NOON_MS)
    again = msgspec.structs.replace(first, place="elsewhere", known_at_ms=9, expected_fee_minor=4)
    other = msgspec.structs.replace(first, amount_minor=7)
    worded = msgspec.structs.replace(first, state=LineState.OTHER, word="SETTLED")
    assert await lines.add(MERCHANT, [first, again]) == 1
    assert await lines.add(MERCHANT, [first, other]) == 1
    assert await lines.add(MERCHANT, [worded, msgspec.structs.replace(worded, word="DISPUTED")]) == 2
    assert worded in await lines.of(MERCHANT, ["1"], [])
    assert await lines.of(MERCHANT, ["1"], []) == await lines.of(MERCHANT, [], ["A-1"])
    assert {each.amount_minor for each in await lines.of(MERCHANT, ["1"], ["A-1"])} == {7, 100_001}
    assert first in await booked(stores_of(database), DAY)
    assert await lines.of("another merchant", ["1"], ["A-1"]) == []


async def test_a_line_of_a_closed_day_is_booked_on_the_next(database: Database) -> None:
    """Its own day stays in it. It counts as known since the closing, though its file was opened before."""
    stores = stores_of(database)
    assert await closed(stores, DAY, turn=0)
    await stores.lines.add(MERCHANT, [line(1, known_at_ms=3), line(2, day=DAY + timedelta(days=1), known_at_ms=3)])
    assert await booked(stores, DAY) == []
    found = await booked(stores, DAY + timedelta(days=1))
    assert [(each.day, each.known_at_ms) for each in found] == [(DAY, 8), (DAY + timedelta(days=1), 3)]


async def test_what_names_a_payout_is_summed_up(database: Database) -> None:
    """Payments count after their fees, and what was given back counts against them; what took no money doesn't."""
    lines = stores_of(database).lines
    given_back = refund_line("r", 300, 1, payout_id="P9")
    paid = [line(1, payout_id="P9", amount_minor=1_000, fee_minor=33), line(2, payout_id="P9", net_minor=500)]
    await lines.add(MERCHANT, [*paid, given_back, PAYOUT])
    failed = [line(3, payout_id="P9", state=LineState.NOT_TAKEN), line(4, payout_id="P9", state=LineState.AUTHORIZED)]
    await lines.add(MERCHANT, failed)
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
    [found_again] = await differences.of_day(MERCHANT, DAY)
    again = (found_again.closed_by, found_again.closed_reason, found_again.last_found_at_ms)
    assert again == ("ann", "known", 7)
    assert await closed(stores_of(database), DAY, turn=0)
    assert not await differences.put_day(day_of(DAY, "other"))
    assert await differences.last_closed(MERCHANT) == Closure(DAY, 8, 7)
    kept = await differences.day(MERCHANT, DAY)
    assert kept is not None
    assert (kept.report, kept.act) == ("{}", 2)


async def test_books_without_anything_are_empty(database: Database) -> None:
    """Every statement about our books is one that the database understands."""
    books = stores_of(database).books
    assert [each async for page in books.between(MERCHANT, 0, NOON_MS) for each in page] == []
    assert [each async for page in books.changed(MERCHANT, NOON_MS, 0) for each in page] == []
    assert await books.of(MERCHANT, ["1"], ["A-1"]) == []


async def test_a_day_is_not_closed_where_something_was_read_behind_its_comparison(database: Database) -> None:
    """A line, a word on completeness, and a search each take a turn; a day that was closed meanwhile does too."""
    stores = stores_of(database)
    turn = await stores.differences.turn(MERCHANT)
    await stores.lines.add(MERCHANT, [line(1)])
    await stores.lines.put_search(MERCHANT, "A-1", 5)
    await stores.differences.write(
        lambda: stores.lines.complete_days(MERCHANT, [Movement.BANK], [DAY], ("ann", 1, "her word"))
    )
    assert await stores.differences.turn(MERCHANT) == turn + 3
    assert not await closed(stores, DAY, turn=turn + 2)
    assert await stores.differences.last_closed(MERCHANT) is None
    newest = await stores.differences.turn(MERCHANT)
    assert not await closed(stores, DAY, turn=newest, seen=Closure(DAY, 1, 1))
    assert await closed(stores, DAY, turn=newest + 1)
    with pytest.raises(Outdated):
        await closed(stores, DAY, turn=newest + 2, seen=Closure(DAY, 8, 7))


async def test_closers_at_once_close_one_day(database: Database) -> None:
    """Both saw that no day was closed; two first days would leave a hole between them, and two lines one act."""
    stores = stores_of(database)
    turn = await stores.differences.turn(MERCHANT)
    days = [DAY, DAY, DAY + timedelta(days=5), DAY + timedelta(days=5)]
    done = await asyncio.gather(*(closed(stores, day, turn=turn) for day in days))
    assert done.count(True) == 1
    compared = await stores.differences.days(MERCHANT, DAY, DAY + timedelta(days=5))
    assert len([each for each in compared if each.closed_at_ms is not None]) == 1
    assert len(await stores.differences.acts.before(None, 10)) == 1


async def test_a_line_is_in_the_closed_day_or_behind_it_whoever_is_first(database: Database) -> None:
    """A file is read while its day is closed: either the closing finds that out, or the line is booked later."""
    stores = stores_of(database)
    for number in range(8):
        day, last = DAY + timedelta(days=number), await stores.differences.last_closed(MERCHANT)
        turn = await stores.differences.turn(MERCHANT)
        is_closed, _ = await asyncio.gather(
            closed(stores, day, turn=turn, seen=last), stores.lines.add(MERCHANT, [line(number, day=day)])
        )
        behind = await booked(stores, day + timedelta(days=1))
        assert is_closed == (len(behind) == 1), "a line of a closed day that its comparison didn't have is lost"
        if not is_closed:
            assert await closed(stores, day, turn=await stores.differences.turn(MERCHANT), seen=last)


async def test_a_day_is_closed_only_as_it_was_shown(database: Database) -> None:
    """What was shown is compared in the unit that closes it, behind its line; nothing of the unit is left."""
    differences = stores_of(database).differences
    found = [each for each in judge([payment(1)], [], COMPLETE) if each.is_difference]
    await differences.put(MERCHANT, "shop", found, DAY, 5)
    await differences.put_day(day_of(DAY))
    act = NewAct(at_ms=8, operator_id="", name="ann", act=Act.CLOSE_DAY, subject=f"shop/{DAY}", reason="month end")
    for shown in (SeenDay(7, 0, is_closed=False), SeenDay(7, 2, is_closed=False), SeenDay(6, 1, is_closed=False)):
        with pytest.raises((Refusal, Outdated)):
            await differences.close_day(day_of(DAY), act, shown=shown, before=None, turn=0)
        assert await differences.last_closed(MERCHANT) is None, shown
        assert await differences.acts.before(None, 10) == [], shown
    assert await differences.close_day(day_of(DAY), act, shown=SeenDay(7, 1, is_closed=False), before=None, turn=0)


async def test_a_difference_is_closed_only_as_it_was_shown(database: Database) -> None:
    """Also where its amounts are the same: it rests on something else by now, or is in another day's list."""
    differences = stores_of(database).differences
    [found] = [each for each in judge([payment(1)], [], COMPLETE) if each.is_difference]
    act = NewAct(at_ms=6, operator_id="", name="ann", act=Act.CLOSE_DIFFERENCE, subject=found.id, reason="known")
    for again, day in ((msgspec.structs.replace(found, why="said otherwise"), DAY), (found, DAY + timedelta(days=1))):
        await differences.put(MERCHANT, "shop", [found], DAY, 5)
        [shown] = await differences.open(MERCHANT, limit=2)
        await differences.put(MERCHANT, "shop", [again], day, 6)
        [now] = await differences.open(MERCHANT, limit=2)
        assert shown.content == now.content
        assert shown.digest != now.digest
        with pytest.raises(Outdated):
            await differences.close(shown, act)
