import asyncio
from typing import Final

import pytest

from payrelay.clock import Clock
from payrelay.errors import DatabaseNotReady, StoreUnavailable, StoreUnusable
from payrelay.store import meta
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.upgrades.begin import begin_store
from payrelay.store.upgrades.run import STEPS, UpgradeContext, UpgradeStep, require_upgraded, upgrade

FIRST: Final = b"1" * 32
SECOND: Final = b"2" * 32


async def _begun(database: Database, seal: Seal) -> UpgradeContext:
    """Does what every start does before the upgrade."""
    await begin_store(database, seal, Clock())
    await meta.verify_key(database, seal)
    return UpgradeContext(database, seal, (await meta.chain_key(database, seal)).secret)


class Counted:
    """A step that counts its runs, and fails as often as it is told to."""

    def __init__(self, name: str, failures: int = 0) -> None:
        self.step = UpgradeStep(name, self._run)
        self.runs = 0
        self._failures = failures

    async def _run(self, _: UpgradeContext) -> None:
        self.runs += 1
        if self.runs <= self._failures:
            raise StoreUnavailable("busy")


async def test_each_step_runs_once_in_the_order_of_the_list(database: Database) -> None:
    """A step that ran at every start would read whole tables each time."""
    told: list[str] = []
    context = (await _begun(database, Seal((FIRST,))))._replace(tell=told.append)
    one, two = Counted("one"), Counted("two")
    for steps in ((one.step,), (one.step, two.step), (one.step, two.step)):
        await upgrade(context, steps)

    assert (one.runs, two.runs) == (1, 1)
    assert told == ["upgrade step 'one'", "upgrade step 'two'"]


async def test_a_step_that_failed_is_run_again_and_those_before_it_are_not(database: Database) -> None:
    """A start that was cut off in the middle of an upgrade must go on with it the next time, before it serves."""
    context = await _begun(database, Seal((FIRST,)))
    one, two = Counted("one"), Counted("two", failures=1)

    with pytest.raises(StoreUnavailable):
        await upgrade(context, (one.step, two.step))
    with pytest.raises(DatabaseNotReady, match="run payrelay db upgrade"):
        await require_upgraded(context, (one.step, two.step))
    await upgrade(context, (one.step, two.step))
    await require_upgraded(context, (one.step, two.step))
    assert (one.runs, two.runs) == (1, 2)


async def test_processes_that_start_together_lose_no_note(database: Database) -> None:
    """A note that another process overwrote would make a finished step run again much later."""
    context = await _begun(database, Seal((FIRST,)))
    steps = [Counted(f"step {number}") for number in range(4)]

    await asyncio.gather(*(upgrade(context, (each.step,)) for each in steps))

    assert await meta.finished_upgrades(database, context.seal) == {each.step.name for each in steps}


async def test_the_notes_survive_the_rotation_of_the_encryption_key(database: Database) -> None:
    """After a rotation nothing has to be upgraded again."""
    step = Counted("one")
    for keys in ((FIRST,), (SECOND, FIRST)):
        await upgrade(await _begun(database, Seal(keys)), (step.step,))

    assert step.runs == 1


async def test_a_new_database_has_had_every_step(database: Database) -> None:
    """There is nothing in it that a step could change."""
    context = await _begun(database, Seal((FIRST,)))

    assert await meta.finished_upgrades(database, context.seal) == {step.name for step in STEPS}


async def test_nobody_makes_a_step_run_again_by_removing_the_notes(database: Database) -> None:
    """Whoever can write to the database, and lacks the key, could otherwise have it run over rows of his own."""
    seal = Seal((FIRST,))
    await _begun(database, seal)
    await database.write(all_rows(Statement(query("DELETE FROM meta WHERE name = 'key_check'"), ())))

    with pytest.raises(StoreUnusable, match="check of the encryption key is missing"):
        await meta.verify_key(database, seal)


async def test_a_step_can_not_be_noted_where_there_is_no_check(database: Database) -> None:
    """Only the program itself, in the wrong order, could try it: it must not go unnoticed."""
    with pytest.raises(StoreUnusable, match="can't be noted"):
        await meta.note_upgrade(database, Seal((FIRST,)), "one")


async def test_a_note_may_be_repeated(database: Database) -> None:
    """Two processes may finish one step."""
    context = await _begun(database, Seal((FIRST,)))
    for _ in range(2):
        await meta.note_upgrade(database, context.seal, "one")

    assert await meta.finished_upgrades(database, context.seal) == {*(step.name for step in STEPS), "one"}
