"""Many requests at once, mixed in every way that the event loop can mix them."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draws import examples
from tests.flows.world import CHARGE, Crash, Inline, Raising, World, asked, opened, outcome_of

from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import OPEN_STATES, Operation, State
from payrelay.errors import Refusal, StoreUnavailable
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.recover_after_crash import recover

pytestmark = pytest.mark.deep

TURNS_MAX = 12


class Customer(msgspec.Struct, frozen=True):
    """One request of a plan: its key, its order, and how long after the others it begins."""

    key: str | None
    order_id: str
    begins_after: int


customers = st.builds(
    Customer, st.sampled_from(["k-1", "k-2", None]), st.sampled_from(["A-1", "A-2"]), st.integers(0, 3 * TURNS_MAX)
)
troubles = st.tuples(st.sampled_from(["accept", "accepted", "record", "recorded"]), st.integers(1, 8))


async def ask(world: World, customer: Customer) -> int | None:
    """Makes the customer's request; gives the HTTP status of its answer."""
    for _ in range(customer.begins_after):
        await asyncio.sleep(0)
    call = msgspec.structs.replace(CHARGE, order_id=customer.order_id)
    try:
        return (await charge(world.relay, asked(world.relay, customer.key), call)).http_status
    except (Refusal, StoreUnavailable, Crash):
        return None


async def tend(world: World) -> None:
    """Recovers operations over and over, as if each one's time were over: the worst that a clock can do."""
    for _ in range(10):
        await asyncio.sleep(0)
        try:
            await recover(world.relay, is_sole_owner=True)
        except StoreUnavailable:
            continue


def turns(seed: int) -> Iterator[int]:
    """Gives a number of turns for every step."""
    random = Random(seed)  # noqa: S311, a mix and no secret
    while True:
        yield random.randrange(TURNS_MAX)


def says_done(row: Operation, order_id: str) -> bool:
    """True where a row says that its order was charged."""
    return row.state is State.SUCCEEDED and row.order_id == order_id


@given(
    plan=st.lists(customers, min_size=2, max_size=6),
    kinds=st.lists(st.sampled_from(OutcomeKind), max_size=6),
    failing=st.lists(troubles, max_size=3),
    seed=st.integers(0, 2**32),
    is_limited=st.booleans(),
)
@settings(max_examples=examples(150))
def test_however_they_mix_no_promise_is_broken(
    plan: list[Customer], kinds: list[OutcomeKind], failing: list[tuple[str, int]], seed: int, *, is_limited: bool
) -> None:
    """One effect for one key; one open operation for one order; no row that says what the ledger doesn't."""

    async def scenario(path: Path) -> None:
        world = World(await opened(path, Inline()), path)
        world.limit_to(RateLimit(2, 10.0) if is_limited else None)
        world.account.queue_s = 0.0
        world.account.script.extend(outcome_of(kind) for kind in kinds)
        world.steps.turns = turns(seed)
        for step, number in failing:
            world.steps.put(step, Raising(StoreUnavailable("down")), first=number)
        heard = await asyncio.gather(*(ask(world, customer) for customer in plan), tend(world))
        await world.relay.background.finish(5)
        await recover(world.relay, is_sole_owner=True)
        judge(world, plan, list(heard), await world.operations())
        await world.database.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(scenario(Path(directory) / "payrelay.db"))


def judge(world: World, plan: list[Customer], heard: list[int | None], rows: list[Operation]) -> None:
    """Compares the answers and the rows with the ledger."""
    moved = Counter(getattr(call, "order_id", "") for call in world.account.ledger)
    assert max(Counter(row.subject for row in rows if row.state in OPEN_STATES).values(), default=0) <= 1
    assert max(Counter(row.claim for row in rows if row.claim).values(), default=0) <= 1
    for order_id in ("A-1", "A-2"):
        succeeded = [row for row in rows if says_done(row, order_id)]
        open_rows = [row for row in rows if row.order_id == order_id and row.state in OPEN_STATES]
        assert len(succeeded) <= moved[order_id] <= len(succeeded) + len(open_rows)
    for customer, status in zip(plan, heard, strict=False):
        assert status != 200 or moved[customer.order_id]
