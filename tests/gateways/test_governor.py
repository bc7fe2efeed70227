import asyncio
import heapq
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payrelay.clock import Clock
from payrelay.gateways.governor import READ_PRIORITY, Governor, Limit, Place


class HandClock(Clock):
    """Stands still until it is moved; whatever was to ring by then rings, in order."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self._alarms: list[tuple[float, int, HandAlarm]] = []

    def now_ms(self) -> int:
        """Gives the same time as ``boot_s``, in milliseconds."""
        return int(self.now_s * 1_000)

    def boot_s(self) -> float:
        """Gives the time that it was moved to."""
        return self.now_s

    def timer(self, delay_s: float, ring: Callable[[], None]) -> "HandAlarm":
        """Rings when the clock is moved that far."""
        alarm = HandAlarm(ring)
        heapq.heappush(self._alarms, (self.now_s + delay_s, id(alarm), alarm))
        return alarm

    def move(self, by_s: float) -> None:
        """Moves on, stopping at each alarm on the way."""
        until_s = self.now_s + by_s
        while self._alarms and self._alarms[0][0] <= until_s:
            self.now_s, _, alarm = heapq.heappop(self._alarms)
            alarm.ring()
        self.now_s = until_s


class HandAlarm:
    """An alarm of a clock that is moved by hand."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self.ring = ring

    def cancel(self) -> None:
        """Makes it silent."""
        self.ring = lambda: None


@pytest.fixture
def hand_clock() -> HandClock:
    """A clock that stands still until the test moves it."""
    return HandClock()


class StillClock(Clock):
    """A clock that a property moves by assignment."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def boot_s(self) -> float:
        """Gives the time that was assigned."""
        return self.now_s


def make(clock: HandClock, calls: int = 2, window_s: float = 10.0) -> Governor:
    """Makes a governor whose timers ring when the clock is moved."""
    return Governor(Limit(calls, window_s), clock, timer=clock.timer)


def taken(governor: Governor) -> Place:
    """Takes a place that must be there."""
    place = governor.take_now()
    assert place is not None
    return place


@pytest.mark.parametrize(
    ("text", "limit"),
    [("20/10s", Limit(20, 10.0)), (" 2/1s ", Limit(2, 1.0)), ("off", None), ("OFF", None)],
)
def test_limit_is_read_from_text(text: str, limit: Limit | None) -> None:
    """The setting says calls and seconds; ``off`` is for test doubles."""
    assert Limit.parse(text) == limit


@pytest.mark.parametrize("text", ["", "20", "20/10", "20/10m", "0/10s", "20/0s", "-2/10s", "2.5/10s", "٢/1s"])
def test_limit_that_makes_no_sense_is_refused(text: str) -> None:
    """A mistyped limit ends the start; with one call an effect could never get its token."""
    with pytest.raises(ValueError, match="must"):
        Limit.parse(text)


def test_the_limit_can_be_asked_for(hand_clock: HandClock) -> None:
    """It is shown to operators beside what is used of it."""
    assert make(hand_clock, calls=3).limit == Limit(3, 10.0)


def test_no_more_places_than_the_limit(hand_clock: HandClock) -> None:
    """Places that are held count as calls: the gateway may see them at any moment."""
    governor = make(hand_clock)
    assert [governor.take_now() is not None for _ in range(3)] == [True, True, False]


def test_a_used_place_rests_for_a_window_after_the_reply(hand_clock: HandClock) -> None:
    """The gateway may have counted the call as late as the reply, so that is when the window begins."""
    governor = make(hand_clock, calls=2)
    place, _ = taken(governor), taken(governor)
    hand_clock.move(7)
    place.done()
    hand_clock.move(9.9)
    assert governor.take_now() is None
    hand_clock.move(0.1)
    assert governor.take_now() is not None


def test_an_unused_place_is_free_at_once(hand_clock: HandClock) -> None:
    """Nothing was sent, so the gateway has nothing to count."""
    governor = make(hand_clock)
    place, _ = taken(governor), taken(governor)
    place.release_unused()
    assert governor.take_now() is not None


def test_a_place_is_ended_once(hand_clock: HandClock) -> None:
    """Ending it twice must not make two places of one."""
    governor = make(hand_clock)
    place, _ = taken(governor), taken(governor)
    place.done()
    place.release_unused()
    place.done()
    assert governor.take_now() is None


def test_without_a_limit_there_is_always_room(hand_clock: HandClock) -> None:
    """``off`` is meant for a test double that counts nothing."""
    governor = Governor(None, hand_clock)
    places = [taken(governor) for _ in range(100)]
    for place in places:
        place.done()
    assert governor.has_room()


async def test_a_waiter_is_woken_when_the_window_is_over(hand_clock: HandClock) -> None:
    """Nobody polls: the governor's timer brings the place."""
    governor = make(hand_clock)
    for _ in range(2):
        taken(governor).done()
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    hand_clock.move(10)
    assert await waiting is not None


