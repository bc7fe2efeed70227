import asyncio
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.databases import sqlite_url
from tests.draws import examples
from tests.gateways.pacing.crowds import CYCLE_S, LIMIT, POLITE, Flood, Street, Wait
from tests.gateways.pacing.hand_clock import HandClock

from payrelay.core.gateways.fair_shares import RESERVED_OF, Requester
from payrelay.gateways.pacing.rate_limiter import Priority, RateLimiter
from payrelay.gateways.pacing.shared_budget import MemoryBudget
from payrelay.store import open_database
from payrelay.store.engine.sqlite import InlineExecutor
from payrelay.store.gateways.budget import StoredBudget

pytestmark = pytest.mark.deep

CAPACITY: Final = LIMIT.calls - LIMIT.calls // RESERVED_OF
BEGINS_S: Final = 3 * CYCLE_S
"""When a crowd comes to a budget that others have used before."""

crowds = st.lists(
    st.builds(
        lambda connections, priority, later_s: (connections, priority, later_s),
        st.sampled_from([5, 30, 120]),
        st.sampled_from([Priority.CHARGE, Priority.GIVE_BACK, Priority.READ]),
        st.one_of(st.just(0.0), st.floats(0, 20)),
    ),
    min_size=1,
    max_size=5,
)


def floods(crowd: list[tuple[int, Priority, float]], begins_s: float) -> list[Flood]:
    """Makes a principal of each."""
    return [
        Flood(Requester(f"crowd-{number}"), connections, priority, begins_s + later_s)
        for number, (connections, priority, later_s) in enumerate(crowd)
    ]


def every_s(principals: int, slack: float) -> float:
    """Gives the pause between the calls of one who stays within its share."""
    return CYCLE_S / (CAPACITY // principals) * slack


async def street_of(crowd: list[Flood], *, every: float, for_s: float, requester: Requester = POLITE) -> Street:
    """Plays a crowd and a polite caller in one process."""
    clock = HandClock()
    street = Street(clock, [RateLimiter(LIMIT, clock, timer=clock.timer, budget=MemoryBudget(LIMIT, clock))])
    await street.run(crowd, every_s=every, for_s=for_s, requester=requester)
    return street


def after(waits: list[Wait], at_s: float) -> list[float | None]:
    """Gives the waits of the calls that came after a time."""
    return [wait.waited_s for wait in waits if wait.at_s >= at_s]


@settings(max_examples=examples(10))
@given(crowd=crowds, slack=st.floats(1.1, 3))
def test_who_stays_within_its_share_does_not_notice_a_crowd(
    crowd: list[tuple[int, Priority, float]], slack: float
) -> None:
    """Whatever others ask for, over however many connections and one after the other: the wait is what it is alone."""
    every = every_s(len(crowd) + 1, slack)
    street = asyncio.run(street_of(floods(crowd, BEGINS_S), every=every, for_s=80.0))
    assert {wait.waited_s for wait in street.waits} == {0.0}


@settings(max_examples=examples(10))
@given(crowd=crowds, slack=st.floats(1.1, 3))
def test_who_comes_to_a_crowd_has_its_share_after_two_windows(
    crowd: list[tuple[int, Priority, float]], slack: float
) -> None:
    """Its first call gets a permit of the reserve. Then each call waits for one round of those who wait at most."""
    at_once = [(connections, priority, 0.0) for connections, priority, _ in crowd]
    every, principals = every_s(len(crowd) + 1, slack), len(crowd) + 1
    street = asyncio.run(street_of(floods(at_once, 0.0), every=every, for_s=80.0))
    settled = after(street.waits, 3 * CYCLE_S)
    assert settled
    assert max(99.0 if each is None else each for each in settled) <= principals * CYCLE_S / CAPACITY


@pytest.mark.parametrize("priority", [Priority.CHARGE, Priority.READ])
async def test_who_asks_seldom_finds_the_reserve(priority: Priority) -> None:
    """Once in two windows, beside a crowd that has been there for long."""
    street = await street_of([Flood(Requester("crowd"), 500, priority)], every=2 * CYCLE_S + 1.0, for_s=130.0)
    assert {wait.waited_s for wait in street.waits[1:]} == {0.0}


async def test_all_is_as_before_one_window_after_the_crowd() -> None:
    """The crowd's last calls rest for a window; then one alone has all but the reserve again, at once."""
    crowd = Flood(Requester("crowd"), 500, Priority.CHARGE, 0.0, 40.0)
    alone = Flood(POLITE, 1, Priority.CHARGE, 40.0 + 5.0 + 2 * LIMIT.window_s, 90.0)
    street = await street_of([crowd, alone], every=89.0, for_s=95.0)
    assert street.given.count("polite") >= CAPACITY


@pytest.mark.parametrize("phones", [1, 3, 20])
async def test_apps_do_not_take_the_permits_of_their_shop(phones: int) -> None:
    """A till with one charge a second, which is half of the budget, beside apps that read all the time."""
    crowd = [Flood(Requester("shop", f"phone-{number}"), 20, Priority.READ, BEGINS_S) for number in range(phones)]
    street = await street_of(crowd, every=1.0, for_s=90.0, requester=Requester("shop"))
    assert {wait.waited_s for wait in street.waits} == {0.0}


@pytest.mark.parametrize("processes", [2, 3])
async def test_several_processes_keep_to_the_same_shares(tmp_path: Path, processes: int) -> None:
    """Crowd and polite caller come to all of them. The rows say who used what, so each process knows what to keep."""
    clock = HandClock()
    database = await open_database(sqlite_url(tmp_path / "a.db"), clock=clock, owner=True, executor=InlineExecutor())
    budgets = [StoredBudget(database, clock, "m", calls=LIMIT.calls, window_s=LIMIT.window_s) for _ in range(processes)]
    street = Street(clock, [RateLimiter(LIMIT, clock, timer=clock.timer, budget=budget) for budget in budgets])
    crowd = [
        Flood(Requester("crowd"), 60, Priority.CHARGE, BEGINS_S),
        Flood(Requester("other"), 60, Priority.READ, BEGINS_S),
    ]
    await street.run(crowd, every_s=every_s(3, 1.2), for_s=80.0)
    await database.close()
    assert {wait.waited_s for wait in street.waits} == {0.0}
    assert street.given.count("crowd") > 0 < street.given.count("other")
