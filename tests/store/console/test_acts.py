import asyncio

import pytest
from tests.store.conftest import Tamper
from tests.store.console.samples import acts_of, did, operators_of, with_everything

from payrelay.core.console.sign_in.tries import CODE, PASSWORD, WINDOW_MS
from payrelay.errors import StoreError
from payrelay.store.console.tries import SignInTries
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query

CHANGES = (
    "UPDATE operator_acts SET name = 'other' WHERE number = 2",
    "UPDATE operator_acts SET reason = 'other' WHERE number = 2",
    "UPDATE operator_acts SET at_ms = 77 WHERE number = 2",
    "UPDATE operator_acts SET hash = 'x' WHERE number = 1",
    "DELETE FROM operator_acts WHERE number = 1",
    "DELETE FROM operator_acts WHERE number = 2",
)


async def wrong_in(database: Database) -> list[str]:
    """Gives what the check of the history finds."""
    acts = acts_of(database)
    checked = [(act.number, wrong) async for act, wrong in acts.check()]
    newest = max((number for number, _ in checked), default=0)
    return [wrong for _, wrong in checked if wrong] + ["lines are gone"] * (newest < await acts.newest_named())


async def test_lines_are_numbered_and_chained(database: Database) -> None:
    """The newest are read first, a page at a time."""
    acts = acts_of(database)
    written = [await acts.written(lambda number=number: acts.appended(did(number))) for number in range(1, 5)]  # type: ignore[misc]

    assert [act.number for act in written] == [1, 2, 3, 4]
    assert await acts.before(None, 2) == [written[3], written[2]]
    assert await acts.before(3, 5) == [written[1], written[0]]
    assert await wrong_in(database) == []


async def test_lines_at_one_moment_come_one_after_the_other(database: Database) -> None:
    """Several processes act at once: no line is lost, and none has another's number."""
    acts = acts_of(database)
    await asyncio.gather(*(acts.written(lambda: acts.appended(did())) for _ in range(5)))

    assert [act.number for act in await acts.before(None, 10)] == [5, 4, 3, 2, 1]
    assert await wrong_in(database) == []


@pytest.mark.parametrize("change", CHANGES)
async def test_a_changed_or_removed_line_is_found(database: Database, tamper: Tamper, change: str) -> None:
    """Also the newest one: an operator's row names it."""
    await with_everything(operators_of(database))
    assert await wrong_in(database) == []
    await tamper(change)

    assert await wrong_in(database) != []


async def test_the_program_itself_can_not_change_the_history(database: Database) -> None:
    """A mistake in a statement changes nothing of what was done."""
    await with_everything(operators_of(database))
    for text in ("UPDATE operator_acts SET name = 'x' RETURNING number", "DELETE FROM operator_acts RETURNING number"):
        with pytest.raises(StoreError):
            await database.write(all_rows(Statement(query(text), ())))


async def test_tries_are_counted_for_all_processes_and_begin_again_after_a_pause(database: Database) -> None:
    """Each process counts what the others have counted; whoever waits may try again."""
    one, other = SignInTries(database), SignInTries(database)
    taken = [await each.take(CODE, "opr_1", 1) for each in (one, other) * 3]

    assert taken == [True] * 5 + [False]
    assert await one.take(CODE, "opr_2", 1)
    assert await one.take(PASSWORD, "opr_1", 1)
    assert not await other.take(CODE, "opr_1", WINDOW_MS)
    assert await other.take(CODE, "opr_1", 2 * WINDOW_MS)


async def test_tries_at_one_moment_are_all_counted(database: Database) -> None:
    """A thousand guesses at once are not one guess."""
    tries = SignInTries(database)
    taken = await asyncio.gather(*(tries.take(CODE, "opr_1", 1) for _ in range(12)))

    assert sum(taken) == CODE.tries
    await tries.forget(CODE, "opr_1")
    assert await tries.take(CODE, "opr_1", 2)
