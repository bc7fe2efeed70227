import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
import pytest
from tests.flows.operators.test_decide import decision_on
from tests.flows.payments.test_capture import CAPTURE
from tests.flows.subscriptions.test_cancel_subscription import CANCEL
from tests.flows.world import CHARGE, Gate, World, asked, outcome_of

from payrelay.core.outcomes import Evidence, Outcome, OutcomeKind
from payrelay.core.payments.operation import State
from payrelay.core.payments.payment import Payment, PaymentsSeen, PaymentStatus
from payrelay.errors import Code
from payrelay.flows.operators.decide import decide
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.charge import charge
from payrelay.flows.resolution.resend_capture import resolve_capture
from payrelay.flows.resolution.resolve import open_case, resolve_due
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.gateways.payhere.wire.replies import Cause

ALREADY = Outcome(
    kind=OutcomeKind.REFUSED, code=Code.CONFLICT, msg="captured", evidence=Evidence(cause=Cause.ALREADY_CAPTURED)
)


async def captured_unheard(world: World) -> None:
    """Holds money, captures it, and loses the reply."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, authorization_token="hold-token", payment_id="320"))
    await charge(world.relay, asked("k-0"), msgspec.structs.replace(CHARGE, authorize=True))
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await capture(world.relay, asked(), CAPTURE)
    world.clock.passed_ms += 31_000


async def cancelled_unheard(world: World) -> None:
    """Cancels a subscription, and loses the reply."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await cancel_subscription(world.relay, asked(), CANCEL)
    world.clock.passed_ms += 31_000


async def captured_payment(world: World) -> Payment:
    """Gives the payment that the newest operation makes of a hold."""
    return Payment(
        payment_id="320",
        order_id="A-1",
        at_ms=(await world.operation()).created_at_ms,
        description="Tea",
        status=PaymentStatus.RECEIVED,
        currency="LKR",
        amount_minor=50_000,
    )


async def test_the_payment_of_a_capture_may_go_by_the_number_of_its_hold(world: World) -> None:
    """The hold made through us has that number too, and must not make its own capture look like another one's."""
    await captured_unheard(world)
    world.account.script.append(ALREADY)
    world.account.sights.append(PaymentsSeen(payments=(await captured_payment(world),), evidence=Evidence()))
    await resolve_due(world.relay)
    settled = await world.operation()
    assert (settled.state, settled.payment_id) == (State.SUCCEEDED, "320")
    assert (await capture(world.relay, asked(), CAPTURE)).http_status == 200


async def test_what_the_second_sending_tells_of_the_payment_is_kept(world: World) -> None:
    """A payment that isn't known to be the capture's could prove a charge on the same order, which took nothing."""
    await captured_unheard(world)
    world.account.script.append(
        outcome_of(OutcomeKind.SUCCEEDED, payment_id="320025000004", order_id="DemoHold1", currency="LKR")
    )
    await resolve_due(world.relay)
    row = await world.operation()
    assert (row.state, row.payment_id, row.currency) == (State.SUCCEEDED, "320025000004", "LKR")


SECOND_SENDINGS = {"capture": captured_unheard, "cancel": cancelled_unheard}
DONE_ALREADY = {"capture": Cause.ALREADY_CAPTURED, "cancel": Cause.ALREADY_CANCELLED}


async def changed_meanwhile(world: World, story: str, reply: Outcome, change: Callable[[], Awaitable[object]]) -> None:
    """Sends once more for proof, and changes the operation before the reply to that is there."""
    await SECOND_SENDINGS[story](world)
    world.account.script.append(reply)
    gate = Gate()
    world.steps.put("executed", gate, first=world.steps.passed.count("executed") + 1)
    resolution = asyncio.create_task(resolve_due(world.relay))
    await gate.reached.wait()
    await change()
    gate.opened.set()
    await resolution


async def decided(world: World, verdict: State) -> None:
    """Decides what became of the newest operation, when nobody can be sending it any more who didn't sleep."""
    world.clock.passed_ms += 120_000
    await decide(world.relay, decision_on(await world.operation(), verdict))


@pytest.mark.parametrize("story", SECOND_SENDINGS)
@pytest.mark.parametrize("is_done_already", [False, True])
async def test_a_decision_does_not_silence_the_reply_to_the_second_sending(
    world: World, story: str, *, is_done_already: bool
) -> None:
    """A machine slept, and somebody decided that it failed: nobody looks for it after that, and money has moved."""
    already = msgspec.structs.replace(ALREADY, evidence=Evidence(cause=DONE_ALREADY[story]))
    reply = already if is_done_already else outcome_of(OutcomeKind.SUCCEEDED)
    await changed_meanwhile(world, story, reply, partial(decided, world, State.FAILED))
    row = await world.operation()
    assert (row.state, row.guard, row.inquire_at_ms) == (State.NEEDS_ATTENTION, row.subject, None)


async def test_the_payment_that_a_look_finds_behind_a_decision_is_for_a_person(world: World) -> None:
    """The gateway said that it was captured, and while the amount is being confirmed it is decided that it failed."""
    await captured_unheard(world)
    world.account.script.append(ALREADY)
    world.account.sights.append(PaymentsSeen(payments=(await captured_payment(world),), evidence=Evidence()))
    world.steps.put("observe", partial(decided, world, State.FAILED))
    await resolve_due(world.relay)
    assert (await world.operation()).state is State.NEEDS_ATTENTION


async def test_a_reply_counts_where_another_process_gave_the_second_sending_up(world: World) -> None:
    """A process whose clock is ahead takes it for lost; the reply is still the best evidence there is."""

    async def give_up() -> None:
        world.clock.passed_ms += 120_000
        case = await open_case(
            world.relay, world.relay.accounts["gateway"], await world.operation(), is_urgent=False, until_s=0
        )
        await resolve_capture(case)
        assert (await world.operation()).state is State.NEEDS_ATTENTION

    await changed_meanwhile(world, "capture", outcome_of(OutcomeKind.SUCCEEDED), give_up)
    assert (await world.operation()).state is State.SUCCEEDED


async def test_a_reply_against_a_decided_success_is_logged_and_changes_nothing(world: World) -> None:
    """What was told stays; that the gateway says otherwise is for a person to see."""
    refused = outcome_of(OutcomeKind.REFUSED)
    succeeded = partial(decided, world, State.SUCCEEDED)
    await changed_meanwhile(world, "cancel", refused, succeeded)
    assert (await world.operation()).state is State.SUCCEEDED
    assert "reply_after_resolution" in world.log_events


async def test_a_reply_that_says_what_was_decided_is_no_error(world: World) -> None:
    """The two agree: an error in the log would have somebody look for a difference that isn't there."""
    await changed_meanwhile(
        world, "cancel", outcome_of(OutcomeKind.SUCCEEDED), partial(decided, world, State.SUCCEEDED)
    )
    assert (await world.operation()).state is State.SUCCEEDED
    assert "reply_after_resolution" not in world.log_events
