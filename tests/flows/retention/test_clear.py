import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.flows.recovery.lost_world import FIRST, RECOVERING
from tests.flows.world import World, asked, opened

from payrelay.core.database.incarnations import DatabaseIdentity
from payrelay.core.payments.operation import Retention
from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.retention import Kept, Periods
from payrelay.errors import Code, Refusal
from payrelay.flows.audit.audit import FINAL_AFTER_MS, Audit, anchor
from payrelay.flows.operators.review import study
from payrelay.flows.payments.charge import charge
from payrelay.flows.retention.clear import IDLE_S, begin_clearing, clear_all, clearing_status
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.store.engine.database import Database
from payrelay.worker import JOBS

SHORT: Final = Periods(answers=1_000, calls=1_000, histories=1_000, notifications=1_000, events=1_000)
TAKEN: Final = Retention(keyed_ms=1, unkeyed_ms=1, are_keys_free_again=False)


@pytest.fixture
async def aged(world: World) -> World:
    """Gives a world with one charge that is a day old and anchored, and short periods of retention."""
    world.relay = replace(world.relay, settings=replace(world.relay.settings, retention=TAKEN))
    world.relay.clearing.periods = SHORT
    await charge(world.relay, asked("k-1"), world.charge_of(1))
    world.clock.passed_ms += DAY_MS
    while await anchor(world.journal.trail, world.clock.now_ms() - FINAL_AFTER_MS):
        pass
    return world


async def test_the_worker_clears_what_is_old(aged: World) -> None:
    """Nobody has to think of it: the job is one of the worker's."""
    assert begin_clearing in {job.do for job in JOBS if job.waits_behind}
    assert await begin_clearing(aged.relay) == 3

    operation = await aged.operation()
    studied = await study(aged.relay, operation.id)
    assert studied is not None
    assert (studied.call, studied.answer, len(studied.history)) == (None, None, 1)


async def test_a_repeat_after_the_clearing_charges_nobody(aged: World) -> None:
    """The client may have slept for months: it is told what became of the request, and nothing is sent."""
    await begin_clearing(aged.relay)
    sent = len(aged.account.ledger)

    with pytest.raises(Refusal, match="no longer kept") as refused:
        await charge(aged.relay, asked("k-1"), aged.charge_of(1))
    assert refused.value.code is Code.CONFLICT
    assert refused.value.operation_id == (await aged.operation()).id
    assert len(aged.account.ledger) == sent
    assert len(await aged.operations()) == 1


async def test_a_repeat_before_the_clearing_is_answered_as_ever(aged: World) -> None:
    """The key stays taken, and its answer is replayed for as long as it is kept."""
    answer = await charge(aged.relay, asked("k-1"), aged.charge_of(1))

    assert answer.http_status == 200
    assert len(aged.account.ledger) == 1


async def test_nothing_is_cleared_beside_a_recovery(aged: World) -> None:
    """What is old may be what shows that a lost request was carried out."""

    async def identity() -> DatabaseIdentity:
        return DatabaseIdentity(id="a database", incarnations=(FIRST, RECOVERING))

    relay = replace(
        aged.relay,
        database=replace(aged.relay.database, lost_commits=LostCommits(identity, aged.clock, aged.relay.log)),
    )

    assert await begin_clearing(relay) == 0
    with pytest.raises(Refusal, match="recovery"):
        await clear_all(relay.clearing, aged.clock.now_ms(), current=RECOVERING, pause=aged.relay.pause)


async def test_nothing_is_cleared_while_the_database_lacks_commits(aged: World) -> None:
    """Nobody has decided yet what was lost."""
    aged.relay.database.lost_commits.fall_behind(99, "a test says so")

    assert await begin_clearing(aged.relay) == 0


async def test_what_is_kept_for_ever_stays(aged: World) -> None:
    """An operator who must keep everything says ``keep``."""
    aged.relay.clearing.periods = Periods(None, None, None, None, None)

    assert await begin_clearing(aged.relay) == 0


async def test_it_rests_where_nothing_is_old(aged: World) -> None:
    """A round comes twice a second, and must cost nothing then."""
    await begin_clearing(aged.relay)
    assert set(aged.relay.clearing.idle_until_s) == {Kept.ANSWERS, Kept.CALLS, Kept.HISTORIES, Kept.NOTIFICATIONS}
    assert min(aged.relay.clearing.idle_until_s.values()) == aged.clock.boot_s() + IDLE_S


async def test_the_command_clears_all_and_tells_how_much(aged: World) -> None:
    """After the upgrade of a large database an operator doesn't want to wait for days."""
    cleared = await clear_all(aged.relay.clearing, aged.clock.now_ms(), current=FIRST, pause=aged.relay.pause)

    assert cleared == {Kept.ANSWERS: 1, Kept.CALLS: 1, Kept.HISTORIES: 1, Kept.NOTIFICATIONS: 0}


async def test_the_status_tells_what_is_overdue(aged: World) -> None:
    """The alert rings by it."""
    now_ms = aged.clock.now_ms()
    before = {each.kind: each for each in await clearing_status(aged.relay.clearing)}
    await begin_clearing(aged.relay)
    after = {each.kind: each for each in await clearing_status(aged.relay.clearing)}

    assert before[Kept.ANSWERS].overdue_ms(now_ms) >= DAY_MS - 2_000
    assert (after[Kept.ANSWERS].overdue_ms(now_ms), after[Kept.ANSWERS].cleared) == (0, 1)


async def test_a_copy_of_a_cleared_database_is_whole(aged: World, tmp_path: Path) -> None:
    """A backup is taken of what is left: the audit goes on in it, and a repeat acts no more."""
    await begin_clearing(aged.relay)
    copy: Database = await opened(copied(aged.path, tmp_path / "copy.db"))
    relay = replace(aged.relay, journal=type(aged.journal)(copy, aged.steps))
    audit = Audit(relay.journal.trail, 0, lambda *_: None)

    assert [finding async for finding in audit.findings()] == []
    assert audit.summary.histories_cleared == 1
    with pytest.raises(Refusal, match="no longer kept"):
        await charge(relay, asked("k-1"), msgspec.structs.replace(aged.charge_of(1)))
    await copy.close()


def copied(source: Path, target: Path) -> Path:
    """Copies a database as a backup does."""
    with sqlite3.connect(source) as ours, sqlite3.connect(target) as theirs:
        ours.backup(theirs)
    return target
