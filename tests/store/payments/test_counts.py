import pytest
from tests.store.conftest import Book

from payrelay.core.payments.operation import Event, OpenCount, State
from payrelay.store.engine.database import Database
from payrelay.store.payments.counts import COUNTED, Counts

NONE = dict.fromkeys(COUNTED, OpenCount())


async def test_an_empty_store_has_none(database: Database) -> None:
    """Every state is named all the same, so that a graph begins at 0."""
    assert await Counts(database).open_operations() == NONE


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (Event.PENDING, State.PENDING),
        (Event.UNKNOWN, State.UNKNOWN),
        (Event.DIFFERED, State.NEEDS_ATTENTION),
    ],
)
async def test_open_ones_are_counted_with_the_oldest(
    book: Book, database: Database, event: Event, state: State
) -> None:
    """By when they were made, not by when they changed last: that is how long a customer has been waiting."""
    for number, at_ms in ((1, 5_000), (2, 6_000), (3, 7_000)):
        operation = book.new(number, created_at_ms=at_ms)
        await book.accept(operation)
        await book.advance(operation, event)
    assert await Counts(database).open_operations() == NONE | {state: OpenCount(3, 5_000)}


@pytest.mark.parametrize("event", [Event.SUCCEEDED, Event.DECLINED, Event.REFUSED, Event.NOT_SENT, None])
async def test_what_is_final_or_under_way_is_not_open(book: Book, database: Database, event: Event | None) -> None:
    """An alarm on these would ring at every charge."""
    operation = book.new(1)
    await book.accept(operation)
    if event is not None:
        await book.advance(operation, event)
    assert await Counts(database).open_operations() == NONE
