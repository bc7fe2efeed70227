import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from tests.databases import sqlite_url
from tests.gateways.pacing.hand_clock import HandClock
from tests.store.gateways.budgets import Bench, bench_in, finish, stored

from payrelay.core.gateways.fair_shares import OURS, RESERVED_OF
from payrelay.core.gateways.permit_grants import PermitGrant, PermitsGranted
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.errors import StoreUnavailable
from payrelay.gateways.pacing.shared_budget import Budget
from payrelay.store import open_database
from payrelay.store.engine.database import Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sqlite import InlineExecutor
from payrelay.store.gateways.budget import PERMIT_MS_MAX, ROUNDING_MS

TWO: Final = RateLimit(2, 10.0)
PERMIT_S: Final = 45.0
MARGIN_S: Final = ROUNDING_MS / 1000
MOMENT_S: Final = 0.5
"""What a test on a real server may take between two of its steps."""

POSTGRESQL: Final = pytest.param("postgresql", marks=pytest.mark.postgresql)


@pytest.fixture(params=["memory", "sqlite", POSTGRESQL])
def place_of_budget(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each store of a budget: the address of an empty database, or none."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql_url"))
    return sqlite_url(tmp_path / "payrelay.db") if request.param == "sqlite" else ""


@pytest.fixture
async def bench(place_of_budget: str) -> AsyncIterator[Bench]:
    """Each kind of budget."""
    made = await bench_in(place_of_budget)
    yield made
    if made.database is not None:
        await made.database.close()


shared = pytest.mark.parametrize("place_of_budget", ["sqlite", POSTGRESQL], indirect=True)
"""For those that several processes share."""


async def take(budget: Budget, count: int = 1) -> tuple[PermitGrant, ...]:
    """Takes permits for a call of the usual length."""
    return (await budget.take([OURS] * count, PERMIT_S)).grants


async def test_there_are_as_many_permits_as_the_limit_says(bench: Bench) -> None:
    """Places that are held count: the gateway may see their calls at any moment."""
    budget = bench.make(TWO)
    assert [len(await take(budget)) for _ in range(3)] == [1, 1, 0]


async def test_several_are_taken_at_once_as_far_as_there_are(bench: Bench) -> None:
    """A burst makes one query; each of its permits is another slot."""
    taken = await bench.make(RateLimit(3, 10.0)).take([OURS] * 5, PERMIT_S)
    assert sorted(grant.slot for grant in taken.grants) == [0, 1, 2]
    assert taken.next_in_s == pytest.approx(PERMIT_S + 10.0, abs=MOMENT_S)


async def test_a_permit_that_is_done_rests_for_a_window(bench: Bench) -> None:
    """The gateway may have counted its call as late as this."""
    budget = bench.make(RateLimit(1, 10.0))
    (grant,) = await take(budget)
    await bench.pass_time(20.0)
    await finish(budget.done(grant))
    await bench.pass_time(10.0 - MOMENT_S)
    full = await budget.take([OURS], PERMIT_S)
    assert full.grants == ()
    assert full.next_in_s == pytest.approx(MOMENT_S, abs=MOMENT_S)
    await bench.pass_time(MOMENT_S + MARGIN_S)
    assert len(await take(budget)) == 1


async def test_a_permit_on_which_nothing_was_sent_is_free_at_once(bench: Bench) -> None:
    """The gateway has nothing to count."""
    budget = bench.make(RateLimit(1, 10.0))
    (grant,) = await take(budget)
    await finish(budget.release_unused(grant))
    assert len(await take(budget)) == 1


async def test_a_permit_that_nobody_ends_is_free_when_its_call_must_have_ended(bench: Bench) -> None:
    """Its holder died: the permit is free one window after the longest call, and no operator must help."""
    budget = bench.make(RateLimit(1, 10.0))
    await take(budget)
    await bench.pass_time(PERMIT_S + 10.0 - MOMENT_S)
    assert await take(budget) == ()
    await bench.pass_time(MOMENT_S + MARGIN_S)
    assert len(await take(budget)) == 1


@pytest.mark.parametrize("way", ["done", "release_unused"])
async def test_a_late_end_does_not_free_the_permit_of_another_process(bench: Bench, way: str) -> None:
    """A process that was suspended must not free what another one holds by now."""
    budget = bench.make(RateLimit(1, 10.0))
    (late,) = await take(budget)
    await bench.pass_time(PERMIT_S + 10.0 + MARGIN_S)
    assert len(await take(budget)) == 1
    await finish(getattr(budget, way)(late))
    await bench.pass_time(10.0)
    assert await take(budget) == ()


async def test_a_permit_is_ended_once(bench: Bench) -> None:
    """What has rested for a while is not sent back to rest, nor freed."""
    budget = bench.make(RateLimit(1, 10.0))
    (grant,) = await take(budget)
    await finish(budget.done(grant))
    await finish(budget.release_unused(grant))
    assert await take(budget) == ()


