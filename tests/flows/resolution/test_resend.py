import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
import pytest
from tests.flows.operators.test_decide import decision_on
from tests.flows.payments.test_capture import CAPTURE
from tests.flows.subscriptions.test_cancel_subscription import CANCEL
from tests.flows.world import CHARGE, Gate, World, asked, outcome_of
from tests.samples import ASKED, CHECKOUT

from payrelay.core.checkouts.checkout import CheckoutState, Details
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.outcomes import Evidence, Outcome, OutcomeKind
from payrelay.core.payments.operation import Event, State
from payrelay.core.payments.payment import Payment, PaymentsSeen, PaymentStatus
from payrelay.errors import Code
from payrelay.flows.operators.decide import decide
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.charge import charge
from payrelay.flows.resolution.resend_capture import resolve_capture
from payrelay.flows.resolution.resolve import open_case, resolve_due
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.gateways.payhere.wire.reply_shapes import Cause

ALREADY = Outcome(
    kind=OutcomeKind.REFUSED, code=Code.CONFLICT, msg="captured", evidence=Evidence(cause=Cause.ALREADY_CAPTURED)
)


async def captured_without_reply(world: World) -> None:
    """Authorizes an amount, captures it, and loses the reply."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, authorization_token="hold-token", payment_id="320"))
    await charge(world.relay, asked(world.relay, "k-0"), msgspec.structs.replace(CHARGE, authorize=True))
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await capture(world.relay, asked(world.relay), CAPTURE)
    world.clock.passed_ms += 31_000


async def cancelled_without_reply(world: World) -> None:
    """Cancels a subscription, and loses the reply."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await cancel_subscription(world.relay, asked(world.relay), CANCEL)
    world.clock.passed_ms += 31_000


async def captured_payment(world: World) -> Payment:
    """Gives the payment that the newest operation makes of an authorization."""
    return Payment(
        payment_id="320",
        order_id="A-1",
        at_ms=(await world.operation()).created_at_ms,
        description="Tea",
        status=PaymentStatus.RECEIVED,
        currency="LKR",
        amount_minor=50_000,
    )


async def test_the_payment_of_a_capture_may_have_the_number_of_its_authorization(world: World) -> None:
    """An authorization made through Payrelay has that number too, and must not count as the payment's owner."""
    await captured_without_reply(world)
    world.account.script.append(ALREADY)
    world.account.observations.append(PaymentsSeen(payments=(await captured_payment(world),), evidence=Evidence()))
    await resolve_due(world.relay)
    resolved = await world.operation()
    assert (resolved.state, resolved.payment_id) == (State.SUCCEEDED, "320")
    assert (await capture(world.relay, asked(world.relay), CAPTURE)).http_status == 200


@pytest.mark.parametrize(
    ("payment_id", "signed_minor", "state"),
    [
        ("321", CAPTURE.amount_minor, State.NEEDS_ATTENTION),
        ("321", CAPTURE.amount_minor + 1, State.SUCCEEDED),
        ("320", CAPTURE.amount_minor, State.SUCCEEDED),
    ],
)
async def test_a_payment_that_may_be_of_a_form_proves_no_capture(
    world: World, payment_id: str, signed_minor: int, state: State
) -> None:
    """That something was captured is known, and not how much: a customer may have paid the form of an earlier page.

    The number of the authorization tells its payment from those of all forms.
    """
    await captured_without_reply(world)
    page = msgspec.structs.replace(CHECKOUT, state=CheckoutState.EXPIRED, guard=None, amount_minor=signed_minor)
    await world.relay.checkouts.add(page, Details(secret="s", asked=ASKED))
    text = SignedText(order_id="A-1", amount_minor=signed_minor, currency="LKR")
    await world.relay.signed_texts.keep_form(page, [text], at_ms=1)
    paid = msgspec.structs.replace(await captured_payment(world), payment_id=payment_id)
    world.account.script.append(ALREADY)
    world.account.observations.append(PaymentsSeen(payments=(paid,), evidence=Evidence()))
    await resolve_due(world.relay)
    assert (await world.operation()).state is state


