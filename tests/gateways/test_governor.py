import asyncio

import pytest
from tests.gateways.hand_clock import HandClock

from payrelay.gateways.governor import Governor, Limit, Place, Priority


@pytest.fixture
def hand_clock() -> HandClock:
    """A clock that stands still until the test moves it."""
    return HandClock()


def make(clock: HandClock, calls: int = 2, window_s: float = 10.0) -> Governor:
    """Makes a governor whose timers ring when the clock is moved."""
    return Governor(Limit(calls, window_s), clock, timer=clock.timer)


async def taken(governor: Governor) -> Place:
    """Takes a place that must be there."""
    place = await governor.take_now()
    assert place is not None
    return place


def test_the_limit_can_be_asked_for(hand_clock: HandClock) -> None:
    """It is shown to operators beside what is used of it."""
    assert make(hand_clock, calls=3).limit == Limit(3, 10.0)


async def test_no_more_places_than_the_limit(hand_clock: HandClock) -> None:
    """Places that are held count as calls: the gateway may see them at any moment."""
    governor = make(hand_clock)
    assert [await governor.take_now() is not None for _ in range(3)] == [True, True, False]


async def test_a_used_place_rests_for_a_window_after_the_reply(hand_clock: HandClock) -> None:
    """The gateway may have counted the call as late as the reply, so that is when the window begins."""
    governor = make(hand_clock, calls=2)
    place, _ = await taken(governor), await taken(governor)
    hand_clock.move(7)
    place.done()
    hand_clock.move(9.9)
    assert await governor.take_now() is None
    hand_clock.move(0.1)
    assert await governor.take_now() is not None


async def test_an_unused_place_is_free_at_once(hand_clock: HandClock) -> None:
    """Nothing was sent, so the gateway has nothing to count."""
    governor = make(hand_clock)
    place, _ = await taken(governor), await taken(governor)
    place.release_unused()
    assert await governor.take_now() is not None


async def test_a_place_is_ended_once(hand_clock: HandClock) -> None:
    """Ending it twice must not make two places of one."""
    governor = make(hand_clock)
    place, _ = await taken(governor), await taken(governor)
    place.done()
    place.release_unused()
    place.done()
    assert await governor.take_now() is None


async def test_without_a_limit_there_is_always_room(hand_clock: HandClock) -> None:
    """``off`` is meant for a test double that counts nothing."""
    governor = Governor(None, hand_clock)
    places = [await taken(governor) for _ in range(100)]
    for place in places:
        place.done()
    assert governor.snapshot().used == 0


async def test_a_waiter_is_woken_when_the_window_is_over(hand_clock: HandClock) -> None:
    """Nobody polls: the governor's timer brings the place."""
    governor = make(hand_clock)
    for _ in range(2):
        (await taken(governor)).done()
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    hand_clock.move(10)
    assert await waiting is not None


async def test_a_waiter_is_served_when_a_place_comes_back_unused(hand_clock: HandClock) -> None:
    """A call that never left makes room for the next one in line."""
    governor = make(hand_clock)
    place, _ = await taken(governor), await taken(governor)
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    place.release_unused()
    assert await waiting is not None


async def test_a_waiter_gives_up_at_its_time(hand_clock: HandClock) -> None:
    """Who waits for a place has somebody waiting for an answer."""
    governor = make(hand_clock)
    await taken(governor), await taken(governor)
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 5))
    await asyncio.sleep(0)
    hand_clock.move(5)
    assert await waiting is None


async def test_no_place_is_waited_for_when_the_time_is_over(hand_clock: HandClock) -> None:
    """A deadline in the past is answered at once."""
    governor = make(hand_clock)
    await taken(governor), await taken(governor)
    assert await governor.take(hand_clock.now_s) is None


async def test_effects_come_before_reads(hand_clock: HandClock) -> None:
    """A customer who pays is worth more than a list; within one kind the first come is the first served."""
    governor = make(hand_clock)
    held = [await taken(governor), await taken(governor)]
    order: list[str] = []

    async def wait(name: str, priority: Priority) -> None:
        place = await governor.take(hand_clock.now_s + 60, priority=priority)
        order.append(name)
        assert place is not None
        place.release_unused()

    names = [("read", Priority.READ), ("charge", Priority.CHARGE), ("capture", Priority.CHARGE)]
    tasks = [asyncio.create_task(wait(*each)) for each in names]
    await asyncio.sleep(0)
    held[0].release_unused()
    await asyncio.gather(*tasks)
    assert order == ["charge", "capture", "read"]


async def test_nobody_overtakes_a_waiter(hand_clock: HandClock) -> None:
    """A newcomer gets no place while somebody stands in line for it."""
    governor = make(hand_clock)
    held = [await taken(governor), await taken(governor)]
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    held[0].release_unused()
    assert await governor.take_now() is None
    assert await waiting is not None


async def test_a_cancelled_waiter_leaves_its_place_to_others(hand_clock: HandClock) -> None:
    """A place given in the moment of the cancellation must not be lost for good."""
    governor = make(hand_clock)
    held = [await taken(governor), await taken(governor)]
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    held[0].release_unused()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await governor.take_now() is not None


async def test_a_cancelled_waiter_no_longer_stands_in_line(hand_clock: HandClock) -> None:
    """Who went away must not hold up those behind."""
    governor = make(hand_clock)
    held = [await taken(governor), await taken(governor)]
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    held[0].release_unused()
    assert await governor.take_now() is not None