async def test_while_the_gateway_blocks_us_no_permit_is_free(bench: Bench) -> None:
    """Nor does a call that ends meanwhile free one sooner; a shorter block doesn't cut a longer one."""
    budget = bench.make(TWO)
    (grant,) = await take(budget)
    await finish(budget.block(30.0))
    await finish(budget.block(5.0))
    await finish(budget.release_unused(grant))
    full = await budget.take([OURS], PERMIT_S)
    assert full.grants == ()
    assert full.next_in_s == pytest.approx(30.0, abs=MOMENT_S)
    await bench.pass_time(30.0 + MARGIN_S)
    assert len(await take(budget, 2)) == 2


@shared
async def test_all_who_share_a_budget_keep_to_one_limit(bench: Bench) -> None:
    """Two processes, one database, one gateway that counts."""
    one, other = bench.make(TWO), bench.make(TWO)
    assert [len(await take(each)) for each in (one, other, one, other)] == [1, 1, 0, 0]


@shared
async def test_many_who_take_at_once_get_no_permit_twice(bench: Bench) -> None:
    """Eight processes run into each other, at their very first call too."""
    budgets = [bench.make(RateLimit(20, 10.0)) for _ in range(8)]
    taken = await asyncio.gather(*(take(budget, 2) for budget in budgets for _ in range(4)))
    slots = [grant.slot for grants in taken for grant in grants]
    assert len(slots) == len(set(slots)) <= 20
    assert len(slots) + len(await take(budgets[0], 20)) == 20 - 20 // RESERVED_OF


@shared
async def test_a_process_that_starts_anew_finds_what_the_dead_one_took(bench: Bench) -> None:
    """After kill -9 and a restart within the second the gateway counts on."""
    await take(bench.make(TWO), 2)
    assert await take(bench.make(TWO)) == ()


@shared
async def test_a_limit_that_was_raised_has_more_permits_and_a_lowered_one_fewer(bench: Bench) -> None:
    """The setting changes from one start to the next, the rows stay."""
    await take(bench.make(TWO), 2)
    assert len(await take(bench.make(RateLimit(5, 10.0)), 9)) == 3
    await bench.pass_time(PERMIT_S + 10.0 + MARGIN_S)
    assert len(await take(bench.make(RateLimit(1, 10.0)), 9)) == 1


@shared
async def test_rows_that_are_gone_are_made_again(bench: Bench) -> None:
    """Somebody tidied the database by hand: a budget without rows would be full for ever."""
    budget = bench.make(TWO)
    await take(budget)
    await bench.pass_time(0)
    await _remove_all(bench)
    assert (await budget.take([OURS], PERMIT_S)).grants == ()
    assert len(await take(budget)) == 1


@shared
async def test_a_store_that_is_down_is_reported(bench: Bench) -> None:
    """Nobody knows then whether there is a permit, so nothing is sent."""
    assert bench.database is not None
    budget = bench.make(TWO)
    await bench.database.close()
    with pytest.raises(StoreUnavailable):
        await budget.take([OURS], PERMIT_S)


class JumpingClock(HandClock):
    """Its wall clock can be set."""

    def __init__(self) -> None:
        super().__init__()
        self.set_by_ms = 0

    def now_ms(self) -> int:
        """Gives the time with what the clock was set by."""
        return super().now_ms() + self.set_by_ms


async def test_a_wall_clock_that_is_set_frees_and_holds_nothing(tmp_path: Path) -> None:
    """The machine's clock is put right in the middle of a window: the gateway's window doesn't move."""
    clock = JumpingClock()
    database = await open_database(f"sqlite:///{tmp_path / 'a.db'}", clock=clock, owner=True, executor=InlineExecutor())
    budget = stored(database, clock, RateLimit(1, 10.0))
    (grant,) = await take(budget)
    clock.set_by_ms = 3_600_000
    await finish(budget.done(grant))
    assert (await budget.take([OURS], PERMIT_S)) == PermitsGranted((), 10.0 + ROUNDING_MS / 1000, frozenset({OURS}))
    await database.close()


async def test_a_clock_set_back_between_two_starts_blocks_nobody_for_long(tmp_path: Path) -> None:
    """Places that seem to be free in a day are free within minutes."""
    clock = JumpingClock()
    database = await open_database(f"sqlite:///{tmp_path / 'a.db'}", clock=clock, owner=True, executor=InlineExecutor())
    clock.set_by_ms = 86_400_000
    await take(stored(database, clock, RateLimit(1, 10.0)))
    clock.set_by_ms = 0
    full = await stored(database, clock, RateLimit(1, 10.0)).take([OURS], PERMIT_S)
    assert full == PermitsGranted((), (PERMIT_MS_MAX + ROUNDING_MS) / 1000 + 10.0, frozenset({OURS}))
    await database.close()


async def _remove_all(bench: Bench) -> None:
    assert bench.database is not None
    await bench.database.write(_removal())


def _removal() -> Unit[None]:
    yield Statement(query("DELETE FROM places"), ())
