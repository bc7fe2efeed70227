"""What a signature proves that covers a run of characters: order A1 with 2510.00 has the one of A125 with 10.00."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.flows.inbox_world import (
    AUTHORIZATION_TOKEN,
    MERCHANT,
    TOKEN,
    InboxWorld,
    body_of,
    inbox_world,
    payment_of,
)
from tests.flows.world import CHARGE
from tests.gateways.still_gateway import StillGateway

from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.checkouts.hosted_payment import Plan
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.notifications.notification import NotificationReason, NotificationState
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.explanations import reason_phrase
from payrelay.core.payments.operation import Operation, State
from payrelay.core.payments.proof import MatchResult
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.store.engine.database import Statement, Unit
from payrelay.store.engine.queries import query

HOLD: Final = msgspec.structs.replace(CHARGE, authorize=True, order_id="A1", amount_minor=251_000)
SAME_TEXT: Final = msgspec.structs.replace(HOLD, order_id="A125", amount_minor=1_000)
OTHER_TEXT: Final = msgspec.structs.replace(HOLD, order_id="A125", amount_minor=1_001)
HELD: Final = body_of(
    "3", order_id="A1", payhere_amount="2510.00", payment_id=None, authorization_token=AUTHORIZATION_TOKEN
)
FORM: Final[dict[str, Any]] = {"order_id": "A125", "guard": "A125", "amount_minor": 1_000, "first_minor": 1_000}
UNDONE: Final = {
    OutcomeKind.DECLINED: State.DECLINED,
    OutcomeKind.REFUSED: State.REFUSED,
    OutcomeKind.NOT_SENT: State.NOT_SENT,
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay that takes notifications."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


async def seen(world: InboxWorld, operation: Operation) -> tuple[State, str | None]:
    """Gives an operation's state, and what the newest entry of its history says was seen."""
    stored = await world.relay.journal.get(operation.id)
    assert stored is not None
    return stored.state, (await world.relay.journal.history(operation.id))[-1].evidence.seen


@pytest.mark.parametrize("kind", CheckoutKind)
async def test_a_form_of_another_order_resolves_no_lost_authorization(world: InboxWorld, kind: CheckoutKind) -> None:
    """A customer who edits a form for 10.00 would hold 10.00, and have 2510.00 called held."""
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    await world.open_checkout(kind, **FORM)
    taken = await world.take(HELD)

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.OPERATION_OPEN)
    assert await seen(world, operation) == (State.NEEDS_ATTENTION, MatchResult.TEXT_OF_ANOTHER)


async def test_the_operator_reads_why_a_notification_proves_nothing(world: InboxWorld) -> None:
    """An alert without the reason would be decided by what the notification says."""
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    await world.open_checkout(**FORM)
    await world.take(HELD)

    phrase = reason_phrase(await world.relay.journal.history(operation.id))
    assert phrase.endswith("in a notification, whose signature also fits another form or call")


@pytest.mark.parametrize("state", [CheckoutState.EXPIRED, CheckoutState.FAILED, CheckoutState.COMPLETED])
async def test_a_form_is_good_for_ever(world: InboxWorld, state: CheckoutState) -> None:
    """The gateway takes an old form; that its checkout has ended here means nothing there."""
    await world.open_checkout(state=state, **{**FORM, "guard": None})
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    await world.take(HELD)

    assert await seen(world, operation) == (State.NEEDS_ATTENTION, MatchResult.TEXT_OF_ANOTHER)


async def test_a_form_for_an_approval_that_charges_nothing_counts_with_its_amount(world: InboxWorld) -> None:
    """It has 10.00 in its hash, so its text is that of an authorization of 110.00 for a shorter order."""
    await world.open_checkout(CheckoutKind.PREAPPROVAL, order_id="B1", guard="B1", amount_minor=None, first_minor=None)
    hold = msgspec.structs.replace(HOLD, order_id="B", amount_minor=11_000)
    operation = await world.charge(OutcomeKind.UNKNOWN, hold)
    await world.take(
        body_of("3", order_id="B", payhere_amount="110.00", payment_id=None, authorization_token=AUTHORIZATION_TOKEN)
    )

    assert await seen(world, operation) == (State.NEEDS_ATTENTION, MatchResult.TEXT_OF_ANOTHER)


async def test_a_payment_is_no_proof_of_an_authorization(world: InboxWorld) -> None:
    """A token can be written into the notification of any payment, and so of an approval that holds nothing."""
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    await world.take(
        body_of("2", order_id="A1", payhere_amount="2510.00", payment_id=None, authorization_token=AUTHORIZATION_TOKEN)
    )

    assert (await seen(world, operation))[0] is State.UNKNOWN


