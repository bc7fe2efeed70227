import pytest
from tests.flows.world import World, asked, outcome_of

from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import State
from payrelay.flows.operators.review import Group, ReviewFilter, list_for_operator, study
from payrelay.flows.payments.charge import charge

OUTCOMES = (
    OutcomeKind.UNKNOWN,
    OutcomeKind.SUCCEEDED,
    OutcomeKind.DIFFERED,
    OutcomeKind.PENDING,
    OutcomeKind.UNKNOWN,
    OutcomeKind.DECLINED,
)


@pytest.fixture
async def world_with_operations(world: World) -> World:
    """Gives a world with orders A-0 to A-5, one of each of the outcomes above."""
    for number, kind in enumerate(OUTCOMES):
        world.account.script.append(outcome_of(kind))
        await charge(world.relay, asked(world.relay, f"k-{number}"), world.charge_of(number))
    return world


def orders(groups: list[Group]) -> dict[str | None, list[str | None]]:
    """Gives the order ids of each group."""
    return {group.state: [entry.operation.order_id for entry in group.entries] for group in groups}


async def test_operations_that_need_an_operator_come_first_and_oldest_first(world_with_operations: World) -> None:
    """The list is worked off from its top."""
    groups = await list_for_operator(world_with_operations.relay, ReviewFilter())

    assert list(orders(groups).items()) == [
        (State.NEEDS_ATTENTION, ["A-2"]),
        (State.UNKNOWN, ["A-0", "A-4"]),
        (State.PENDING, ["A-3"]),
    ]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ReviewFilter(state=State.UNKNOWN), {State.UNKNOWN: ["A-0", "A-4"]}),
        (ReviewFilter(state=State.SUCCEEDED), {State.SUCCEEDED: ["A-1"]}),
        (ReviewFilter(state=State.SUCCEEDED, is_all=True), {State.SUCCEEDED: ["A-1"]}),
        (ReviewFilter(order_id="A-4"), {State.UNKNOWN: ["A-4"]}),
        (ReviewFilter(order_id="A-5"), {}),
        (ReviewFilter(order_id="A-5", is_all=True), {None: ["A-5"]}),
        (ReviewFilter(account="second", is_all=True), {}),
        (ReviewFilter(account="gateway", state=State.PENDING), {State.PENDING: ["A-3"]}),
    ],
)
async def test_only_what_passes_the_filter_is_listed(
    world_with_operations: World, wanted: ReviewFilter, found: dict[str | None, list[str]]
) -> None:
    """By state, account or order, each with the others."""
    assert orders(await list_for_operator(world_with_operations.relay, wanted)) == found


async def test_all_are_the_open_ones_and_the_newest_others(world_with_operations: World) -> None:
    """There may be millions of final operations."""
    groups = await list_for_operator(world_with_operations.relay, ReviewFilter(is_all=True, limit=1))

    assert orders(groups)[None] == ["A-5"]
    assert {group.state: group.has_more for group in groups} == {
        State.NEEDS_ATTENTION: False,
        State.UNKNOWN: True,
        State.PENDING: False,
        None: True,
    }
    assert orders(await list_for_operator(world_with_operations.relay, ReviewFilter(is_all=True)))[None] == [
        "A-1",
        "A-5",
    ]


async def test_each_entry_says_why(world_with_operations: World) -> None:
    """A list of states would send the reader to each operation in turn."""
    [group] = await list_for_operator(world_with_operations.relay, ReviewFilter(state=State.PENDING))

    assert group.entries[0].why == "The gateway answered that it is pending"


async def test_a_study_holds_all_that_is_known(world_with_operations: World) -> None:
    """The study has the call, the evidence, and the answer to the client."""
    world = world_with_operations
    declined = await world.operation()
    studied = await study(world.relay, declined.id)

    assert studied is not None
    assert (studied.operation, studied.call) == (declined, world.charge_of(5))
    assert [entry.state for entry in studied.history] == [State.SENDING, State.DECLINED]
    assert studied.answer == await world.journal.answer_of(declined.id)
    assert await study(world.relay, "op_1") is None


async def test_many_open_operations_are_read_page_by_page(world: World) -> None:
    """One order's open operation is found behind hundreds of others."""
    for number in range(205):
        world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
        await charge(world.relay, asked(world.relay, f"k-{number}"), world.charge_of(number))

    assert orders(await list_for_operator(world.relay, ReviewFilter(order_id="A-203"))) == {State.UNKNOWN: ["A-203"]}
