"""What follows from a genuine notification, and what doesn't: only five of its fields are signed."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.flows.inbox_world import (
    AMOUNT_MINOR,
    AUTHORIZATION_TOKEN,
    MERCHANT,
    PAYMENT_ID,
    TOKEN,
    InboxWorld,
    body_of,
    inbox_world,
    payment_of,
)
from tests.flows.operators.test_decide import decision_on
from tests.flows.world import CHARGE, asked

from payrelay.core.calls import Capture, Void
from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.customers.customer import CustomerState
from payrelay.core.notifications.notification import NotificationReason, NotificationState, needs_operator
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import State as OperationState
from payrelay.core.payments.proof import MatchResult
from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.secret import secret_hash
from payrelay.errors import Code, Refusal
from payrelay.flows.audit.audit import Audit
from payrelay.flows.checkouts.finish_checkout import note_abandoned
from payrelay.flows.customers.erase_customer import remove
from payrelay.flows.notifications.replay_notification import replay
from payrelay.flows.operators.decide import decide
from payrelay.flows.operators.review import study
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.refund import refund

HOLD = msgspec.structs.replace(CHARGE, authorize=True)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay that takes notifications."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


async def test_a_payment_counts_when_the_gateway_shows_it(world: InboxWorld) -> None:
    """The whole way: opened, paid, notified, proved."""
    await world.open_checkout()
    world.payments.append(payment_of())
    taken = await world.take(body_of())

    assert (taken.state, taken.reason) == (NotificationState.APPLIED, NotificationReason.CHECKOUT_FINISHED)
    checkout = await world.checkout()
    assert (checkout.state, checkout.payment_id) == (CheckoutState.COMPLETED, PAYMENT_ID)
    assert await world.event_types() == ["checkout.completed"]


async def test_a_payment_that_was_proved_costs_no_further_call(world: InboxWorld) -> None:
    """Whoever posts the same again with other texts in it must not use up the gateway's budget."""
    await world.open_checkout()
    world.payments.append(payment_of())
    for number in range(3):
        taken = await world.take(body_of(custom_1=str(number)))
        assert taken.reason is NotificationReason.CHECKOUT_FINISHED

    assert world.account.observed == 1


async def test_a_payment_that_is_not_shown_yet_is_waited_for(world: InboxWorld) -> None:
    """The notification may be quicker than the gateway's own search; and a false one is never shown."""
    await world.open_checkout()
    taken = await world.take(body_of())
    assert (taken.state, taken.reason) == (NotificationState.WAITING, NotificationReason.NOT_SHOWN)
    assert (await world.checkout()).state is CheckoutState.OPEN
    world.payments.append(payment_of())
    await world.later(3_000)

    assert (await world.checkout()).state is CheckoutState.COMPLETED
    assert [each.state for each in await world.all()] == [NotificationState.APPLIED]


async def test_a_gateway_that_cannot_be_seen_proves_nothing(world: InboxWorld) -> None:
    """That it is down is no sign of a payment, and none of its absence."""
    await world.open_checkout()
    world.payments.append(payment_of())
    world.account.is_hidden = True
    assert (await world.take(body_of())).reason is NotificationReason.UNSEEN
    world.account.is_hidden = False
    await world.later()

    assert (await world.checkout()).state is CheckoutState.COMPLETED


@pytest.mark.parametrize("members", [{"amount_minor": 1}, {"currency": "USD"}, {"status": "REFUNDED"}])
async def test_a_signature_with_other_fields_pays_for_nothing(world: InboxWorld, members: dict[str, object]) -> None:
    """Whoever has seen one body can post it again with another payment's number in it."""
    await world.open_checkout()
    world.payments.append(payment_of(**members))

    assert (await world.take(body_of())).reason is NotificationReason.NOT_SHOWN
    assert (await world.checkout()).state is CheckoutState.OPEN


