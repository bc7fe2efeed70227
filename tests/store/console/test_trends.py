"""What the overview counts, in both databases."""

from tests.store.conftest import Book

from payrelay.console.rules.trends import ENDPOINTS_MAX, LOOKED_MAX, PACES, TrendTally, TrendWindow
from payrelay.console.store.trends import Trends, TrendSum, share_of
from payrelay.core.payments.operation import Event, State
from payrelay.store.engine.database import Database

WINDOW = TrendWindow(0, 4, 1_000)


async def test_operations_are_counted_added_up_and_timed(book: Book, database: Database) -> None:
    """By when they began; sums are of what succeeded; what has no outcome has no time."""
    for number, (at_ms, event) in enumerate(
        [(0, Event.SUCCEEDED), (10, Event.SUCCEEDED), (1_500, Event.SUCCEEDED), (1_600, Event.DECLINED), (700, None)]
    ):
        operation = book.new(number, created_at_ms=at_ms, amount_minor=None if at_ms == 10 else 100)
        await book.accept(operation)
        if event is not None:
            await book.advance(operation, event)
    trends = await Trends(database).operations(WINDOW)

    assert sorted(trends.tallies) == [
        *(TrendTally(0, "sending", 1, 700), TrendTally(0, "succeeded", 2, 0)),
        *(TrendTally(1, "declined", 1, 1_600), TrendTally(1, "succeeded", 1, 1_500)),
    ]
    assert trends.sums == [TrendSum("charge", "LKR", 3, 2, 200)]
    assert dict(trends.paces) == {**{name: 0 for _, name in PACES}, "longer": 0, "up to 1 s": 2, "up to 10 s": 2}


async def test_the_time_is_until_the_state_that_holds_now(book: Book, database: Database) -> None:
    """An answer that said nothing is no outcome, and a row that changes later keeps its time."""
    operation = book.new(1, created_at_ms=1_200)
    await book.accept(operation)
    unknown = await book.advance(operation, Event.UNKNOWN)
    assert sum(count for _, count in (await Trends(database).operations(WINDOW)).paces) == 0
    await book.advance(unknown, Event.SUCCEEDED)

    assert dict((await Trends(database).operations(WINDOW)).paces)["up to 1 s"] == 1


async def test_an_empty_database_has_nothing_to_count(database: Database) -> None:
    """Every state that can be open is named all the same."""
    trends = Trends(database)

    assert (await trends.operations(WINDOW)).tallies == []
    assert (await trends.checkouts(WINDOW), await trends.notifications(WINDOW)) == ([], [])
    delivered = await trends.deliveries(["end_1"], WINDOW)
    assert (delivered.tallies, delivered.waiting) == ({"end_1": []}, {"end_1": 0})
    assert (await trends.open_operations())[State.HELD].total == 0


def test_endpoints_share_what_is_counted() -> None:
    """However many there are, the page reads no more."""
    assert share_of(0) == share_of(1) == LOOKED_MAX
    assert share_of(ENDPOINTS_MAX) * ENDPOINTS_MAX <= LOOKED_MAX
    assert share_of(10_000) == share_of(ENDPOINTS_MAX)
