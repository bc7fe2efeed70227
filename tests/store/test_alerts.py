import asyncio
import tempfile
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.databases import sqlite_url
from tests.draws import examples
from tests.store.conftest import Book

from payrelay.clock import Clock
from payrelay.core.payments.operation import TRANSITIONS, Event, Operation, State
from payrelay.errors import Outdated
from payrelay.store import open_database
from payrelay.store.alerts import Alert, Alerts, AlertSubject
from payrelay.store.engine.sqlite import InlineExecutor

NOW_MS = 10_000

choices = st.lists(st.integers(0, len(Event)), max_size=12)
"""Which of the events that are possible comes next, by number."""


@pytest.fixture
def alerts(book: Book) -> Alerts:
    """Gives the alerts in the same database."""
    return Alerts(book.database, AlertSubject.OPERATION)


async def in_need(book: Book, number: int = 1) -> Operation:
    """Stores an operation that needs attention since 2,000."""
    operation = book.new(number)
    await book.accept(operation)
    return await book.advance(operation, Event.DIFFERED)


async def test_an_operation_that_comes_to_need_attention_is_an_alert(book: Book, alerts: Alerts) -> None:
    """It is written with the change itself: no crash can come between the two."""
    operation = await in_need(book)

    [alert] = await alerts.lease_due(NOW_MS, leased_until_ms=20_000, limit=10)
    assert alert == Alert(
        subject_id=operation.id,
        version=2,
        created_at_ms=2_000,
        leased_until_ms=20_000,
        attempts=0,
        given_to=frozenset(),
    )


async def test_an_operation_that_needs_attention_already_is_no_second_alert(book: Book, alerts: Alerts) -> None:
    """Every later inquiry is a change too, and must not alert an operator again."""
    operation = await in_need(book)
    for event in (Event.INQUIRED_ABOUT, Event.DIFFERED, Event.PENDING):
        operation = await book.advance(operation, event)

    assert [alert.version for alert in await alerts.lease_due(NOW_MS, leased_until_ms=20_000, limit=10)] == [2]


async def test_one_that_needs_attention_again_is_a_second_alert(book: Book, alerts: Alerts) -> None:
    """An operator decided it, and must hear that its payment shows itself after all."""
    operation = await in_need(book)
    operation = await book.advance(operation, Event.DECIDED_FAILED)
    await book.advance(operation, Event.REAPPEARED)

    assert {alert.version for alert in await alerts.lease_due(NOW_MS, leased_until_ms=20_000, limit=10)} == {2, 4}


async def test_a_change_that_is_not_stored_is_no_alert(book: Book, alerts: Alerts) -> None:
    """It belongs to the unit of work, which undoes it."""
    operation = book.new(1)
    await book.accept(operation)
    with pytest.raises(Outdated):
        await book.advance(msgspec.structs.replace(operation, version=5), Event.DIFFERED)

    assert await alerts.next_due_ms() is None


async def test_other_changes_are_no_alerts(book: Book, alerts: Alerts) -> None:
    """An operator is alerted where one is needed, and for nothing else."""
    for number, event in enumerate((Event.SUCCEEDED, Event.UNKNOWN, Event.DECLINED, Event.NOT_SENT)):
        operation = book.new(number)
        await book.accept(operation)
        assert (await book.advance(operation, event)).state is not State.NEEDS_ATTENTION

    assert await alerts.next_due_ms() is None


async def test_an_alert_is_leased_by_one(book: Book, alerts: Alerts) -> None:
    """Several processes share the work without calling anybody twice."""
    for number in range(6):
        await in_need(book, number)
    taken = await asyncio.gather(*(alerts.lease_due(NOW_MS, leased_until_ms=20_000, limit=4) for _ in range(4)))

    assert sorted(alert.subject_id for some in taken for alert in some) == [f"op_{n:026d}" for n in range(6)]


async def test_an_alert_whose_process_died_comes_back(book: Book, alerts: Alerts) -> None:
    """A kill -9 between taking and giving loses none."""
    await in_need(book)
    await alerts.lease_due(NOW_MS, leased_until_ms=20_000, limit=10)

    assert await alerts.lease_due(19_999, leased_until_ms=30_000, limit=10) == []
    assert len(await alerts.lease_due(20_000, leased_until_ms=30_000, limit=10)) == 1


async def test_an_alert_that_was_given_is_over(book: Book, alerts: Alerts) -> None:
    """Nobody is called for it again."""
    await in_need(book)
    [alert] = await alerts.lease_due(NOW_MS, leased_until_ms=20_000, limit=10)
    await alerts.end(alert, frozenset({"command"}))

    assert await alerts.next_due_ms() is None
    assert await alerts.lease_due(10**9, leased_until_ms=2 * 10**9, limit=10) == []


async def test_an_alert_that_failed_is_due_again_and_knows_who_has_it(book: Book, alerts: Alerts) -> None:
    """The one who took it is not called again because another did not."""
    await in_need(book)
    [alert] = await alerts.lease_due(NOW_MS, leased_until_ms=20_000, limit=10)
    await alerts.put_off(alert, frozenset({"command", "address"}), 15_000)

    assert await alerts.next_due_ms() == 15_000
    [again] = await alerts.lease_due(15_000, leased_until_ms=20_000, limit=10)
    assert (again.attempts, again.given_to) == (1, frozenset({"command", "address"}))


async def test_a_process_that_was_too_slow_does_not_put_it_off(book: Book, alerts: Alerts) -> None:
    """Another process has it by now, and says what became of it."""
    await in_need(book)
    [slow] = await alerts.lease_due(NOW_MS, leased_until_ms=20_000, limit=10)
    [quick] = await alerts.lease_due(20_000, leased_until_ms=30_000, limit=10)
    await alerts.end(quick, frozenset())
    await alerts.put_off(slow, frozenset(), 25_000)

    assert await alerts.next_due_ms() is None


async def alerts_of_walk(choices: list[int], folder: Path) -> tuple[set[int], set[int]]:
    """Takes an operation through events; gives the versions of its alerts, and of its steps to needing attention."""
    database = await open_database(sqlite_url(folder / "db"), clock=Clock(), owner=True, executor=InlineExecutor())
    book = Book(database)
    operation = book.new(1)
    await book.accept(operation)
    for choice in choices:
        possible = [event for state, event in TRANSITIONS if state is operation.state]
        if possible:
            operation = await book.advance(operation, possible[choice % len(possible)])
    states = [entry.state for entry in await book.journal.history(operation.id)]
    taken = await Alerts(database, AlertSubject.OPERATION).lease_due(NOW_MS, leased_until_ms=20_000, limit=100)
    await database.close()
    steps = enumerate(pairwise(states), 2)
    needed = {version for version, (before, after) in steps if before is not after is State.NEEDS_ATTENTION}
    return {alert.version for alert in taken}, needed


@settings(max_examples=examples(60))
@given(choices)
def test_there_is_an_alert_for_each_step_to_needing_attention_and_no_other(choices: list[int]) -> None:
    """Whatever happens to an operation, and whatever brings it there."""
    with tempfile.TemporaryDirectory() as folder:
        alerts, needed = asyncio.run(alerts_of_walk(choices, Path(folder)))

    assert alerts == needed