async def test_a_payment_under_another_number_is_taken_from_the_records_alone(world: InboxWorld) -> None:
    """The number in the body was made up; the search that it caused shows the payment, and completes the checkout."""
    await world.open_checkout()
    world.payments.append(payment_of(payment_id="320025000009"))
    taken = await world.take(body_of())

    assert (taken.state, taken.reason) == (NotificationState.WAITING, NotificationReason.NOT_SHOWN)
    checkout = await world.checkout()
    assert (checkout.state, checkout.payment_id) == (CheckoutState.COMPLETED, "320025000009")


@pytest.mark.parametrize("members", [{"amount_minor": 200_000}, {"currency": "USD"}])
async def test_another_amount_than_was_requested_needs_attention(world: InboxWorld, members: dict[str, Any]) -> None:
    """The charged amount is not the requested one: no program may decide what that means."""
    await world.open_checkout(**members)
    world.payments.append(payment_of())
    taken = await world.take(body_of())

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.OTHER_AMOUNT)
    assert "notification_needs_attention" in world.world.log_events
    assert (await world.checkout()).state is CheckoutState.OPEN


async def test_a_payment_of_an_order_whose_charge_failed_is_an_alert_in_the_end(world: InboxWorld) -> None:
    """Somebody else may have asked for it, such as the shop itself. Money on a known order isn't ignored unheard."""
    await world.charge(OutcomeKind.DECLINED, payment_id="320025000009", order_id="A-1")
    world.payments.append(payment_of())
    assert (await world.take(body_of())).reason is NotificationReason.UNKNOWN_PAYMENT
    for _ in range(13):
        await world.later(6 * 3_600_000)

    (taken,) = await world.all()
    assert (taken.state, needs_operator(taken)) == (NotificationState.IGNORED, True)


async def test_before_our_own_row_it_waits(world: InboxWorld) -> None:
    """A row may be a moment late; a notification that was dropped for that would be lost for good."""
    assert (await world.take(body_of())).reason is NotificationReason.UNKNOWN_ORDER
    await world.open_checkout()
    world.payments.append(payment_of())
    await world.later()

    assert (await world.checkout()).state is CheckoutState.COMPLETED


@pytest.mark.parametrize(("status", "state"), [("-1", CheckoutState.CANCELLED), ("-2", CheckoutState.FAILED)])
async def test_a_failure_is_a_hint_and_no_more(world: InboxWorld, status: str, state: CheckoutState) -> None:
    """The customer may try another card on the same page; what was paid then counts, whatever came before or after."""
    await world.open_checkout()
    assert (await world.take(body_of(status, payment_id=None))).state is NotificationState.APPLIED
    assert (await world.checkout()).state is state
    world.payments.append(payment_of())
    await world.take(body_of())
    await world.take(body_of(status, payment_id="320025000009"))

    assert (await world.checkout()).state is CheckoutState.COMPLETED


@pytest.mark.parametrize("status", ["0", "7"])
async def test_what_says_nothing_changes_nothing(world: InboxWorld, status: str) -> None:
    """A pending payment, or an unknown status, is neither a payment nor a failure."""
    await world.open_checkout()
    taken = await world.take(body_of(status))

    assert (taken.state, taken.reason) == (NotificationState.IGNORED, NotificationReason.INFORMED)
    assert (await world.checkout()).state is CheckoutState.OPEN


async def test_a_lost_charge_is_inquired_about_at_once(world: InboxWorld) -> None:
    """The client waits for an answer that was lost; the notification is the moment to ask the gateway."""
    operation = await world.charge(OutcomeKind.UNKNOWN)
    world.payments.append(payment_of(at_ms=world.clock.now_ms()))
    taken = await world.take(body_of())

    assert taken.reason is NotificationReason.OPERATION_INQUIRED
    settled = await world.relay.journal.get(operation.id)
    assert settled is not None
    assert (settled.state, settled.payment_id) == (OperationState.SUCCEEDED, PAYMENT_ID)


