"""The three promises, with the process dying or the store failing at every step of a charge.

The ledger is what really happened at the gateway; the store is all that is left after a crash.
"""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draws import examples
from tests.flows.world import CHARGE, Crash, Raising, World, asked, opened, outcome_of

from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import State
from payrelay.errors import Refusal, StoreUnavailable
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.recover_after_crash import recover

pytestmark = pytest.mark.deep

DIRECT = ["find", "accept", "accepted", "effect", "executed", "record", "recorded"]
WAITING = ["find", "accept", "accepted", "effect", "executed", "record", "recorded"]
RETRIED = ["find", "accept", "accepted", "effect", "record", "recorded", "executed", "record", "recorded"]
WAYS = {"direct": DIRECT, "waiting": WAITING, "resent": RETRIED}
STORING = {"find", "accept", "accepted", "record", "recorded"}
EVENT_OF_DECISION = [OutcomeKind.SUCCEEDED, OutcomeKind.UNKNOWN, OutcomeKind.DECLINED, OutcomeKind.NOT_SENT]
UNTOUCHED = {State.NOT_SENT, State.DECLINED, State.REFUSED, State.FAILED}


CRASHES = [
    (way, step, steps[: index + 1].count(step)) for way, steps in WAYS.items() for index, step in enumerate(steps)
]
"""Every step of every way: the way, the step, and which time it is that the way comes there."""


async def attempt(world: World, way: str, kind: OutcomeKind) -> int | None:
    """Makes a charge on its way, as far as it comes; gives the HTTP status of its answer, if there is one."""
    world.limit_to(RateLimit(1, 10.0) if way == "waiting" else None)
    world.account.script.append(outcome_of(kind))
    world.account.has_dead_token = way == "resent"
    permit = await world.account.rate_limiter.take_now() if way == "waiting" else None
    task = asyncio.ensure_future(charge(world.relay, asked(world.relay), CHARGE))
    waiting = asyncio.ensure_future(world.account.timer.is_set.wait())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if permit is not None:
        permit.release_unused()
    try:
        return (await task).http_status
    except (Crash, Refusal, StoreUnavailable):
        return None


async def restart(world: World) -> None:
    """Dies, starts again and recovers operations, as a server does before it answers anybody."""
    await world.relay.background.finish(0)
    await world.reopen()
    await recover(world.relay, is_sole_owner=True)


async def promises_are_kept(world: World, heard: int | None) -> None:
    """Compares the rows, and the client's answer, with the ledger."""
    has_moved = bool(world.account.ledger)
    for row in await world.operations():
        assert row.state not in {State.ACCEPTED, State.SENDING}, "an intent is lost"
        assert row.state not in UNTOUCHED if has_moved else row.state is not State.SUCCEEDED, "a false answer"
    assert has_moved or heard != 200, "a false answer"
    assert not has_moved or await world.operations(), "sent without an intent"
    assert heard in {None, 200, 202} or not has_moved, "a false answer"


async def repeats_do_no_harm(world: World) -> None:
    """The client repeats, with the same key and then with another: the money moves at most once."""
    ledger_before = list(world.account.ledger)
    try:
        heard = (await charge(world.relay, asked(world.relay), CHARGE)).http_status
    except Refusal:
        heard = 409
    assert len(world.account.ledger) <= 1, "charged twice"
    assert heard != 200 or world.account.ledger == [CHARGE]
    if ledger_before and (await world.operation()).state is not State.SUCCEEDED:
        with pytest.raises(Refusal, match="is not final yet"):
            await charge(world.relay, asked(world.relay, "k-2"), CHARGE)


@pytest.mark.parametrize("way", WAYS)
async def test_these_are_all_the_steps(world: World, way: str) -> None:
    """A step that is not listed would be one at which nothing was tried."""
    assert await attempt(world, way, OutcomeKind.SUCCEEDED) == 200
    assert world.steps.passed == WAYS[way]
    assert world.states_when_sent == [State.SENDING]


@pytest.mark.parametrize("kind", EVENT_OF_DECISION)
@pytest.mark.parametrize(("way", "step", "time"), CRASHES)
async def test_the_process_may_die_at_any_step(world: World, way: str, step: str, time: int, kind: OutcomeKind) -> None:
    """Nothing is sent without a row in ``sending``; no final state is false; nobody pays twice."""
    world.steps.put(step, Raising(Crash()), first=time)
    assert await attempt(world, way, kind) is None
    await restart(world)
    await promises_are_kept(world, None)
    assert set(world.states_when_sent) <= {State.SENDING}
    await repeats_do_no_harm(world)


@pytest.mark.parametrize("kind", EVENT_OF_DECISION)
@pytest.mark.parametrize(("way", "step", "time"), [crash for crash in CRASHES if crash[1] in STORING])
async def test_the_store_may_fail_at_any_step(world: World, way: str, step: str, time: int, kind: OutcomeKind) -> None:
    """Before its commit or, as far as anybody can tell, after it: what the client hears is true, and it ends well."""
    world.steps.put(step, Raising(StoreUnavailable("down")), first=time)
    heard = await attempt(world, way, kind)
    await world.relay.background.finish(5)
    await restart(world)
    await promises_are_kept(world, heard)
    await repeats_do_no_harm(world)


faults = st.tuples(
    st.sampled_from(sorted({*DIRECT, "get"})), st.integers(1, 3), st.sampled_from([Crash(), StoreUnavailable("down")])
)


@given(plan=st.lists(faults, max_size=4), way=st.sampled_from(sorted(WAYS)), kind=st.sampled_from(OutcomeKind))
@settings(max_examples=examples(150))
def test_any_faults_together_break_no_promise(
    plan: list[tuple[str, int, BaseException]], way: str, kind: OutcomeKind
) -> None:
    """Troubles seldom come alone: a store that fails twice, and a crash while the outcome is stored later."""

    async def scenario(path: Path) -> None:
        world = World(await opened(path), path)
        for step, time, error in plan:
            is_possible = step in STORING or isinstance(error, Crash)
            world.steps.put(step, Raising(error if is_possible else Crash()), first=time)
        heard = await attempt(world, way, kind)
        await world.relay.background.finish(5)
        await restart(world)
        await promises_are_kept(world, heard)
        await repeats_do_no_harm(world)
        await world.database.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(scenario(Path(directory) / "payrelay.db"))
