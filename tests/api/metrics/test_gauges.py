import asyncio

import pytest
from tests.api.fakes import Keyring, MovableClock

from payrelay.api.metrics.gauges import REUSED_S, Gauges
from payrelay.core.gateways.permit_grants import BudgetSnapshot
from payrelay.core.payments.operation import OpenCount, State

BUDGET = BudgetSnapshot(limit_calls=20, used=3, waiting=2, is_open=False, blocked_s=0.0)


@pytest.fixture
def snapshots() -> dict[str, BudgetSnapshot]:
    """Gives the budgets by account."""
    return {"gateway": BUDGET}


@pytest.fixture
def gauges(clock: MovableClock, keyring: Keyring, snapshots: dict[str, BudgetSnapshot]) -> Gauges:
    """Gives the gauges of a store and its accounts."""
    return Gauges(clock, keyring, lambda: snapshots, lambda: 7)


def value(gauges: Gauges, name: str, **labels: str) -> float | None:
    """Gives one number as Prometheus would read it."""
    return gauges.registry.get_sample_value(f"payrelay_{name}", labels)


async def test_open_operations_are_shown_with_their_age(gauges: Gauges, keyring: Keyring, clock: MovableClock) -> None:
    """An alarm rings on how many there are, or on how long the oldest has been waiting."""
    keyring.open = {State.UNKNOWN: OpenCount(2, clock.now_ms() - 1_500), State.PENDING: OpenCount()}
    await gauges.refresh()
    assert value(gauges, "operations_open", state="unknown") == 2
    assert value(gauges, "operations_oldest_open_seconds", state="unknown") == 1.5
    assert value(gauges, "operations_open", state="pending") == 0
    assert value(gauges, "operations_oldest_open_seconds", state="pending") == 0


async def test_an_age_is_never_below_nothing(gauges: Gauges, keyring: Keyring, clock: MovableClock) -> None:
    """Another machine's clock may run ahead of ours."""
    keyring.open = {State.UNKNOWN: OpenCount(1, clock.now_ms() + 1_500)}
    await gauges.refresh()
    assert value(gauges, "operations_oldest_open_seconds", state="unknown") == 0


async def test_a_count_serves_for_a_while(gauges: Gauges, keyring: Keyring, clock: MovableClock) -> None:
    """Several who scrape, or one who does so madly, cost the store no more."""
    for wait_s in (0, REUSED_S / 2, REUSED_S / 2):
        clock.at_s += wait_s
        await gauges.refresh()
    assert keyring.counted == 2


async def test_without_the_store_nothing_is_made_up(gauges: Gauges, keyring: Keyring, clock: MovableClock) -> None:
    """An old number would pass for a current one. What is not the store's goes on."""
    await gauges.refresh()
    keyring.is_broken = True
    clock.at_s += REUSED_S
    await gauges.refresh()
    assert value(gauges, "operations_open", state="unknown") is None
    assert value(gauges, "budget_used", account="gateway") == 3


class Hanging(Keyring):
    """A store that never answers."""

    async def open_operations(self) -> dict[State, OpenCount]:
        """Waits for ever."""
        await asyncio.get_running_loop().create_future()
        return {}


async def test_a_store_that_hangs_is_down(clock: MovableClock, snapshots: dict[str, BudgetSnapshot]) -> None:
    """A scraper has a time-out of its own, and would get nothing at all."""
    gauges = Gauges(clock, Hanging(), lambda: snapshots, lambda: 0, read_within_s=0)
    await gauges.refresh()
    assert gauges.counts is None


def test_held_answers_are_shown(gauges: Gauges) -> None:
    """There is an end to how many are held; an operator sees it come."""
    assert value(gauges, "held_answers") == 7


def test_a_budget_is_shown_by_account(gauges: Gauges) -> None:
    """Full, waited for, circuit breaker open: what an operator asks when charges are slow."""
    names = ("budget_limit", "budget_used", "budget_waiting", "circuit_breaker_open", "budget_blocked_seconds")
    assert [value(gauges, name, account="gateway") for name in names] == [20, 3, 2, 0, 0]


def test_no_limit_is_no_number(gauges: Gauges, snapshots: dict[str, BudgetSnapshot]) -> None:
    """A number that stands for "none" would be drawn as one."""
    snapshots["gateway"] = BudgetSnapshot(limit_calls=None, used=0, waiting=0, is_open=True, blocked_s=7.5)
    assert value(gauges, "budget_limit", account="gateway") is None
    assert value(gauges, "circuit_breaker_open", account="gateway") == 1
    assert value(gauges, "budget_blocked_seconds", account="gateway") == 7.5