async def test_a_failure_disproves_no_charge(world: InboxWorld) -> None:
    """A customer's first try may have failed and the second be paid: only the gateway's records show it."""
    operation = await world.charge(OutcomeKind.UNKNOWN)
    assert (await world.take(body_of("-2"))).reason is NotificationReason.INFORMED

    settled = await world.relay.journal.get(operation.id)
    assert settled is not None
    assert settled.state is OperationState.UNKNOWN


async def test_a_charges_payment_pays_for_no_checkout(world: InboxWorld) -> None:
    """One payment, one effect: the charge took it, and the page under the same order is still unpaid."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")
    await world.open_checkout()
    world.payments.append(payment_of())
    taken = await world.take(body_of())

    assert taken.reason is NotificationReason.OPERATION_RESOLVED
    assert (await world.checkout()).state is CheckoutState.OPEN


async def test_a_payment_that_may_be_a_lost_charges_pays_for_no_checkout(world: InboxWorld) -> None:
    """Given to the page of the same order and amount, the charge could be proved no more, and would end as failed.

    While the page may be paid nobody can tell whose it is. So it is when the customer turned back from it: who stood on
    the gateway's page by then could pay all the same.
    """
    operation = await world.charge(OutcomeKind.UNKNOWN)
    await world.open_checkout()
    world.account.is_hidden = True
    taken = await world.take(body_of())
    assert (taken.state, taken.reason) == (NotificationState.WAITING, NotificationReason.OPERATION_UNDER_WAY)
    world.account.is_hidden = False
    world.payments.append(payment_of(at_ms=world.clock.now_ms()))
    await world.later()
    assert [each.reason for each in await world.all()] == [NotificationReason.OPERATION_UNDER_WAY]
    assert (await world.checkout()).state is CheckoutState.OPEN
    await note_abandoned(world.relay, await world.checkout())
    await world.later()

    assert [each.reason for each in await world.all()] == [NotificationReason.OPERATION_UNDER_WAY]
    assert (await world.checkout()).state is CheckoutState.CANCELLED
    lost = await world.relay.journal.get(operation.id)
    assert lost is not None
    assert (lost.state, lost.payment_id) == (OperationState.UNKNOWN, None)


async def test_a_notification_without_a_payment_takes_none_from_a_lost_charge(world: InboxWorld) -> None:
    """A hostile customer's approval can have the order's signed text and name no payment. The charge made the one."""
    operation = await world.charge(OutcomeKind.UNKNOWN)
    await world.open_checkout()
    world.payments.append(payment_of(at_ms=world.clock.now_ms()))
    taken = await world.take(body_of(payment_id="", customer_token=TOKEN))

    assert (taken.state, taken.reason) == (NotificationState.WAITING, NotificationReason.OPERATION_UNDER_WAY)
    assert (await world.checkout()).state is CheckoutState.OPEN
    lost = await world.relay.journal.get(operation.id)
    assert lost is not None
    assert (lost.state, lost.payment_id) == (OperationState.UNKNOWN, None)


async def test_a_payment_that_an_operator_has_yet_to_decide_pays_for_no_checkout(world: InboxWorld) -> None:
    """The payment may be the charge's; whoever decides about that decides about this."""
    await world.charge(OutcomeKind.DIFFERED)
    await world.open_checkout()
    world.payments.append(payment_of())
    taken = await world.take(body_of())

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.OPERATION_OPEN)
    assert (await world.checkout()).state is CheckoutState.OPEN


