import asyncio
import tempfile
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.databases import sqlite_url
from tests.draws import examples
from tests.gateways.pacing.hand_clock import HandClock, turns

from payrelay.core.gateways.fair_shares import RESERVED_OF
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.gateways.pacing.rate_limiter import SEND_WITHIN_S, SLACK_S, Priority, RateLimiter
from payrelay.gateways.pacing.shared_budget import Budget, MemoryBudget
from payrelay.store import open_database
from payrelay.store.engine.sqlite import InlineExecutor
from payrelay.store.gateways.budget import StoredBudget

pytestmark = pytest.mark.deep

WINDOW_S: Final = 10.0
TIMEOUT_S: Final = 30.0
LASTS_S_MAX: Final = SEND_WITHIN_S + TIMEOUT_S
HAIR_S: Final = 1e-6
"""Two calls exactly a window apart are in different windows."""


class Customer(msgspec.Struct, frozen=True):
    """One call: its delay after the call before, its process, and its end."""

    pause_s: float
    process: int
    priority: Priority
    patience_s: float
    lasts_s: float
    arrives_at: float
    """The share of its time after which the gateway counts it."""
    fate: str


customers = st.builds(
    Customer,
    st.one_of(st.floats(0, 1), st.floats(0, 12)),
    st.integers(0, 2),
    st.sampled_from(Priority),
    st.one_of(st.just(50.0), st.floats(0, 20)),
    st.one_of(st.floats(0, 1), st.sampled_from([SEND_WITHIN_S, LASTS_S_MAX]), st.floats(0, LASTS_S_MAX)),
    st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)),
    st.sampled_from(["done", "done", "unused", "crash", "cancelled"]),
)


def customer(process: int, *, lasts_s: float, arrives_at: float, fate: str) -> Customer:
    """Makes a patient one who comes at once."""
    return Customer(0.0, process, Priority.CHARGE, 80.0, lasts_s, arrives_at, fate)


DIED_AT_THE_LAST_MOMENT: Final = [
    customer(0, lasts_s=LASTS_S_MAX, arrives_at=1.0, fate="crash"),
    customer(1, lasts_s=0.0, arrives_at=0.0, fate="done"),
]
"""What chance rarely finds: the gateway counts the dead one's call as late as it can, and the next one's at once."""


class Shop:
    """Processes that share a budget, and the arrivals of their calls by the gateway's clock."""

    def __init__(self, clock: HandClock, rate_limiters: list[RateLimiter]) -> None:
        self.clock = clock
        self.rate_limiters = rate_limiters
        self.arrivals: list[float] = []

    async def call(self, customer: Customer) -> None:
        """Takes a permit and makes a call; who crashes never ends it, and its reply never comes."""
        rate_limiter = self.rate_limiters[customer.process % len(self.rate_limiters)]
        permit = await rate_limiter.take(self.clock.now_s + customer.patience_s, priority=customer.priority)
        if permit is None:
            return
        if customer.fate == "unused":
            self.clock.timer(customer.lasts_s, permit.release_unused)
            return
        self.arrivals.append(self.clock.now_s + customer.lasts_s * customer.arrives_at)
        if customer.fate == "done":
            self.clock.timer(customer.lasts_s, permit.done)

    async def open(self, plan: list[Customer]) -> None:
        """Lets them all come, one after the other."""
        tasks = []
        for customer in plan:
            await self.clock.run(customer.pause_s)
            tasks.append(asyncio.create_task(self.call(customer)))
            if customer.fate == "cancelled":
                await asyncio.sleep(0)
                tasks[-1].cancel()
        await self.clock.run(130.0)
        assert all(task.done() for task in tasks)
        for rate_limiter in self.rate_limiters:
            await rate_limiter.close()

    def most_in_a_window(self) -> int:
        """Counts the arrivals in the fullest window."""
        arrivals = sorted(self.arrivals)
        return max(
            (sum(first <= each < first + WINDOW_S - HAIR_S for each in arrivals) for first in arrivals), default=0
        )


def rate_limiter_of(clock: HandClock, limit: RateLimit, budget: Budget) -> RateLimiter:
    """Makes one process's rate limiter."""
    return RateLimiter(limit, clock, timer=clock.timer, budget=budget, timeout_s=TIMEOUT_S)