@pytest.mark.parametrize("outcome", [OutcomeKind.SUCCEEDED, OutcomeKind.UNKNOWN, OutcomeKind.PENDING])
async def test_another_call_that_has_the_text_leaves_it_open(world: InboxWorld, outcome: OutcomeKind) -> None:
    """Its reply and its notification have the same signature, under another order and another amount."""
    await world.charge(outcome, SAME_TEXT, authorization_token="t" * 36)
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD, "k-2")
    await world.take(HELD)

    assert await seen(world, operation) == (State.NEEDS_ATTENTION, MatchResult.TEXT_OF_ANOTHER)


async def test_a_call_before_it_on_the_same_order_has_the_text_too(world: InboxWorld) -> None:
    """The notification of the first authorization, with another token in it, would prove the second one."""
    await world.charge(OutcomeKind.SUCCEEDED, HOLD, authorization_token="t" * 36)
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD, "k-2")
    await world.take(HELD)

    assert await seen(world, operation) == (State.NEEDS_ATTENTION, MatchResult.TEXT_OF_ANOTHER)


@pytest.mark.parametrize("outcome", UNDONE)
async def test_a_call_that_was_surely_not_executed_counts_for_nothing(world: InboxWorld, outcome: OutcomeKind) -> None:
    """The gateway signs nothing for it; otherwise a decline would cost an operator's time for every later attempt."""
    undone = await world.charge(outcome, HOLD)
    assert (await seen(world, undone))[0] is UNDONE[outcome]
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD, "k-2")
    await world.take(HELD)

    assert await seen(world, operation) == (State.SUCCEEDED, MatchResult.NOTIFIED)


async def test_other_texts_count_for_nothing(world: InboxWorld) -> None:
    """One character more or less is another signature."""
    await world.charge(OutcomeKind.SUCCEEDED, OTHER_TEXT, authorization_token="t" * 36)
    await world.open_checkout(**{**FORM, "amount_minor": 1_001, "first_minor": 1_001})
    await world.open_checkout(**{**FORM, "order_id": "A2", "guard": "A2"})
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD, "k-2")
    await world.take(HELD)

    assert await seen(world, operation) == (State.SUCCEEDED, MatchResult.NOTIFIED)


async def test_a_charge_that_is_made_at_once_is_never_notified_as_an_authorization(world: InboxWorld) -> None:
    """Charges are many, and their status is signed too: they need not cost an operator's time."""
    await world.charge(OutcomeKind.SUCCEEDED, msgspec.structs.replace(SAME_TEXT, authorize=False))
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD, "k-2")
    await world.take(HELD)

    assert await seen(world, operation) == (State.SUCCEEDED, MatchResult.NOTIFIED)


async def test_an_amount_with_separators_has_the_text_of_one_without(world: InboxWorld) -> None:
    """The gateway's forms never have them, and its notifications once did."""
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    await world.open_checkout(**{**FORM, "amount_minor": 251_000, "order_id": "A1", "guard": "A1"})
    await world.take(
        body_of("3", order_id="A1", payhere_amount="2,510.00", payment_id=None, authorization_token=AUTHORIZATION_TOKEN)
    )

    assert await seen(world, operation) == (State.NEEDS_ATTENTION, MatchResult.TEXT_OF_ANOTHER)


@pytest.mark.parametrize("signs_elsewhere", [True, None])
async def test_a_form_that_was_signed_elsewhere_proves_nothing(
    world: InboxWorld, *, signs_elsewhere: bool | None
) -> None:
    """Payrelay knows no text of a form that a shop signs itself; and where nobody has said so, a shop may."""
    world.account.signs_elsewhere = signs_elsewhere
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    taken = await world.take(HELD)

    assert taken.reason is NotificationReason.OPERATION_OPEN
    assert await seen(world, operation) == (State.NEEDS_ATTENTION, MatchResult.SIGNED_ELSEWHERE)


async def test_what_one_account_of_a_merchant_says_holds_for_all(world: InboxWorld) -> None:
    """Accounts of one merchant may share a secret."""
    other = StillGateway(world.clock, merchant=MERCHANT)
    other.signs_elsewhere = None
    world.relay = replace(world.relay, accounts={**world.relay.accounts, "other": other})
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    await world.take(HELD)

    assert await seen(world, operation) == (State.NEEDS_ATTENTION, MatchResult.SIGNED_ELSEWHERE)