async def test_another_payment_of_a_resolved_order_is_not_the_charges(world: InboxWorld) -> None:
    """The charge has its payment; another one for the order belongs to nothing here, and is shown to operators."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")

    assert (await world.take(body_of(payment_id="320025000009"))).reason is NotificationReason.NOT_SHOWN
    assert (await world.take(body_of())).reason is NotificationReason.OPERATION_RESOLVED


async def test_an_approval_becomes_a_customer(world: InboxWorld) -> None:
    """The app charges it later by its handle; no client sees the token itself."""
    await world.open_checkout(CheckoutKind.PREAPPROVAL, amount_minor=None, first_minor=None)
    taken = await world.take(body_of(payhere_amount="10.00", customer_token=TOKEN))

    assert taken.reason is NotificationReason.CUSTOMER_APPROVED
    (customer,) = await world.all_customers()
    checkout = await world.checkout()
    assert (checkout.state, checkout.customer_id) == (CheckoutState.COMPLETED, customer.id)
    assert (customer.reference, customer.card_no_masked) == ("person-7", "************1292")
    token = await world.customers.token_of(customer.id)
    assert token is not None
    assert token.reveal() == TOKEN


async def test_a_second_token_needs_attention(world: InboxWorld) -> None:
    """The signature covers no token: whoever has seen a body could put another card's token into it."""
    await world.open_checkout(CheckoutKind.PREAPPROVAL, amount_minor=None, first_minor=None)
    await world.take(body_of(payhere_amount="10.00", customer_token=TOKEN))
    taken = await world.take(body_of(payhere_amount="10.00", customer_token="F" * 32))

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.OTHER_TOKEN)
    assert len(await world.all_customers()) == 1
    again = await world.take(body_of(payhere_amount="10.00", customer_token=TOKEN, custom_1="later"))
    assert again.reason is NotificationReason.CUSTOMER_APPROVED
    assert len(await world.all_customers()) == 1


async def test_an_approval_with_an_amount_needs_its_payment(world: InboxWorld) -> None:
    """The approval includes a charge: only the gateway's record shows that it was made."""
    await world.open_checkout(CheckoutKind.PREAPPROVAL)
    assert (await world.take(body_of(customer_token=TOKEN))).reason is NotificationReason.NOT_SHOWN
    assert await world.all_customers() == []
    world.payments.append(payment_of())
    await world.later()

    assert len(await world.all_customers()) == 1
    assert (await world.checkout()).payment_id == PAYMENT_ID


async def test_a_token_without_a_request_is_not_accepted(world: InboxWorld) -> None:
    """A checkout that asks for a payment makes no customer, whatever is put into its notification."""
    await world.open_checkout()
    world.payments.append(payment_of())
    await world.take(body_of(customer_token=TOKEN))

    assert await world.all_customers() == []
    assert (await world.checkout()).state is CheckoutState.COMPLETED


async def test_an_approval_without_a_token_needs_attention(world: InboxWorld) -> None:
    """The customer believes to have approved; without the token nothing can be charged."""
    await world.open_checkout(CheckoutKind.PREAPPROVAL, amount_minor=None, first_minor=None)

    assert (await world.take(body_of(payhere_amount="10.00"))).reason is NotificationReason.INCOMPLETE


async def test_a_lost_authorization_is_proved_by_its_token(world: InboxWorld) -> None:
    """No search shows an authorization: a notification with its token is the only proof, and the token captures it."""
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    taken = await world.take(body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN))

    assert taken.reason is NotificationReason.OPERATION_PROVED
    settled = await world.relay.journal.get(operation.id)
    assert settled is not None
    assert (settled.state, settled.result_ref) == (OperationState.SUCCEEDED, secret_hash(AUTHORIZATION_TOKEN))
    entry = (await world.relay.journal.history(operation.id))[-1]
    assert (entry.evidence.seen, entry.evidence.notification_id) == ("notified", taken.id)
    answer = await world.relay.journal.answer_of(operation.id)
    assert answer is not None
    assert msgspec.json.decode(answer.body)["data"]["authorization_token"] == AUTHORIZATION_TOKEN
    assert [each async for each in Audit(world.relay.journal.trail, 0, lambda *_: None).findings()] == []
    call = Capture(authorization_token=AUTHORIZATION_TOKEN, amount_minor=100_000, description="Tea")
    assert (await capture(world.relay, asked("k-2"), call)).http_status == 200
    again = await world.take(body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN, custom_1="late"))
    assert again.reason is NotificationReason.OPERATION_RESOLVED


