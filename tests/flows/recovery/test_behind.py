"""While the database lacks commits, nothing takes effect, and nothing is concluded from what is left."""

import asyncio
import json
from typing import Final

import pytest
from tests.flows.hosted import data_of, hosting, new, opened, secret_of, seen
from tests.flows.operators.test_alert import Scene, scene
from tests.flows.resolution.test_resolve import payment_of
from tests.flows.world import CHARGE, World, asked, outcome_of

from payrelay.core.answers import REPLAYED
from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.checkouts.shown import Shown
from payrelay.core.operators.held_decisions import HeldDecision
from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.operation import State
from payrelay.core.payments.payment import PaymentsSeen
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import Code, Refusal, UndecidedError
from payrelay.flows.alerts.alert import tell_behind
from payrelay.flows.checkouts.finish_checkout import end_overdue, inquire
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.checkouts.visit_checkout import visit_checkout
from payrelay.flows.notifications.work_inbox import has_room
from payrelay.flows.operators.decidable import Decision
from payrelay.flows.operators.decide import decide
from payrelay.flows.operators.held.decide_held import decide_held
from payrelay.flows.payments.charge import charge
from payrelay.flows.resolution.resolve import resolve_due, resolve_one
from payrelay.runtime.database.lost_commits import BEHIND_SENTENCE
from payrelay.worker import JOBS, Job, working

__all__ = ["scene"]
REASON: Final = "it lacks what a process was told of: operation op_1 in version 2"


def fall_behind(world: World) -> None:
    """Lets the process find that the database lacks something."""
    world.relay.database.lost_commits.fall_behind(1, REASON)


async def test_a_new_charge_is_refused_and_a_known_one_is_told_as_before(world: World) -> None:
    """The repeat of a charge that the database lost looks just like a new one."""
    first = await charge(world.relay, asked(world.relay), CHARGE)
    fall_behind(world)
    repeat = await charge(world.relay, asked(world.relay), CHARGE)
    with pytest.raises(Refusal, match=BEHIND_SENTENCE) as refused:
        await charge(world.relay, asked(world.relay, "k-2"), world.charge_of(2))

    assert (repeat.body, REPLAYED in repeat.headers) == (first.body, True)
    assert (refused.value.code, len(world.account.ledger)) == (Code.UNAVAILABLE, 1)
    assert len(await world.operations()) == 1


async def test_no_checkout_is_opened_and_no_page_leads_on(world: World) -> None:
    """The order may have been paid in the time that was lost."""
    relay = hosting(world)
    checkout = await opened(relay, key="k-1")
    secret = await secret_of(relay, checkout)
    fall_behind(world)
    with pytest.raises(Refusal, match=BEHIND_SENTENCE):
        await open_checkout(relay, asked(relay, "k-2"), new(order_id="A-2"))
    repeat = data_of(await open_checkout(relay, asked(relay, "k-1"), new()))
    visit = await visit_checkout(relay, "gateway", checkout.id, secret)

    assert (repeat["id"], repeat["form"]) == (checkout.id, None)
    assert visit is not None
    assert (visit.shown, visit.link_to_gateway) == (Shown.PAUSED, None)


@pytest.mark.parametrize("kind", [CheckoutKind.PAYMENT, CheckoutKind.AUTHORIZATION])
async def test_no_checkout_gets_an_outcome(world: World, kind: CheckoutKind) -> None:
    """A payment that the gateway shows may belong to an operation that was lost."""
    relay = hosting(world)
    checkout = await opened(relay, new(kind=kind))
    world.account.observations.append(seen())
    fall_behind(world)
    world.clock.passed_ms += DAY_MS

    assert await inquire(relay, checkout) == checkout
    assert (await end_overdue(relay, checkout)).state is CheckoutState.OPEN


async def test_nothing_is_resolved(world: World) -> None:
    """The payment of a lost charge would otherwise prove an older one of the same order."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    world.account.observations.append(PaymentsSeen(payments=(payment_of(CHARGE),), evidence=Evidence()))
    world.clock.passed_ms += 10_000
    fall_behind(world)
    await resolve_due(world.relay)
    await resolve_one(world.relay, await world.operation(), is_urgent=True)

    assert (await world.operation()).state is State.UNKNOWN
    assert not has_room(world.relay, "merchant", "A-1")


async def test_the_worker_waits_with_whatever_concludes_something(world: World) -> None:
    """An operation that the database knows as accepted may have been sent in the time that was lost."""
    done: list[str] = []

    async def do(name: str) -> None:
        done.append(name)

    async def pause(_: float) -> None:
        if len(done) > 2:
            await asyncio.Event().wait()
        await asyncio.sleep(0)

    fall_behind(world)
    jobs = (Job(1, lambda _: do("concludes"), waits_behind=True), Job(1, lambda _: do("goes on")))
    async with working(world.relay, pause, jobs):
        while len(done) < 3:  # noqa: ASYNC110, the worker tells nobody
            await asyncio.sleep(0)

    assert set(done) == {"goes on"}
    waiting = {job.do.__name__ for job in JOBS if job.waits_behind}
    assert waiting == {
        "begin_due",
        "begin_clearing",
        "recover_and_prune",
        "begin_inbox",
        "keep_anchors",
        "end_checkouts",
    }


@pytest.mark.parametrize("decided", [State.SUCCEEDED, State.FAILED])
async def test_nobody_decides_about_what_may_have_gone_on(world: World, decided: State) -> None:
    """The entry would also be the newest of a restored copy: what was charged before it would count as not lost."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    before = await world.operation()
    fall_behind(world)
    decision = Decision(
        operation_id=before.id, seen=before.state, decided=decided, operator="ann", reason="it is on the statement"
    )
    with pytest.raises(UndecidedError, match="run `payrelay recover` before you decide"):
        await decide(world.relay, decision)
    with pytest.raises(UndecidedError, match="run `payrelay recover` before you decide"):
        await decide_held(world.relay, before, HeldDecision.REFUSE, operator="ann", reason="no longer wanted")

    assert await world.operation() == before


async def test_the_operators_are_told_once(scene: Scene) -> None:
    """They have to act: nobody can pay until they do."""
    await tell_behind(scene.relay)
    fall_behind(scene.world)
    for _ in range(2):
        await tell_behind(scene.relay)
    assert [await scene.round(), await scene.round()] == [1, 0]

    [message] = scene.channels["command"].accepted
    assert (message["kind"], message["incarnation"]) == ("database_behind", 1)
    assert "payrelay recover" in json.dumps(message)