async def test_what_is_no_longer_in_the_list_counts_too(world: InboxWorld) -> None:
    """Who takes the texts of forms and calls out of the list proves nothing by that."""
    await world.charge(OutcomeKind.SUCCEEDED, SAME_TEXT, authorization_token="t" * 36)
    await world.database.write(_run("DELETE FROM signed_texts"))
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD, "k-2")
    await world.open_checkout(CheckoutKind.RECURRING, plan=Plan(recurrence="1 Month", duration="1 Year"), **FORM)
    await world.take(HELD)

    assert await seen(world, operation) == (State.NEEDS_ATTENTION, MatchResult.TEXT_OF_ANOTHER)


async def approval(world: InboxWorld, order_id: str = "3194865") -> None:
    """Opens a checkout for an approval that charges nothing."""
    await world.open_checkout(
        CheckoutKind.PREAPPROVAL, order_id=order_id, guard=order_id, amount_minor=None, first_minor=None
    )


def approved(amount: str, order_id: str = "3194865", *, token: str = TOKEN) -> bytes:
    """Writes the notification of an approval."""
    return body_of(order_id=order_id, payhere_amount=amount, customer_token=token)


async def test_a_payment_takes_over_no_approval(world: InboxWorld) -> None:
    """Order 319486 paid with 599.00 has the signature of order 3194865 with 99.00."""
    await approval(world)
    await world.open_checkout(order_id="319486", guard="319486", amount_minor=59_900, first_minor=59_900)
    taken = await world.take(approved("99.00"))

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.OTHER_AMOUNT)
    assert await world.all_customers() == []


async def test_a_form_that_has_the_text_of_an_approval_takes_it_over_neither(world: InboxWorld) -> None:
    """With 510.00 in place of 599.00 the amount is right, too."""
    await approval(world)
    await world.open_checkout(order_id="319486", guard="319486", amount_minor=51_000, first_minor=51_000)
    taken = await world.take(approved("10.00"))

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.OTHER_TEXT)
    assert await world.all_customers() == []


@pytest.mark.parametrize("authorize", [True, False])
async def test_a_call_that_has_the_text_of_an_approval_takes_it_over_neither(
    world: InboxWorld, *, authorize: bool
) -> None:
    """The reply of a charge has the signature of a payment's notification."""
    await approval(world)
    call = msgspec.structs.replace(CHARGE, authorize=authorize, order_id="319486", amount_minor=51_000)
    await world.charge(OutcomeKind.SUCCEEDED, call, authorization_token="t" * 36 if authorize else None)

    assert (await world.take(approved("10.00"))).reason is NotificationReason.OTHER_TEXT


async def test_a_later_payment_of_a_plan_takes_over_no_approval(world: InboxWorld) -> None:
    """The form of a plan has its first payment in its hash, and its later payments are notified with another amount."""
    await approval(world)
    plan = Plan(recurrence="1 Month", duration="1 Year", startup_fee_minor=5_000)
    await world.open_checkout(
        CheckoutKind.RECURRING,
        plan=plan,
        order_id="319486",
        guard="319486",
        amount_minor=51_000,
        first_minor=56_000,
    )

    assert (await world.take(approved("10.00"))).reason is NotificationReason.OTHER_TEXT


async def test_an_approval_counts_with_the_signed_amount(world: InboxWorld) -> None:
    """What the gateway notifies there is documented nowhere; this is what its form has."""
    await approval(world)

    assert (await world.take(approved("10.00"))).reason is NotificationReason.CUSTOMER_APPROVED


@pytest.mark.parametrize("amount", ["0.00", "1.00"])
async def test_an_approval_counts_with_an_amount_that_a_setting_lists(world: InboxWorld, amount: str) -> None:
    """An operator who sees what the gateway notifies can say so."""
    await approval(world)
    assert (await world.take(approved(amount))).reason is NotificationReason.OTHER_AMOUNT
    world.account.approval_amounts = frozenset({0, 100})

    assert (await world.take(approved(amount, token="B" * 32))).reason is NotificationReason.CUSTOMER_APPROVED


async def test_an_approval_of_an_order_that_was_opened_again_counts(world: InboxWorld) -> None:
    """A customer who comes back is asked for the same by a second form: either may have been used."""
    await world.open_checkout(
        CheckoutKind.PREAPPROVAL,
        order_id="3194865",
        guard=None,
        amount_minor=None,
        first_minor=None,
        state=CheckoutState.EXPIRED,
    )
    await approval(world)

    assert (await world.take(approved("10.00"))).reason is NotificationReason.CUSTOMER_APPROVED


