import asyncio
from collections.abc import Sequence
from typing import Final

import pytest
from tests.gateways.pacing.hand_clock import HandClock, turns

from payrelay.core.gateways.fair_shares import Consumer
from payrelay.core.gateways.permit_grants import BudgetSnapshot, PermitGrant, PermitsGranted
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.errors import StoreUnavailable
from payrelay.gateways.pacing.circuit_breaker import ENDED_MIN, PAUSE_S
from payrelay.gateways.pacing.rate_limiter import (
    BLOCK_S_MAX,
    SEND_WITHIN_S,
    WAITERS_MAX,
    Ending,
    Permit,
    Priority,
    RateLimiter,
)
from payrelay.gateways.pacing.shared_budget import MemoryBudget, Rest

WITH_RESERVE: Final = ENDED_MIN + 2
"""Calls of a budget of which one caller may make ENDED_MIN."""


@pytest.fixture
def hand_clock() -> HandClock:
    """A clock that stands still until the test moves it."""
    return HandClock()


def make(clock: HandClock, calls: int = 2, window_s: float = 10.0) -> RateLimiter:
    """Makes a rate limiter whose timers ring when the clock is moved."""
    return RateLimiter(RateLimit(calls, window_s), clock, timer=clock.timer)


async def taken(rate_limiter: RateLimiter) -> Permit:
    """Takes a permit that must be there."""
    permit = await rate_limiter.take_now()
    assert permit is not None
    return permit


def test_the_limit_can_be_asked_for(hand_clock: HandClock) -> None:
    """It is shown to operators beside what is used of it."""
    assert make(hand_clock, calls=3).limit == RateLimit(3, 10.0)


async def test_no_more_permits_than_the_limit(hand_clock: HandClock) -> None:
    """Places that are held count as calls: the gateway may see them at any moment."""
    rate_limiter = make(hand_clock)
    assert [await rate_limiter.take_now() is not None for _ in range(3)] == [True, True, False]


async def test_a_used_permit_rests_for_a_window_after_the_reply(hand_clock: HandClock) -> None:
    """The gateway may have counted the call as late as the reply, so that is when the window begins."""
    rate_limiter = make(hand_clock, calls=2)
    permit, _ = await taken(rate_limiter), await taken(rate_limiter)
    hand_clock.move(7)
    permit.done()
    hand_clock.move(9.9)
    assert await rate_limiter.take_now() is None
    hand_clock.move(0.1)
    assert await rate_limiter.take_now() is not None


async def test_an_unused_permit_is_free_at_once(hand_clock: HandClock) -> None:
    """Nothing was sent, so the gateway has nothing to count."""
    rate_limiter = make(hand_clock)
    permit, _ = await taken(rate_limiter), await taken(rate_limiter)
    permit.release_unused()
    assert await rate_limiter.take_now() is not None


async def test_a_permit_is_ended_once(hand_clock: HandClock) -> None:
    """Ending it twice must not make two permits of one."""
    rate_limiter = make(hand_clock)
    permit, _ = await taken(rate_limiter), await taken(rate_limiter)
    permit.done()
    permit.release_unused()
    permit.done()
    assert await rate_limiter.take_now() is None


async def test_without_a_limit_there_is_always_room(hand_clock: HandClock) -> None:
    """``off`` is meant for a test double that counts nothing."""
    rate_limiter = RateLimiter(None, hand_clock)
    permits = [await taken(rate_limiter) for _ in range(100)]
    for permit in permits:
        permit.done()
    assert rate_limiter.snapshot().used == 0


