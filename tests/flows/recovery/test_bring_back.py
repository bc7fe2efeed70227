"""A process that has outlived its database stores again what it remembers, before anything else is done."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from tests.flows.recovery.lost_world import FIRST, Recovery
from tests.flows.world import CHARGE, World, asked

from payrelay.core.answers import REPLAYED
from payrelay.core.database.incarnations import Beginning, Incarnation, LostWindow
from payrelay.errors import Code, Refusal
from payrelay.flows.audit.audit import OVERDUE_AFTER_MS, keep_anchors
from payrelay.flows.payments.charge import charge
from payrelay.recovery.flows.bring_back import begin_bringing_back
from payrelay.runtime.database.lost_commits import (
    IDENTITY_KEPT_MS,
    RETURN_MS,
    RETURNING_SENTENCE,
    LostCommits,
)
from payrelay.store.payments.remembered import RememberedCommits


def begun_at(began_at_ms: int) -> Incarnation:
    """Gives the incarnation of a recovery that accounts for the minute before it."""
    lost = LostWindow(since_ms=began_at_ms - 60_000, until_ms=began_at_ms)
    return Incarnation(number=2, reason=Beginning.RECOVERED, began_at_ms=began_at_ms, lost=lost)


class Outlived:
    """A world whose process goes on over a database that lacks all operations."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._recovery = Recovery(FIRST)
        world.journal.remembered = RememberedCommits(100)
        lost = LostCommits(self._recovery.read, world.clock, world.relay.log)
        lost.return_ms = RETURN_MS
        world.relay = replace(world.relay, database=replace(world.relay.database, lost_commits=lost))

    def lose(self) -> None:
        """Loses all operations, and begins the recovery."""
        with closing(sqlite3.connect(self.world.path)) as file:
            for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                file.execute(f"DROP TRIGGER {name}")
            file.executescript("DELETE FROM outbox; DELETE FROM history; DELETE FROM operations;")
        self.begin_recovery()
        self.world.clock.passed_ms += IDENTITY_KEPT_MS

    def begin_recovery(self) -> None:
        """Begins the recovery, of which this process doesn't know yet."""
        self._recovery.incarnations = (FIRST, begun_at(self.world.clock.now_ms()))

    async def work(self) -> None:
        """Does the job, and what it has begun."""
        await begin_bringing_back(self.world.relay)
        await self.world.relay.background.finish(5.0)


@pytest.fixture
def outlived(world: World) -> Outlived:
    """Gives the process."""
    return Outlived(world)


async def test_a_repeat_gets_the_answer_that_was_lost(outlived: Outlived) -> None:
    """Without it the request waits for the gateway's lag, and an authorization or a void for a person."""
    world = outlived.world
    first = await charge(world.relay, asked(), CHARGE)
    outlived.lose()
    await outlived.work()
    repeat = await charge(world.relay, asked(), CHARGE)

    assert (repeat.body, REPLAYED in repeat.headers) == (first.body, True)
    assert len(world.account.ledger) == 1
    assert world.log_events.count("operations_brought_back") == 1
    await outlived.work()
    assert world.log_events.count("operations_brought_back") == 1


async def test_nothing_is_begun_while_another_process_may_bring_its_first_try_back(outlived: Outlived) -> None:
    """A request that is held or sent in these seconds would stand in the way of its own first try."""
    world = outlived.world
    outlived.lose()
    with pytest.raises(Refusal, match=RETURNING_SENTENCE) as refused:
        await charge(world.relay, asked(), CHARGE)
    assert (refused.value.code, world.relay.database.lost_commits.must_wait) == (Code.UNAVAILABLE, True)
    world.clock.passed_ms += RETURN_MS

    assert not world.relay.database.lost_commits.must_wait
    with pytest.raises(Refusal, match="may not show yet"):
        await charge(world.relay, asked(), CHARGE)


async def test_nothing_is_anchored_before_all_has_come_back(outlived: Outlived) -> None:
    """Entries that come back have the times that they had: the audit would call the anchor's span forged."""
    world = outlived.world
    await charge(world.relay, asked(), CHARGE)
    world.clock.passed_ms += OVERDUE_AFTER_MS
    await world.relay.database.lost_commits.refresh()
    outlived.begin_recovery()
    assert await keep_anchors(world.relay) == 0
    world.clock.passed_ms += RETURN_MS

    assert await keep_anchors(world.relay) == 1


async def test_what_is_remembered_comes_back_only_at_the_beginning(outlived: Outlived) -> None:
    """Afterwards the same request may have been decided about: a person's word isn't to be overtaken."""
    world = outlived.world
    await charge(world.relay, asked(), CHARGE)
    outlived.lose()
    world.clock.passed_ms += RETURN_MS
    await outlived.work()

    assert await world.operations() == []