@pytest.mark.parametrize("fields", [{"payhere_amount": "999.00"}, {"payhere_currency": "USD"}, {"order_id": "A-2"}])
async def test_an_authorization_of_something_else_proves_nothing(world: InboxWorld, fields: dict[str, str]) -> None:
    """What is signed is compared with what was asked."""
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    await world.take(body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN, **fields))

    stored = await world.relay.journal.get(operation.id)
    assert stored is not None
    assert stored.state is OperationState.UNKNOWN


async def test_an_authorization_that_may_be_of_a_checkout_proves_no_operation(world: InboxWorld) -> None:
    """The customer authorized it on the page meanwhile: the lost operation would be called succeeded, and never was.

    Nothing ever tells the two apart, so an operator must look. Until then it counts for the checkout as little: who
    captures it there would be told that the page was paid.
    """
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    await world.open_checkout(CheckoutKind.AUTHORIZATION)
    reported = body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN)
    taken = await world.take(reported)

    assert taken.reason is NotificationReason.OPERATION_OPEN
    assert (await world.checkout()).state is CheckoutState.OPEN
    stored = await world.relay.journal.get(operation.id)
    assert stored is not None
    assert stored.state is OperationState.NEEDS_ATTENTION
    assert (await world.relay.journal.history(operation.id))[-1].evidence.seen == MatchResult.TEXT_OF_ANOTHER
    await decide(world.relay, decision_on(stored, OperationState.FAILED))
    again = await world.take(reported + b"&custom_1=again")
    assert again.reason is NotificationReason.CHECKOUT_NOTIFIED, "the call wasn't executed: it is the page's"


async def test_an_authorization_of_another_operation_proves_nothing(world: InboxWorld) -> None:
    """The repeated notification of an earlier authorization of the order must not resolve a later one."""
    await world.charge(OutcomeKind.SUCCEEDED, HOLD, authorization_token=AUTHORIZATION_TOKEN)
    second = await world.charge(OutcomeKind.UNKNOWN, HOLD, "k-2")
    await world.take(body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN))

    stored = await world.relay.journal.get(second.id)
    assert stored is not None
    assert stored.state is OperationState.UNKNOWN


@pytest.mark.parametrize("payment_id", [None, "320000000009"])
async def test_an_operations_authorization_completes_no_checkout(world: InboxWorld, payment_id: str | None) -> None:
    """One authorization would count for two; the payment beside its token is not signed, and may be any."""
    await world.charge(OutcomeKind.SUCCEEDED, HOLD, authorization_token=AUTHORIZATION_TOKEN)
    await world.open_checkout(CheckoutKind.AUTHORIZATION)
    taken = await world.take(body_of("3", payment_id=payment_id, authorization_token=AUTHORIZATION_TOKEN))

    assert taken.reason is NotificationReason.OPERATION_RESOLVED
    assert (await world.checkout()).state is CheckoutState.OPEN


async def test_an_authorization_of_a_checkout_keeps_its_token_sealed(world: InboxWorld) -> None:
    """It is captured by that token later; another token for the order needs attention."""
    await world.open_checkout(CheckoutKind.AUTHORIZATION)
    taken = await world.take(body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN))
    assert taken.reason is NotificationReason.CHECKOUT_NOTIFIED
    assert (await world.checkout()).state is CheckoutState.NOTIFIED
    other = await world.take(body_of("3", payment_id=None, authorization_token="f" * 36))

    assert other.reason is NotificationReason.OTHER_TOKEN
    call = Capture(authorization_token="chk_0001", amount_minor=100_000, description="Tea")
    assert (await capture(world.relay, asked("k-1"), call)).http_status == 200
    assert world.account.ledger == [msgspec.structs.replace(call, authorization_token=AUTHORIZATION_TOKEN)]
    captured = await world.world.operation()
    assert (captured.order_id, captured.currency) == ("A-1", "LKR")
    assert (await world.checkout()).state is CheckoutState.COMPLETED
    again = msgspec.structs.replace(call, amount_minor=1)
    with pytest.raises(Refusal, match="already captured"):
        await capture(world.relay, asked("k-2"), again)


