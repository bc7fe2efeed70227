import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.digests import digests_of
from tests.flows.world import CHARGE, UNKEYED_MS, Crash, Raising, World, asked, opened

from payrelay.core.calls import AllSubscriptions
from payrelay.core.outcomes import Reading
from payrelay.core.payments.operation import State
from payrelay.errors import StoreUnavailable
from payrelay.flows.payments.charge import charge
from payrelay.runtime.read_cache import ReadCache
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.readings import ReadingStore
from payrelay.worker import EVERY_S, JOBS, Job, prune_read_cache, recover_and_prune, working

EACH_ROUND = tuple(Job(1, job.do) for job in JOBS)
RECOVERY = (Job(1, recover_and_prune),)


class Rounds:
    """A pause that ends when the test says so, and tells when the worker has come to it."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._arrived = asyncio.Event()
        self._going_on = asyncio.Event()

    async def pause(self, seconds: float) -> None:
        """Waits for the test."""
        self.pauses.append(seconds)
        self._arrived.set()
        await self._going_on.wait()
        self._going_on.clear()

    async def one(self) -> None:
        """Lets one round pass."""
        await self._arrived.wait()
        self._arrived.clear()
        self._going_on.set()
        await self._arrived.wait()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Gives a relay with one account that has no limit."""
    world = World(await opened(tmp_path / "payrelay.db"), tmp_path / "payrelay.db")
    yield world
    await world.relay.background.finish(0)
    await world.database.close()


async def strand(world: World) -> None:
    """Leaves an operation behind in `sending`, as the end of a process does."""
    world.steps.put("effect", Raising(Crash()))
    with pytest.raises(Crash):
        await charge(world.relay, asked(world.relay), CHARGE)


async def test_old_readings_are_forgotten(world: World) -> None:
    """What customers' payments looked like a month ago is not kept because nobody asked for it."""
    last = ReadingStore(world.database, Seal((b"k" * 32,)), digests_of(world.database))
    read_cache = ReadCache(last, world.clock, world.relay.log, start=world.relay.background.start)
    await last.keep("m", AllSubscriptions(), Reading(code=None, msg="Found"), (), read_at_ms=0, answered_at_ms=0)
    rounds = Rounds()
    async with working(
        dataclasses.replace(world.relay, read_cache=read_cache), rounds.pause, (Job(1, prune_read_cache),)
    ):
        await rounds.one()
    assert await last.last("m", AllSubscriptions()) is None


async def test_an_abandoned_operation_is_recovered_when_its_time_is_over(world: World) -> None:
    """Another process's crash is noticed without a start of ours."""
    await strand(world)
    rounds = Rounds()
    async with working(world.relay, rounds.pause, RECOVERY):
        await rounds.one()
        early = (await world.operation()).state
        world.clock.passed_ms += 60_000
        await rounds.one()

    assert early is State.SENDING
    assert (await world.operation()).state is State.UNKNOWN


async def test_expired_claims_are_deleted(world: World) -> None:
    """What nobody can repeat any more needs no place in the index that every request looks into."""
    await charge(world.relay, asked(world.relay, None), CHARGE)
    world.clock.passed_ms += UNKEYED_MS + 1
    rounds = Rounds()
    async with working(world.relay, rounds.pause, RECOVERY):
        await rounds.one()

    assert (await world.operation()).claim is None


async def test_trouble_ends_a_round_and_not_the_worker(world: World) -> None:
    """A database that is away for a minute must not leave the rest of the week without maintenance."""
    await strand(world)
    world.clock.passed_ms += 60_000
    world.steps.put("record", Raising(StoreUnavailable("the disk is full")))
    world.steps.put("record", Raising(ZeroDivisionError()), first=2)
    rounds = Rounds()
    async with working(world.relay, rounds.pause, RECOVERY):
        for _ in range(3):
            await rounds.one()

    assert world.log_events.count("job_failed") == 2
    assert (await world.operation()).state is State.UNKNOWN


async def test_it_rests_between_two_rounds_and_ends_with_its_context(world: World) -> None:
    """It is a small load at a known pace, and nothing goes on behind a closed store."""
    rounds = Rounds()
    async with working(world.relay, rounds.pause, EACH_ROUND):
        await rounds.one()

    assert rounds.pauses == [EVERY_S, EVERY_S]