async def test_an_old_approval_whose_amount_is_not_known_stops_no_other_one(world: InboxWorld) -> None:
    """Where orders are numbers, most orders begin like an earlier one."""
    await approval(world, "319486")
    await world.database.write(_run("DELETE FROM signed_texts"))
    await approval(world)

    assert (await world.take(approved("10.00"))).reason is NotificationReason.CUSTOMER_APPROVED


async def test_a_payment_counts_by_the_gateways_record_whatever_its_text(world: InboxWorld) -> None:
    """The record names order and amount apart, so that no other form matters, and no edited one helps."""
    await world.open_checkout(order_id="A1", guard="A1", amount_minor=251_000, first_minor=251_000)
    await world.open_checkout(**FORM)
    world.payments.append(payment_of(order_id="A125", amount_minor=1_000))
    edited = await world.take(body_of(order_id="A1", payhere_amount="2510.00"))
    own = await world.take(body_of(order_id="A125", payhere_amount="10.00"))

    assert edited.reason is NotificationReason.NOT_SHOWN
    assert own.reason is NotificationReason.CHECKOUT_FINISHED
    (unpaid,) = await world.checkouts.of_order(MERCHANT, "A1")
    assert unpaid.state is CheckoutState.OPEN


async def test_a_lost_charge_counts_by_the_gateways_record_whatever_its_text(world: InboxWorld) -> None:
    """The notification of a payment is only a reason to ask the gateway."""
    operation = await world.charge(OutcomeKind.UNKNOWN, msgspec.structs.replace(HOLD, authorize=False))
    world.payments.append(payment_of(order_id="A125", amount_minor=1_000))
    await world.take(body_of(order_id="A1", payhere_amount="2510.00"))

    assert (await seen(world, operation))[0] is State.UNKNOWN


def _run(sql: str) -> Unit[None]:
    yield Statement(query(sql), ())


LARGE: Final[dict[str, Any]] = {"order_id": "A1", "guard": "A1", "amount_minor": 251_000, "first_minor": 251_000}


def failed(status: str = "-2") -> bytes:
    """Writes the notification of an attempt at the large order that failed."""
    return body_of(status, order_id="A1", payhere_amount="2510.00", payment_id=None)


@pytest.mark.parametrize("status", ["-1", "-2"])
async def test_a_strangers_declined_card_ends_no_page(world: InboxWorld, status: str) -> None:
    """A declined card is free: with it a stranger could end a page as often as the shop opens it."""
    checkout = await world.open_checkout(**LARGE)
    await world.open_checkout(**FORM)
    taken = await world.take(failed(status))

    assert (taken.state, taken.reason) == (NotificationState.IGNORED, NotificationReason.INFORMED)
    assert await world.relay.checkouts.get(checkout.id) == checkout
    assert "signature_fits_another" in world.world.log_events


async def test_a_declined_charge_of_another_order_ends_no_page(world: InboxWorld) -> None:
    """A call has a signed text as a form has."""
    checkout = await world.open_checkout(**LARGE)
    await world.charge(OutcomeKind.SUCCEEDED, SAME_TEXT, authorization_token="t" * 36)
    await world.take(failed())

    assert await world.relay.checkouts.get(checkout.id) == checkout


async def test_a_declined_card_ends_the_page_of_its_own_order(world: InboxWorld) -> None:
    """A second form of the order has the same text, and whichever of the two was used, this attempt failed."""
    await world.open_checkout(**LARGE | {"guard": None, "state": CheckoutState.EXPIRED})
    checkout = await world.open_checkout(**LARGE)
    taken = await world.take(failed())
    stored = await world.relay.checkouts.get(checkout.id)

    assert taken.reason is NotificationReason.CHECKOUT_FINISHED
    assert stored is not None
    assert stored.state is CheckoutState.FAILED


async def test_where_commits_are_lost_a_form_that_nobody_knows_of_may_have_the_text(world: InboxWorld) -> None:
    """The list of signed texts is lost with them, and a customer may still pay with a form of then."""
    lost = LostWindow(since_ms=1, until_ms=2)
    newest = Incarnation(
        number=2, reason=Beginning.RECOVERED, began_at_ms=2, lost=lost, ended_recovery_at_ms=world.clock.now_ms()
    )

    async def read() -> DatabaseIdentity:
        return DatabaseIdentity(id="0" * 32, incarnations=(newest,))

    world.relay = replace(
        world.relay,
        database=replace(world.relay.database, lost_commits=LostCommits(read, world.clock, world.relay.log)),
    )
    operation = await world.charge(OutcomeKind.UNKNOWN, HOLD)
    await world.take(HELD)

    assert await seen(world, operation) == (State.NEEDS_ATTENTION, MatchResult.SIGNED_ELSEWHERE)