@pytest.mark.parametrize("principal", ["shop", "another"])
async def test_a_checkout_that_holds_nothing_is_not_captured(world: InboxWorld, principal: str) -> None:
    """An authorization that isn't made yet, or is another's: nothing is sent, and the client learns the wrong field."""
    await world.open_checkout(CheckoutKind.AUTHORIZATION)
    if principal == "another":
        await world.take(body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN))
    request = asked("k-1", principal=principal)
    with pytest.raises(Refusal) as refused:
        await capture(world.relay, request, Capture(authorization_token="chk_0001", amount_minor=1, description="Tea"))
    with pytest.raises(Refusal) as not_released:
        await refund(world.relay, request, Void(authorization_token="chk_0001", description="Tea"))

    assert [each.path for each in refused.value.fields] == ["authorization_token"]
    assert not_released.value.code is Code.INVALID_REQUEST
    assert world.account.ledger == []


async def test_a_chargeback_stands_with_its_payment(world: InboxWorld) -> None:
    """The bank took the money back: whoever sees the charge must see that, and the charge itself did succeed."""
    operation = await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")
    world.payments.append(payment_of())
    world.charge_back()
    taken = await world.take(body_of("-3"))
    observed = world.account.observed
    await world.take(body_of("-3", custom_1="again"))
    assert world.account.observed == observed, "a repeat costs no call to the gateway"

    assert taken.reason is NotificationReason.CHARGEBACK_KEPT
    (kept,) = await world.chargebacks.of_operation(operation.id)
    studied = await study(world.relay, operation.id)
    assert studied is not None
    assert [each.payment_id for each in studied.chargebacks] == [PAYMENT_ID]
    assert (kept.payment_id, kept.principal, kept.amount_minor) == (PAYMENT_ID, "shop", 100_000)
    assert (await world.event_types()).count("payment.charged_back") == 1
    stored = await world.relay.journal.get(operation.id)
    assert stored is not None
    assert stored.state is OperationState.SUCCEEDED


async def test_a_chargeback_of_a_checkout_makes_an_event_too(world: InboxWorld) -> None:
    """It may come before the notification of the payment itself; then it waits for that."""
    await world.open_checkout()
    world.payments.append(payment_of())
    assert (await world.take(body_of("-3"))).reason is NotificationReason.UNKNOWN_PAYMENT
    await world.take(body_of())
    world.charge_back()
    await world.later()

    assert (await world.event_types()).count("payment.charged_back") == 1
    kept = await world.chargebacks.of_payment("0123456789abcdef", PAYMENT_ID)
    assert kept is not None
    assert (kept.operation_id, kept.principal) == (None, "shop")


async def test_a_chargeback_of_another_payment_is_not_believed(world: InboxWorld) -> None:
    """The number of the payment is not signed."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")

    assert (await world.take(body_of("-3", payment_id="320025000009"))).reason is NotificationReason.UNKNOWN_PAYMENT


async def test_a_chargeback_that_no_record_shows_is_for_an_operator(world: InboxWorld) -> None:
    """Its signature may be that of another order's chargeback. When the gateway shows a true one isn't documented."""
    operation = await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")
    world.payments.append(payment_of())
    taken = await world.take(body_of("-3", payment_id=None))
    assert (taken.state, taken.reason) == (NotificationState.WAITING, NotificationReason.CHARGEBACK_NOT_SHOWN)
    for _ in range(30):
        await world.later(3 * 3_600_000)
    (noted,) = await world.all()

    assert (noted.state, noted.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.CHARGEBACK_NOT_SHOWN)
    assert needs_operator(noted)
    assert await world.chargebacks.of_operation(operation.id) == []
    assert "payment.charged_back" not in await world.event_types()


async def test_a_chargeback_whose_record_nobody_can_read_is_for_an_operator_too(world: InboxWorld) -> None:
    """A bank may have taken the money back; that must not end among what is ignored."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")
    world.account.is_hidden = True
    await world.take(body_of("-3"))
    for _ in range(30):
        await world.later(3 * 3_600_000)
    (noted,) = await world.all()

    assert noted.state is NotificationState.NEEDS_ATTENTION
    assert noted.reason in {NotificationReason.UNSEEN, NotificationReason.SEARCH_WAITS}
    assert needs_operator(noted)