async def test_a_waiter_is_served_when_a_place_comes_back_unused(hand_clock: HandClock) -> None:
    """A call that never left makes room for the next one in line."""
    governor = make(hand_clock)
    place, _ = taken(governor), taken(governor)
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    place.release_unused()
    assert await waiting is not None


async def test_a_waiter_gives_up_at_its_time(hand_clock: HandClock) -> None:
    """Who waits for a place has somebody waiting for an answer."""
    governor = make(hand_clock)
    taken(governor), taken(governor)
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 5))
    await asyncio.sleep(0)
    hand_clock.move(5)
    assert await waiting is None


async def test_no_place_is_waited_for_when_the_time_is_over(hand_clock: HandClock) -> None:
    """A deadline in the past is answered at once."""
    governor = make(hand_clock)
    taken(governor), taken(governor)
    assert await governor.take(hand_clock.now_s) is None


async def test_effects_come_before_reads(hand_clock: HandClock) -> None:
    """A customer who pays is worth more than a list; within one kind the first come is the first served."""
    governor = make(hand_clock)
    held = [taken(governor), taken(governor)]
    order: list[str] = []

    async def wait(name: str, priority: int) -> None:
        place = await governor.take(hand_clock.now_s + 60, priority=priority)
        order.append(name)
        assert place is not None
        place.release_unused()

    names = [("read", READ_PRIORITY), ("charge", 0), ("capture", 0)]
    tasks = [asyncio.create_task(wait(*each)) for each in names]
    await asyncio.sleep(0)
    held[0].release_unused()
    await asyncio.gather(*tasks)
    assert order == ["charge", "capture", "read"]


async def test_nobody_overtakes_a_waiter(hand_clock: HandClock) -> None:
    """A newcomer gets no place while somebody stands in line for it."""
    governor = make(hand_clock)
    held = [taken(governor), taken(governor)]
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    held[0].release_unused()
    assert governor.take_now() is None
    assert await waiting is not None


async def test_a_cancelled_waiter_leaves_its_place_to_others(hand_clock: HandClock) -> None:
    """A place given in the moment of the cancellation must not be lost for good."""
    governor = make(hand_clock)
    held = [taken(governor), taken(governor)]
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    held[0].release_unused()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert governor.take_now() is not None


async def test_a_cancelled_waiter_no_longer_stands_in_line(hand_clock: HandClock) -> None:
    """Who went away must not hold up those behind."""
    governor = make(hand_clock)
    held = [taken(governor), taken(governor)]
    waiting = asyncio.create_task(governor.take(hand_clock.now_s + 60))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    held[0].release_unused()
    assert governor.take_now() is not None


@settings(deadline=None)
@given(
    calls=st.integers(2, 4),
    steps=st.lists(st.tuples(st.floats(0, 12), st.floats(0, 15), st.floats(0, 1)), min_size=1, max_size=40),
)
def test_the_gateway_never_sees_one_too_many(calls: int, steps: list[tuple[float, float, float]]) -> None:
    """Wherever between grant and reply the gateway counts each call, no window of its clock holds more than the limit.

    The calls are begun one after the other at random times, last at random, and arrive at a random share of that.
    """
    clock = StillClock()
    governor = Governor(Limit(calls, 10.0), clock)
    open_calls: list[tuple[float, Place]] = []
    arrivals: list[float] = []
    for pause_s, lasts_s, share in steps:
        until_s = clock.now_s + pause_s
        for end_s, place in sorted((call for call in open_calls if call[0] <= until_s), key=lambda call: call[0]):
            clock.now_s = end_s
            place.done()
        open_calls = [call for call in open_calls if call[0] > until_s]
        clock.now_s = until_s
        place_now = governor.take_now()
        if place_now is not None:
            arrivals.append(until_s + lasts_s * share)
            open_calls.append((until_s + lasts_s, place_now))
    arrivals.sort()
    # A hair less than the window: two calls exactly a window apart are in different windows.
    assert all(later - first > 10.0 - 1e-6 for first, later in zip(arrivals, arrivals[calls:], strict=False))
