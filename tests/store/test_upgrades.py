import asyncio
from typing import Final

import pytest

from payrelay.clock import Clock
from payrelay.errors import StoreUnavailable, StoreUnusable
from payrelay.store import meta
from payrelay.store.engine.database import Database, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.upgrades.run import STEPS, UpgradeContext, UpgradeStep, upgrade

FIRST: Final = b"1" * 32
SECOND: Final = b"2" * 32


async def _begun(database: Database, seal: Seal) -> UpgradeContext:
    """Does what every start does before the upgrade."""
    await meta.verify_key(database, seal)
    chain = await meta.chain_key(database, seal, Clock())
    return UpgradeContext(database, seal, chain.secret, 1_000)


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
    """A step that ran at every start would take for old what was forged since."""
    context = await _begun(database, Seal((FIRST,)))
    one, two = Counted("one"), Counted("two")

    assert await upgrade(context, (one.step,)) == ["one"]
    assert await upgrade(context, (one.step, two.step)) == ["two"]
    assert await upgrade(context, (one.step, two.step)) == []
    assert (one.runs, two.runs) == (1, 1)


async def test_a_step_that_failed_is_run_again_and_those_before_it_are_not(database: Database) -> None:
    """A start that was cut off in the middle of an upgrade must go on with it the next time."""
    context = await _begun(database, Seal((FIRST,)))
    one, two = Counted("one"), Counted("two", failures=1)

    with pytest.raises(StoreUnavailable):
        await upgrade(context, (one.step, two.step))
    assert await upgrade(context, (one.step, two.step)) == ["two"]
    assert (one.runs, two.runs) == (1, 2)


async def test_processes_that_start_together_lose_no_note(database: Database) -> None:
    """A note that another process overwrote would make a finished step run again much later."""
    context = await _begun(database, Seal((FIRST,)))
    steps = [Counted(f"step {number}") for number in range(4)]

    await asyncio.gather(*(upgrade(context, (each.step,)) for each in steps))

    assert await meta.finished_upgrades(database, context.seal) == {each.step.name for each in steps}


async def test_the_notes_survive_the_rotation_of_the_encryption_key(database: Database) -> None:
    """After a rotation nothing has to be upgraded again."""
    await upgrade(await _begun(database, Seal((FIRST,))))

    assert await upgrade(await _begun(database, Seal((SECOND, FIRST)))) == []


async def test_a_database_of_an_earlier_version_gets_every_step(database: Database) -> None:
    """Its check of the key has the content of the first version, which noted no steps."""
    seal = Seal((FIRST,))
    await database.write(_add("key_check", seal.seal(b"payrelay", b"meta/key_check")))

    assert await upgrade(await _begun(database, seal)) == [step.name for step in STEPS]


async def test_nobody_makes_a_step_run_again_by_removing_the_notes(database: Database) -> None:
    """Whoever can write to the database, and lacks the key, could otherwise have forged rows taken for old ones."""
    seal = Seal((FIRST,))
    await upgrade(await _begun(database, seal))
    await database.write(_run("DELETE FROM meta WHERE name = 'key_check'"))

    with pytest.raises(StoreUnusable, match="check of the encryption key is missing"):
        await meta.verify_key(database, seal)


async def test_a_lost_key_of_the_chain_is_not_replaced_although_nothing_is_chained(database: Database) -> None:
    """Whoever removes the key together with all hashes must not get a new key, under which everything looks right."""
    seal = Seal((FIRST,))
    await upgrade(await _begun(database, seal))
    await database.write(_run("DELETE FROM meta WHERE name = 'chain_key'"))

    with pytest.raises(StoreUnusable, match="key of the audit chain is missing"):
        await meta.chain_key(database, seal, Clock())


async def test_a_step_can_not_be_noted_where_there_is_no_check(database: Database) -> None:
    """Only the program itself, in the wrong order, could try it: it must not go unnoticed."""
    with pytest.raises(StoreUnusable, match="could not be noted"):
        await meta.note_upgrade(database, Seal((FIRST,)), "one")


async def test_a_note_may_be_repeated(database: Database) -> None:
    """Two processes may finish one step."""
    context = await _begun(database, Seal((FIRST,)))
    await meta.note_upgrade(database, context.seal, "one")
    await meta.note_upgrade(database, context.seal, "one")

    assert await meta.finished_upgrades(database, context.seal) == {"one"}


def _run(sql: str) -> Unit[None]:
    yield Statement(query(sql), ())


def _add(name: str, value: bytes) -> Unit[None]:
    yield Statement(query("INSERT INTO meta (name, value) VALUES ($1, $2)"), (name, value))