async def test_an_operator_replays_a_chargeback_that_shows_late(world: InboxWorld) -> None:
    """The record may follow the notification by more than the three days of its wait."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")
    world.payments.append(payment_of())
    taken = await world.take(body_of("-3"))
    for _ in range(30):
        await world.later(3 * 3_600_000)
    world.charge_back()
    await replay(world.relay, taken.id)
    await world.later()

    assert (await world.all())[0].reason is NotificationReason.CHARGEBACK_KEPT


async def test_a_chargeback_of_another_amount_is_not_the_one_that_the_record_shows(world: InboxWorld) -> None:
    """Who charges back 25.00 of order A-19 has a signature for 925.00 of order A-1 with it."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")
    world.payments.append(payment_of())
    world.charge_back()
    taken = await world.take(body_of("-3", payhere_amount="925.00"))
    assert taken.reason is NotificationReason.CHARGEBACK_NOT_SHOWN
    await world.take(body_of("-3"))

    kept = await world.chargebacks.of_payment(MERCHANT, PAYMENT_ID)
    assert kept is not None
    assert kept.amount_minor == AMOUNT_MINOR


async def test_a_chargeback_finds_the_payment_of_an_earlier_checkout(world: InboxWorld) -> None:
    """The order was paid on the page of a checkout that had been given up for another one."""
    first = await world.open_checkout(state=CheckoutState.CANCELLED, guard=None)
    await world.open_checkout(amount_minor=200_000)
    world.payments.append(payment_of())
    assert (await world.take(body_of())).reason is NotificationReason.CHECKOUT_FINISHED
    paid = await world.checkouts.get(first.id)
    assert paid is not None
    assert (paid.state, paid.payment_id) == (CheckoutState.COMPLETED, PAYMENT_ID)
    world.charge_back()
    world.clock.passed_ms += DAY_MS
    assert (await world.take(body_of("-3"))).reason is NotificationReason.CHARGEBACK_KEPT

    # The other one got nothing, and its time had ended: the search for the chargeback was its last one, too.
    assert (await world.checkouts.of_order(MERCHANT, "A-1"))[0].state is CheckoutState.EXPIRED


async def test_an_approval_goes_to_the_checkout_that_asked_for_one(world: InboxWorld) -> None:
    """Of two checkouts of an order the one of the same kind is meant."""
    first = await world.open_checkout(CheckoutKind.PREAPPROVAL, state=CheckoutState.EXPIRED, guard=None)
    second = await world.open_checkout(amount_minor=AMOUNT_MINOR + 1)
    world.payments.append(payment_of())
    assert (await world.take(body_of(customer_token=TOKEN))).reason is NotificationReason.CUSTOMER_APPROVED

    states = {each.id: each.state for each in await world.checkouts.of_order(MERCHANT, "A-1")}
    assert states == {first.id: CheckoutState.COMPLETED, second.id: CheckoutState.OPEN}


async def test_an_old_payment_pays_for_nothing_that_is_asked_now(world: InboxWorld) -> None:
    """Order ids are not unique at the gateway: an old notification, posted again, would pay for a new order."""
    checkout = await world.open_checkout()
    world.payments.append(payment_of(at_ms=checkout.created_at_ms - 86_400_000))
    taken = await world.take(body_of())

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.EARLIER_PAYMENT)
    assert (await world.checkout()).state is CheckoutState.OPEN