async def test_a_waiter_is_woken_when_the_window_is_over(hand_clock: HandClock) -> None:
    """Nobody polls: the rate limiter's timer brings the permit."""
    rate_limiter = make(hand_clock)
    for _ in range(2):
        (await taken(rate_limiter)).done()
    waiting = asyncio.create_task(rate_limiter.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    hand_clock.move(10)
    assert await waiting is not None


async def test_a_waiter_is_served_when_a_permit_comes_back_unused(hand_clock: HandClock) -> None:
    """A call that never left makes room for the next one in the queue."""
    rate_limiter = make(hand_clock)
    permit, _ = await taken(rate_limiter), await taken(rate_limiter)
    waiting = asyncio.create_task(rate_limiter.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    permit.release_unused()
    assert await waiting is not None


async def test_a_waiter_gives_up_at_its_time(hand_clock: HandClock) -> None:
    """A caller that waits for a permit has a client that waits for an answer."""
    rate_limiter = make(hand_clock)
    await taken(rate_limiter), await taken(rate_limiter)
    waiting = asyncio.create_task(rate_limiter.take(hand_clock.now_s + 5))
    await asyncio.sleep(0)
    hand_clock.move(5)
    assert await waiting is None


async def test_no_permit_is_waited_for_when_the_time_is_over(hand_clock: HandClock) -> None:
    """A deadline in the past is answered at once."""
    rate_limiter = make(hand_clock)
    await taken(rate_limiter), await taken(rate_limiter)
    assert await rate_limiter.take(hand_clock.now_s) is None


async def test_effects_come_before_reads(hand_clock: HandClock) -> None:
    """A customer who pays has priority over a list; within one kind the first come is the first served."""
    rate_limiter = make(hand_clock)
    held = [await taken(rate_limiter), await taken(rate_limiter)]
    order: list[str] = []

    async def wait(name: str, priority: Priority) -> None:
        permit = await rate_limiter.take(hand_clock.now_s + 60, priority=priority)
        order.append(name)
        assert permit is not None
        permit.release_unused()

    names = [("read", Priority.READ), ("charge", Priority.CHARGE), ("capture", Priority.CHARGE)]
    tasks = [asyncio.create_task(wait(*each)) for each in names]
    await asyncio.sleep(0)
    held[0].release_unused()
    await asyncio.gather(*tasks)
    assert order == ["charge", "capture", "read"]


async def test_nobody_overtakes_a_waiter(hand_clock: HandClock) -> None:
    """A newcomer gets no permit while somebody waits for it."""
    rate_limiter = make(hand_clock)
    held = [await taken(rate_limiter), await taken(rate_limiter)]
    waiting = asyncio.create_task(rate_limiter.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    held[0].release_unused()
    assert await rate_limiter.take_now() is None
    assert await waiting is not None


async def test_a_cancelled_waiter_leaves_its_permit_to_others(hand_clock: HandClock) -> None:
    """A permit given in the moment of the cancellation must not be lost for good."""
    rate_limiter = make(hand_clock)
    held = [await taken(rate_limiter), await taken(rate_limiter)]
    waiting = asyncio.create_task(rate_limiter.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    held[0].release_unused()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await rate_limiter.take_now() is not None


async def test_a_cancelled_waiter_no_longer_waits(hand_clock: HandClock) -> None:
    """A caller that went away must not delay those behind it."""
    rate_limiter = make(hand_clock)
    held = [await taken(rate_limiter), await taken(rate_limiter)]
    waiting = asyncio.create_task(rate_limiter.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    held[0].release_unused()
    assert await rate_limiter.take_now() is not None


class FailingBudget(MemoryBudget):
    """A budget in a store that is down."""

    is_shared = True

    async def take(self, wanted: Sequence[Consumer], permit_s: float) -> PermitsGranted:  # noqa: ARG002, the interface of a budget
        """Can't say."""
        raise StoreUnavailable("down")


class ForgetfulBudget(MemoryBudget):
    """A budget in a store that fails to store a permit's end."""

    async def _lose(self) -> None:
        raise StoreUnavailable("down")

    def done(self, grant: PermitGrant) -> Rest:  # noqa: ARG002, the interface of a budget
        """Fails, later."""
        return self._lose()


class SlowBudget(MemoryBudget):
    """A budget in a slow store."""

    def __init__(self, limit: RateLimit, clock: HandClock) -> None:
        super().__init__(limit, clock)
        self.gate = asyncio.Event()

    async def take(self, wanted: Sequence[Consumer], permit_s: float) -> PermitsGranted:
        """Waits for the gate."""
        await self.gate.wait()
        return await super().take(wanted, permit_s)


async def fail(rate_limiter: RateLimiter, count: int, ending: Ending = Ending.FAILED) -> None:
    """Makes so many calls that fail."""
    for _ in range(count):
        permit = await taken(rate_limiter)
        permit.report(ending, "timeout")
        permit.done()


async def test_while_the_store_is_down_nobody_gets_a_permit(hand_clock: HandClock) -> None:
    """Nobody knows then what other processes have sent. Every caller gets the error, not only the first."""
    limit = RateLimit(2, 10.0)
    rate_limiter = RateLimiter(limit, hand_clock, timer=hand_clock.timer, budget=FailingBudget(limit, hand_clock))
    waiting = [rate_limiter.take_now(), rate_limiter.take(hand_clock.now_s + 60)]
    heard = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in heard] == [StoreUnavailable, StoreUnavailable]


async def test_a_lost_end_of_a_permit_hurts_no_caller(hand_clock: HandClock) -> None:
    """The permit comes back by itself, later, and its caller goes on."""
    limit = RateLimit(1, 10.0)
    rate_limiter = RateLimiter(limit, hand_clock, timer=hand_clock.timer, budget=ForgetfulBudget(limit, hand_clock))
    (await taken(rate_limiter)).done()
    await rate_limiter.close()
    assert await rate_limiter.take_now() is None


async def test_a_caller_that_goes_away_during_a_query_leaves_a_permit(hand_clock: HandClock) -> None:
    """A client that hung up must not cost a permit until its call would have ended."""
    limit = RateLimit(1, 10.0)
    budget = SlowBudget(limit, hand_clock)
    rate_limiter = RateLimiter(limit, hand_clock, timer=hand_clock.timer, budget=budget)
    waiting = asyncio.create_task(rate_limiter.take_now())
    await turns()
    waiting.cancel()
    budget.gate.set()
    await turns()
    assert (await taken(rate_limiter)).grant is not None


async def test_a_permit_has_a_last_moment_to_be_used(hand_clock: HandClock) -> None:
    """A process that slept with a permit may wake up when another process has that permit."""
    permit = await taken(make(hand_clock))
    assert permit.send_by_s == hand_clock.now_s + SEND_WITHIN_S


async def test_at_the_end_nobody_waits_any_more(hand_clock: HandClock) -> None:
    """A stop takes no longer than what is written down."""
    rate_limiter = make(hand_clock, calls=1)
    await taken(rate_limiter)
    waiting = asyncio.create_task(rate_limiter.take(hand_clock.now_s + 60))
    await turns()
    await rate_limiter.close()
    assert await waiting is None


async def test_no_more_wait_than_there_is_room_for(hand_clock: HandClock) -> None:
    """Each of them holds a request's memory."""
    rate_limiter = make(hand_clock, calls=1)
    await taken(rate_limiter)
    waiting = [asyncio.create_task(rate_limiter.take(hand_clock.now_s + 60)) for _ in range(WAITERS_MAX)]
    await turns()
    assert await rate_limiter.take(hand_clock.now_s + 60) is None
    await rate_limiter.close()
    assert set(await asyncio.gather(*waiting)) == {None}


async def test_how_it_stands(hand_clock: HandClock) -> None:
    """Operators see what is used of the budget, and whether anybody waits."""
    rate_limiter = make(hand_clock, calls=2)
    permit, _ = await taken(rate_limiter), await taken(rate_limiter)
    permit.done()
    waiting = asyncio.create_task(rate_limiter.take(hand_clock.now_s + 60))
    await turns()
    assert rate_limiter.snapshot() == BudgetSnapshot(limit_calls=2, used=2, waiting=1, is_open=False, blocked_s=0.0)
    await hand_clock.run(10.0)
    await waiting
    assert rate_limiter.snapshot() == BudgetSnapshot(limit_calls=2, used=2, waiting=0, is_open=False, blocked_s=0.0)


@pytest.mark.parametrize("limit", [None, RateLimit(50, 10.0)])
async def test_a_gateway_that_fails_is_left_alone(hand_clock: HandClock, limit: RateLimit | None) -> None:
    """With or without a limit: after a pause one trial, and when that is answered everybody."""
    rate_limiter = RateLimiter(limit, hand_clock, timer=hand_clock.timer)
    await fail(rate_limiter, ENDED_MIN)
    assert (await rate_limiter.take_now(), rate_limiter.snapshot().is_open) == (None, True)
    hand_clock.move(PAUSE_S)
    trial, second = [await rate_limiter.take_now(priority=Priority.READ) for _ in range(2)]
    assert trial is not None
    assert (trial.is_trial, second) == (True, None)
    trial.report(Ending.ANSWERED)
    trial.done()
    assert await rate_limiter.take_now() is not None


async def test_waiting_callers_are_refused_when_the_circuit_breaker_opens(hand_clock: HandClock) -> None:
    """There is nothing to wait for."""
    rate_limiter = make(hand_clock, calls=WITH_RESERVE)
    permits = [await taken(rate_limiter) for _ in range(ENDED_MIN)]
    waiting = asyncio.create_task(rate_limiter.take(hand_clock.now_s + 60))
    await turns()
    for permit in permits:
        permit.report(Ending.FAILED, "timeout")
    assert await waiting is None


async def test_a_call_with_a_permit_is_not_sent_when_the_circuit_breaker_opens(hand_clock: HandClock) -> None:
    """The sender checks last; a trial is sent."""
    rate_limiter = RateLimiter(None, hand_clock)
    early = await taken(rate_limiter)
    assert rate_limiter.may_go_out(early)
    await fail(rate_limiter, ENDED_MIN)
    hand_clock.move(PAUSE_S)
    trial = await rate_limiter.take_now(priority=Priority.READ)
    assert trial is not None
    assert (rate_limiter.may_go_out(early), rate_limiter.may_go_out(trial)) == (False, True)


async def test_a_trial_that_finds_no_permit_is_none(hand_clock: HandClock) -> None:
    """Another one may be it as soon as there is room."""
    rate_limiter = make(hand_clock, calls=WITH_RESERVE, window_s=60.0)
    await fail(rate_limiter, ENDED_MIN)
    hand_clock.move(PAUSE_S)
    assert await rate_limiter.take_now(priority=Priority.READ) is None
    assert rate_limiter.open_circuit(Priority.READ) is None


async def test_no_token_for_the_trial_is_a_trial_that_failed(hand_clock: HandClock) -> None:
    """Otherwise each request would ask for a token anew."""
    rate_limiter = RateLimiter(None, hand_clock)
    await fail(rate_limiter, ENDED_MIN)
    hand_clock.move(PAUSE_S)
    token = await rate_limiter.take_now(priority=Priority.TOKEN)
    assert token is not None
    token.report(Ending.FAILED, "timeout")
    token.done()
    assert rate_limiter.open_circuit(Priority.READ) is not None


async def test_when_the_gateway_says_too_many_nobody_calls_for_a_window(hand_clock: HandClock) -> None:
    """And longer each time that it doesn't help; those that were under way say nothing new."""
    rate_limiter = make(hand_clock, calls=10)
    pauses = []
    for _ in range(4):
        permits = [await taken(rate_limiter) for _ in range(2)]
        for permit in permits:
            permit.report(Ending.BLOCKED, "rate_limited")
            permit.release_unused()
        pauses.append(rate_limiter.snapshot().blocked_s)
        assert await rate_limiter.take_now() is None
        hand_clock.move(pauses[-1])
    assert pauses == [10.0, 20.0, 40.0, BLOCK_S_MAX]
    answered = await taken(rate_limiter)
    answered.report(Ending.ANSWERED)
    answered.release_unused()
    (await taken(rate_limiter)).report(Ending.BLOCKED, "rate_limited")
    assert rate_limiter.snapshot().blocked_s == 10.0


async def test_without_a_limit_there_is_nothing_to_block(hand_clock: HandClock) -> None:
    """An operator who turned the budget off calls a test double."""
    rate_limiter = RateLimiter(None, hand_clock)
    (await taken(rate_limiter)).report(Ending.BLOCKED, "rate_limited")
    assert await rate_limiter.take_now() is not None


async def test_what_we_repeat_by_ourselves_is_a_small_share(hand_clock: HandClock) -> None:
    """A gateway that loses every reply gets less than 1.1 times the calls."""
    rate_limiter = RateLimiter(None, hand_clock)
    calls = repeats = 0
    while calls < 1_000:
        permit = await taken(rate_limiter)
        permit.report(Ending.ANSWERED)
        calls += 1
        if rate_limiter.may_repeat():
            (await taken(rate_limiter)).report(Ending.ANSWERED)
            repeats += 1
    assert 0 < repeats < 0.1 * calls