async def test_the_payment_in_the_reply_to_a_resending_is_stored(world: World) -> None:
    """A payment that isn't known to be the capture's could prove a charge of the order that charged nothing."""
    await captured_without_reply(world)
    world.account.script.append(
        outcome_of(OutcomeKind.SUCCEEDED, payment_id="320025000004", order_id="DemoHold1", currency="LKR")
    )
    await resolve_due(world.relay)
    row = await world.operation()
    assert (row.state, row.payment_id, row.currency) == (State.SUCCEEDED, "320025000004", "LKR")


WITHOUT_REPLY = {"capture": captured_without_reply, "cancel": cancelled_without_reply}
DONE_ALREADY = {"capture": Cause.ALREADY_CAPTURED, "cancel": Cause.ALREADY_CANCELLED}


async def changed_meanwhile(world: World, flow: str, reply: Outcome, change: Callable[[], Awaitable[object]]) -> None:
    """Resends an operation, and changes it before the reply to the resending is there."""
    await WITHOUT_REPLY[flow](world)
    world.account.script.append(reply)
    gate = Gate()
    world.steps.put("executed", gate, first=world.steps.passed.count("executed") + 1)
    resolution = asyncio.create_task(resolve_due(world.relay))
    await gate.reached.wait()
    await change()
    gate.opened.set()
    await resolution


async def decided(world: World, state: State) -> None:
    """Decides on the newest operation, when only a process that slept can still be sending it."""
    world.clock.passed_ms += 120_000
    await decide(world.relay, decision_on(await world.operation(), state))


@pytest.mark.parametrize("flow", WITHOUT_REPLY)
@pytest.mark.parametrize("is_done_already", [False, True])
async def test_a_decision_does_not_suppress_the_reply_to_a_resending(
    world: World, flow: str, *, is_done_already: bool
) -> None:
    """A machine slept, and an operator decided that it failed: no inquiry follows, and money has moved."""
    already = msgspec.structs.replace(ALREADY, evidence=Evidence(cause=DONE_ALREADY[flow]))
    reply = already if is_done_already else outcome_of(OutcomeKind.SUCCEEDED)
    await changed_meanwhile(world, flow, reply, partial(decided, world, State.FAILED))
    row = await world.operation()
    assert (row.state, row.guard, row.inquire_at_ms) == (State.NEEDS_ATTENTION, row.subject, None)


async def test_a_payment_that_is_found_after_a_decision_needs_an_operator(world: World) -> None:
    """The gateway said that it was captured, and while the amount is being confirmed it is decided that it failed."""
    await captured_without_reply(world)
    world.account.script.append(ALREADY)
    world.account.observations.append(PaymentsSeen(payments=(await captured_payment(world),), evidence=Evidence()))
    world.steps.put("observe", partial(decided, world, State.FAILED))
    await resolve_due(world.relay)
    assert (await world.operation()).state is State.NEEDS_ATTENTION


async def test_a_reply_counts_where_another_process_gave_the_resending_up(world: World) -> None:
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
    """The answer stays; that the gateway contradicts it is for an operator to see."""
    refused = outcome_of(OutcomeKind.REFUSED)
    succeeded = partial(decided, world, State.SUCCEEDED)
    await changed_meanwhile(world, "cancel", refused, succeeded)
    assert (await world.operation()).state is State.SUCCEEDED
    (record,) = [each for each in world.log_records if each["event"] == "reply_after_resolution"]
    assert (record["state"], record["event_name"], "kind" in record) == (State.SUCCEEDED, Event.REFUSED, False)


async def test_a_reply_that_says_what_was_decided_is_no_error(world: World) -> None:
    """The two agree: an error in the log would have somebody look for a difference that isn't there."""
    await changed_meanwhile(
        world, "cancel", outcome_of(OutcomeKind.SUCCEEDED), partial(decided, world, State.SUCCEEDED)
    )
    assert (await world.operation()).state is State.SUCCEEDED
    assert "reply_after_resolution" not in world.log_events
