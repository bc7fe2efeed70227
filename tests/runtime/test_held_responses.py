import asyncio
from contextlib import ExitStack

import msgspec
import pytest
from tests.flows.world import CHARGE, World, asked

from payrelay.core.payments.operation import Operation, State
from payrelay.flows.payments.charge import charge
from payrelay.runtime.held_responses import AWAITED, Waiters
from payrelay.runtime.hooks import Watch


@pytest.fixture
async def operation(world: World) -> Operation:
    """Gives an operation."""
    await charge(world.relay, asked(), CHARGE)
    return await world.operation()


@pytest.mark.parametrize("state", State)
def test_what_is_told_ends_the_vigil_where_nothing_more_is_awaited(operation: Operation, state: State) -> None:
    """A change to yet another open state is no news to wait for; a person's decision may take days."""
    waiters = Waiters()
    with waiters.place(operation.id) as vigil:
        waiters.tell(msgspec.structs.replace(operation, state=state))
        assert vigil is not None
        assert vigil.is_over is (state not in AWAITED)


def test_another_operations_end_is_not_ours(operation: Operation) -> None:
    """Everybody waits for one operation only."""
    waiters = Waiters()
    with waiters.place("op_other") as vigil:
        waiters.tell(operation)
        assert vigil is not None
        assert not vigil.is_over


def test_there_is_room_for_so_many() -> None:
    """Beyond them nobody is held; who leaves makes room."""
    waiters = Waiters(limit=2)
    with ExitStack() as stack:
        assert stack.enter_context(waiters.place("op_1")) is stack.enter_context(waiters.place("op_1"))
        with waiters.place("op_2") as refused:
            assert (refused, waiters.count) == (None, 2)
    with waiters.place("op_2") as vigil:
        assert vigil is not None


def test_nothing_is_left_of_a_vigil(operation: Operation) -> None:
    """Memory holds those who wait, and nobody who has waited; a new wait for the same operation begins afresh."""
    waiters = Waiters()
    with waiters.place(operation.id) as first:
        waiters.tell(operation)
    with waiters.place(operation.id) as second:
        assert first is not None
        assert second is not None
        assert (first.is_over, second.is_over) == (True, False)


def test_a_stop_ends_all_and_begins_none() -> None:
    """A program that is about to end must not hold a client back."""
    waiters = Waiters()
    with waiters.place("op_1") as vigil:
        waiters.close()
        assert vigil is not None
        assert vigil.is_over
    with waiters.place("op_1") as refused:
        assert refused is None


async def test_of_those_who_wait_one_looks_at_a_time() -> None:
    """A thousand who wait for one charge read its row once a second, not a thousand times."""
    waiters = Waiters(look_every_s=3600)
    with waiters.place("op_1") as vigil:
        assert vigil is not None
        assert [vigil.takes_turn() for _ in range(3)] == [True, False, False]


async def test_a_turn_comes_again() -> None:
    """A change by another process is seen at the next look."""
    with Waiters(look_every_s=0).place("op_1") as vigil:
        assert vigil is not None
        assert vigil.takes_turn()
        assert vigil.takes_turn()


async def test_the_end_cuts_a_pause_short() -> None:
    """Who waits hears of the end at once, not at the next look."""
    with Waiters(look_every_s=3600).place("op_1") as vigil:
        assert vigil is not None
        asyncio.get_running_loop().call_soon(vigil.end)
        await vigil.pause()
        assert vigil.is_over


def test_who_counts_is_told_too(operation: Operation) -> None:
    """The metrics go on counting where waiters listen."""
    seen: list[Operation] = []
    waiters = Waiters()
    watch = waiters.told_by(Watch(operation_changed=seen.append))
    with waiters.place(operation.id) as vigil:
        watch.operation_changed(operation)
        assert vigil is not None
        assert vigil.is_over
    assert seen == [operation]