async def test_a_repeat_of_an_earlier_approval_brings_no_customer_back(world: InboxWorld) -> None:
    """A card that was approved twice, and then removed, is not approved a third time by a repeat of the first."""
    for number in (1, 2):
        order_id = f"A-{number}"
        await world.open_checkout(
            CheckoutKind.PREAPPROVAL, order_id=order_id, guard=order_id, amount_minor=None, first_minor=None
        )
        await world.take(body_of(order_id=order_id, payhere_amount="10.00", customer_token=TOKEN))
    [customer] = await world.all_customers()
    assert customer.order_id == "A-2"
    await remove(world.relay, customer)
    repeat = body_of(order_id="A-1", payhere_amount="10.00", customer_token=TOKEN, custom_1="again")
    assert (await world.take(repeat)).reason is NotificationReason.CUSTOMER_APPROVED

    assert [each.state for each in await world.all_customers()] == [CustomerState.REMOVED]


async def test_an_authorization_without_an_amount_is_not_the_requested_one(world: InboxWorld) -> None:
    """Nothing parts the order from the amount in what is signed: that of A- over 11000.00 is that of A-11000 over 0."""
    await world.open_checkout(CheckoutKind.AUTHORIZATION)
    taken = await world.take(
        body_of("3", payhere_amount="0.00", payment_id=None, authorization_token=AUTHORIZATION_TOKEN)
    )

    assert taken.reason is NotificationReason.OTHER_AMOUNT
    assert (await world.checkout()).state is CheckoutState.OPEN


@pytest.mark.parametrize(
    ("kind", "body", "state"),
    [
        (CheckoutKind.AUTHORIZATION, body_of("3", authorization_token=AUTHORIZATION_TOKEN), CheckoutState.NOTIFIED),
        (CheckoutKind.PREAPPROVAL, body_of(payhere_amount="10.00", customer_token=TOKEN), CheckoutState.COMPLETED),
    ],
)
async def test_a_token_proves_no_payment(
    world: InboxWorld, kind: CheckoutKind, body: bytes, state: CheckoutState
) -> None:
    """A payment in a notification that nothing shows may be an operation's, which could be proved no more then."""
    amount_minor = AMOUNT_MINOR if kind is CheckoutKind.AUTHORIZATION else None
    await world.open_checkout(kind, amount_minor=amount_minor)
    await world.take(body)

    checkout = await world.checkout()
    assert (checkout.state, checkout.payment_id) == (state, None)


@pytest.mark.parametrize("second", [CheckoutKind.PREAPPROVAL, CheckoutKind.AUTHORIZATION])
async def test_a_payment_is_of_the_checkout_that_asked_for_one(world: InboxWorld, second: CheckoutKind) -> None:
    """A customer turns back, is asked for something else, and then pays on the first page after all."""
    await world.open_checkout(state=CheckoutState.CANCELLED, guard=None)
    await world.open_checkout(second)
    world.payments.append(payment_of())
    taken = await world.take(body_of())

    assert taken.reason is NotificationReason.CHECKOUT_FINISHED
    assert (await world.checkout()).state is CheckoutState.COMPLETED
    other = await world.checkouts.get("chk_0002")
    assert other is not None
    assert other.state is CheckoutState.OPEN


async def test_a_payment_is_of_the_checkout_that_asked_for_so_much(world: InboxWorld) -> None:
    """The second checkout is for another amount, and the first one is paid: no operator has to act on that."""
    await world.open_checkout(state=CheckoutState.CANCELLED, guard=None)
    await world.open_checkout(amount_minor=500)
    world.payments.append(payment_of())

    assert (await world.take(body_of())).reason is NotificationReason.CHECKOUT_FINISHED
    assert (await world.checkout()).state is CheckoutState.COMPLETED


async def test_an_account_that_is_gone_is_waited_for(world: InboxWorld) -> None:
    """An operator renames an account while notifications wait; none may be lost for that."""
    await world.take(body_of())
    accounts = dict(world.relay.accounts)
    world.relay.accounts.clear()  # type: ignore[attr-defined]
    await world.later()
    assert [each.reason for each in await world.all()] == [NotificationReason.ACCOUNT_GONE]
    world.relay.accounts.update(accounts)  # type: ignore[attr-defined]
    await world.open_checkout()
    world.payments.append(payment_of())
    await world.later()

    assert (await world.checkout()).state is CheckoutState.COMPLETED