@given(calls=st.integers(1, 4), plan=st.lists(customers, min_size=1, max_size=30))
@example(calls=1, plan=DIED_AT_THE_LAST_MOMENT)
def test_one_process_never_makes_one_call_too_many(calls: int, plan: list[Customer]) -> None:
    """Wherever between grant and end the gateway counts each call, no window of its clock holds more than the limit."""

    async def story() -> int:
        clock, limit = HandClock(), RateLimit(calls, WINDOW_S)
        shop = Shop(clock, [rate_limiter_of(clock, limit, MemoryBudget(limit, clock))])
        await shop.open(plan)
        return shop.most_in_a_window()

    assert asyncio.run(story()) <= calls


@settings(max_examples=examples(25))
@given(calls=st.integers(1, 4), plan=st.lists(customers, min_size=1, max_size=20))
@example(calls=1, plan=DIED_AT_THE_LAST_MOMENT)
def test_no_number_of_processes_makes_one_call_too_many(calls: int, plan: list[Customer]) -> None:
    """The limit also holds where three processes share a store, and some die with a call under way."""

    async def story(folder: str) -> int:
        clock, limit = HandClock(), RateLimit(calls, WINDOW_S)
        path = Path(folder) / "a.db"
        database = await open_database(sqlite_url(path), clock=clock, owner=True, executor=InlineExecutor())
        budgets = [StoredBudget(database, clock, "m", calls=calls, window_s=WINDOW_S) for _ in range(3)]
        shop = Shop(clock, [rate_limiter_of(clock, limit, budget) for budget in budgets])
        await shop.open(plan)
        await database.close()
        return shop.most_in_a_window()

    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(story(folder)) <= calls


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("latency_s", [0.3, 8.0])
async def test_at_saturation_the_budget_is_used_up(tmp_path: Path, latency_s: float, processes: int) -> None:
    """With always somebody waiting, 95 % of what window, latency and the reserve allow is used at least."""
    clock, limit = HandClock(), RateLimit(20, WINDOW_S)
    database = await open_database(sqlite_url(tmp_path / "a.db"), clock=clock, owner=True, executor=InlineExecutor())
    budgets = [StoredBudget(database, clock, "m", calls=20, window_s=WINDOW_S) for _ in range(processes)]
    rate_limiters = [rate_limiter_of(clock, limit, budget) for budget in budgets]
    grants: list[float] = []

    async def call_again_and_again(rate_limiter: RateLimiter) -> None:
        while clock.now_s < 1_200.0:
            permit = await rate_limiter.take(clock.now_s + 100)
            if permit is not None:
                grants.append(clock.now_s)
                clock.timer(latency_s, permit.done)

    callers = [asyncio.create_task(call_again_and_again(rate_limiters[number % processes])) for number in range(45)]
    await clock.run(320.0)
    await asyncio.gather(*callers, *(rate_limiter.close() for rate_limiter in rate_limiters))
    await database.close()
    usable = limit.calls - limit.calls // RESERVED_OF
    spans = [later - first for first, later in zip(grants, grants[usable:], strict=False)]
    assert min(spans) >= WINDOW_S + latency_s - HAIR_S
    assert sum(spans) / len(spans) <= (WINDOW_S + latency_s) / 0.95


async def test_resolution_is_not_starved_at_saturation() -> None:
    """Charges come without a pause, and yet every eleventh permit or so goes to the resolution of lost replies."""
    clock, limit = HandClock(), RateLimit(10, WINDOW_S)
    rate_limiter = rate_limiter_of(clock, limit, MemoryBudget(limit, clock))
    served: list[Priority] = []

    async def call_again_and_again(priority: Priority) -> None:
        while clock.now_s < 1_300.0:
            permit = await rate_limiter.take(clock.now_s + 400, priority=priority)
            assert permit is not None
            served.append(priority)
            clock.timer(SLACK_S, permit.done)
            await turns()

    kinds = [Priority.CHARGE] * 30 + [Priority.RESOLUTION] * 2 + [Priority.READ] * 5
    callers = [asyncio.create_task(call_again_and_again(priority)) for priority in kinds]
    await clock.run(300.0)
    share = served.count(Priority.RESOLUTION) / len(served)
    await clock.run(1_000.0)
    await asyncio.gather(*callers)
    assert 0.08 < share < 0.12
