import asyncio
import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from tests.api.fakes import MovableClock

from payrelay.api.http.request_log import json_log
from payrelay.errors import StoreFault, StoreUnavailable
from payrelay.runtime.health.store_heartbeat import REUSED_S, StoreHeartbeat
from payrelay.store.heartbeats import Beat


class Store:
    """Takes heartbeats as the test says: fails, hangs, loses rows."""

    def __init__(self) -> None:
        self.beats = 0
        self.ended = 0
        self.compared = 0
        self.fault: StoreFault | None = None
        self.is_own_lost = False
        self.database_ms: int | None = None
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def beat(self, now_ms: int) -> Beat:
        """Takes one."""
        self.beats += 1
        await self.may_go_on.wait()
        if self.fault is not None:
            raise StoreUnavailable("no", fault=self.fault)
        return Beat(now_ms, self.database_ms, self.is_own_lost)

    async def end(self) -> None:
        """Counts the ends."""
        self.ended += 1

    async def compare(self) -> bool:
        """Counts the comparisons."""
        self.compared += 1
        return True


@pytest.fixture
async def store() -> Store:
    """Gives a store that takes every heartbeat."""
    return Store()


@pytest.fixture
def clock() -> MovableClock:
    """Gives a clock that the test moves."""
    return MovableClock()


@pytest.fixture
def stream() -> BytesIO:
    """Gives where the log goes."""
    return BytesIO()


@pytest.fixture
def heartbeat(store: Store, clock: MovableClock, stream: BytesIO) -> StoreHeartbeat:
    """Gives the heartbeat over that store; one that hangs is given up at once."""
    return StoreHeartbeat(store, clock, json_log(stream, clock), compare=store.compare, within_s=0.05)


@pytest.fixture
def events(stream: BytesIO) -> Callable[[], list[Any]]:
    """Gives the names of the lines of the log so far."""
    return lambda: [json.loads(line)["event"] for line in stream.getvalue().splitlines()]


async def test_many_who_ask_cost_one_write(heartbeat: StoreHeartbeat, store: Store, clock: MovableClock) -> None:
    """The health check is open to anybody: whoever calls it all day must not write all day."""
    answers = await asyncio.gather(*[heartbeat.health() for _ in range(50)])
    await heartbeat.health()
    assert (store.beats, {answer.fault for answer in answers}) == (1, {None})

    clock.at_s += REUSED_S
    await heartbeat.health()
    assert store.beats == 2


@pytest.mark.parametrize("fault", StoreFault)
async def test_the_cause_is_told_and_ends(
    heartbeat: StoreHeartbeat, store: Store, clock: MovableClock, events: Callable[[], list[Any]], fault: StoreFault
) -> None:
    """A full disk and a server that is gone need different hands; each change is one line of the log."""
    store.fault = fault
    for _ in range(2):
        clock.at_s += REUSED_S
        assert (await heartbeat.health()).fault is fault
    store.fault = None
    clock.at_s += REUSED_S

    assert (await heartbeat.health()).fault is None
    assert events() == ["store_not_writable", "store_writable_again"]


async def test_a_store_that_hangs_is_told_in_time_and_asked_once(
    heartbeat: StoreHeartbeat, store: Store, clock: MovableClock
) -> None:
    """A paused server answers nothing at all; heartbeats that pile up would be the first load when it comes back."""
    store.may_go_on.clear()
    for _ in range(3):
        assert (await heartbeat.health()).fault is StoreFault.TIMEOUT
        clock.at_s += REUSED_S
    assert store.beats == 1

    store.may_go_on.set()
    assert (await heartbeat.health()).fault is None


async def test_a_row_that_is_gone_has_the_database_compared(
    heartbeat: StoreHeartbeat, store: Store, events: Callable[[], list[Any]]
) -> None:
    """Where one row of this process is gone others may be, on which money rests."""
    store.is_own_lost = True
    await heartbeat.health()

    assert (heartbeat.rows_lost, store.compared, events()) == (1, 1, ["own_rows_gone"])


async def test_the_clocks_are_compared(heartbeat: StoreHeartbeat, store: Store, clock: MovableClock) -> None:
    """Two machines that disagree about the time misdate each other's rows."""
    store.database_ms = clock.now_ms() + 7_000
    await heartbeat.health()
    assert heartbeat.clock_difference_s == 7


async def test_the_first_heartbeat_is_at_the_start_and_the_row_goes_at_the_end(
    heartbeat: StoreHeartbeat, store: Store
) -> None:
    """A process that has stopped leaves nothing behind."""
    paused = asyncio.Event()

    async def pause(_: float) -> None:
        paused.set()
        await asyncio.get_running_loop().create_future()

    async with heartbeat.kept(pause):
        await paused.wait()
    assert (store.beats, store.ended) == (1, 1)
