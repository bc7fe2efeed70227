import asyncio
from contextlib import ExitStack

import msgspec
import pytest
from tests.flows.world import CHARGE, World, asked

from payrelay.core.payments.operation import Operation, State
from payrelay.flows.payments.charge import charge
from payrelay.runtime.held_responses import HELD_STATES, HeldResponses
from payrelay.runtime.hooks import Hooks


@pytest.fixture
async def operation(world: World) -> Operation:
    """Gives an operation."""
    await charge(world.relay, asked(world.relay), CHARGE)
    return await world.operation()


@pytest.mark.parametrize("state", State)
def test_a_change_ends_the_wait_where_nothing_more_is_awaited(operation: Operation, state: State) -> None:
    """No response waits for a change to another open state; an operator's decision may take days."""
    held_responses = HeldResponses()
    with held_responses.slot(operation.id) as held:
        held_responses.notify(msgspec.structs.replace(operation, state=state))
        assert held is not None
        assert held.is_over is (state not in HELD_STATES)


def test_another_operations_end_is_not_ours(operation: Operation) -> None:
    """Everybody waits for one operation only."""
    held_responses = HeldResponses()
    with held_responses.slot("op_other") as held:
        held_responses.notify(operation)
        assert held is not None
        assert not held.is_over


def test_there_is_room_for_so_many() -> None:
    """Beyond them nobody is held; who leaves makes room."""
    held_responses = HeldResponses(limit=2)
    with ExitStack() as stack:
        assert stack.enter_context(held_responses.slot("op_1")) is stack.enter_context(held_responses.slot("op_1"))
        with held_responses.slot("op_2") as refused:
            assert (refused, held_responses.count) == (None, 2)
    with held_responses.slot("op_2") as held:
        assert held is not None


def test_nothing_is_left_of_a_vigil(operation: Operation) -> None:
    """Memory holds those who wait, and nobody who has waited; a new wait for the same operation begins afresh."""
    held_responses = HeldResponses()
    with held_responses.slot(operation.id) as first:
        held_responses.notify(operation)
    with held_responses.slot(operation.id) as second:
        assert first is not None
        assert second is not None
        assert (first.is_over, second.is_over) == (True, False)


def test_a_stop_ends_all_and_begins_none() -> None:
    """A program that is about to end must not hold a client back."""
    held_responses = HeldResponses()
    with held_responses.slot("op_1") as held:
        held_responses.close()
        assert held is not None
        assert held.is_over
    with held_responses.slot("op_1") as refused:
        assert refused is None


async def test_one_of_the_waiting_requests_reads_the_store() -> None:
    """A thousand who wait for one charge read its row once a second, not a thousand times."""
    held_responses = HeldResponses(poll_every_s=3600)
    with held_responses.slot("op_1") as held:
        assert held is not None
        assert [held.takes_turn() for _ in range(3)] == [True, False, False]


async def test_a_turn_comes_again() -> None:
    """The next read sees a change by another process."""
    with HeldResponses(poll_every_s=0).slot("op_1") as held:
        assert held is not None
        assert held.takes_turn()
        assert held.takes_turn()


async def test_the_end_cuts_a_pause_short() -> None:
    """A waiting request sees the end at once, not at the next read."""
    with HeldResponses(poll_every_s=3600).slot("op_1") as held:
        assert held is not None
        asyncio.get_running_loop().call_soon(held.end)
        await held.pause()
        assert held.is_over


def test_the_metrics_get_each_change_too(operation: Operation) -> None:
    """The metrics go on counting where waiters listen."""
    seen: list[Operation] = []
    held_responses = HeldResponses()
    hooks = Hooks(operation_changed=seen.append).also_on_change(held_responses.notify)
    with held_responses.slot(operation.id) as held:
        hooks.operation_changed(operation)
        assert held is not None
        assert held.is_over
    assert seen == [operation]
