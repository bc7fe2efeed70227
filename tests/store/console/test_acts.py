import asyncio

import pytest
from tests.store.conftest import Tamper
from tests.store.console.samples import acts_of, did, operators_of, with_everything

from payrelay.console.rules.sign_in.tries import CODE, PASSWORD, WINDOW_MS, Counted, TryLimit
from payrelay.console.store.tries import SignInTries
from payrelay.errors import StoreError
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


CODES, OTHER = Counted(CODE, "opr_1"), Counted(CODE, "opr_2")


async def test_tries_are_counted_for_all_processes_and_a_refused_one_prolongs_nothing(database: Database) -> None:
    """Each process counts what the others have counted. A count is over a while after its first try."""
    one, other = SignInTries(database), SignInTries(database)
    taken = [await each.take(1 + n, CODES) for n, each in enumerate((one, other) * 3)]

    assert taken == [True] * 5 + [False]
    assert await one.take(1, OTHER)
    assert await one.take(1, Counted(PASSWORD, "opr_1"))
    assert not await other.take(WINDOW_MS, CODES)
    assert await other.take(1 + WINDOW_MS, CODES)


async def test_nobody_is_kept_out_for_longer_than_a_window(database: Database) -> None:
    """Whoever goes on trying for hours locks a count again and again; yet each lock ends, and the next try counts."""
    tries, refused_since, longest_ms = SignInTries(database), None, 0
    for now_ms in range(0, 8 * WINDOW_MS, 10_000):
        if await tries.take(now_ms, CODES):
            refused_since = None
            continue
        refused_since = now_ms if refused_since is None else refused_since
        longest_ms = max(longest_ms, now_ms - refused_since + 10_000)

    assert 0 < longest_ms <= WINDOW_MS


async def test_a_try_that_one_count_refuses_is_in_no_other(database: Database) -> None:
    """A locked name takes nothing from the address of the office in which its owner tries on."""
    tries, address = SignInTries(database), Counted(TryLimit("address", 6), "office")
    for _ in range(100):
        await tries.take(1, address, CODES)

    assert await tries.take(2, address, OTHER)
    assert not await tries.take(2, address, OTHER)


async def test_who_got_in_takes_off_what_was_counted_and_no_more(database: Database) -> None:
    """Neither tries of a later count, nor more than there are."""
    tries = SignInTries(database)
    for _ in range(2):
        await tries.take(5, CODES)
    await tries.give_back(CODES, 4)
    await tries.give_back(CODES, 5)
    assert [await tries.take(6, CODES) for _ in range(5)] == [True] * 4 + [False]
    await tries.give_back(CODES, 6, 20)

    assert [await tries.take(7, CODES) for _ in range(6)] == [True] * 5 + [False]


async def test_tries_at_one_moment_are_all_counted(database: Database) -> None:
    """A thousand guesses at once are not one guess."""
    tries = SignInTries(database)
    taken = await asyncio.gather(*(tries.take(1, CODES) for _ in range(12)))

    assert sum(taken) == CODE.tries
    await tries.forget(CODES)
    assert await tries.take(2, CODES)
