from dataclasses import replace
from typing import Final

import msgspec
import pytest
from tests.flows.operators.test_decide import decision_on
from tests.flows.payments.test_refund import PART
from tests.flows.subscriptions.test_cancel_subscription import CANCEL
from tests.flows.subscriptions.test_retry_subscription import RETRY
from tests.flows.world import CHARGE, KEYED_MS, START_MS, SteppingJournal, World, asked, outcome_of
from tests.samples import ASKED, CHECKOUT

from payrelay.core.calls import Charge, Effect, Refund
from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState, Details
from payrelay.core.gateways.capabilities import ResolutionWay, resolution_way_of
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import Event, Kind, State
from payrelay.core.payments.payment import NoObservation, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.payments.proof import MatchResult
from payrelay.core.payments.schedules import DAY_MS, REAPPEARANCE_MS
from payrelay.errors import Code
from payrelay.flows.operators.decide import decide
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund
from payrelay.flows.resolution.resend import SENDINGS_MAX
from payrelay.flows.resolution.resend_cancel import resolve_cancel
from payrelay.flows.resolution.resend_capture import resolve_capture
from payrelay.flows.resolution.resolve import open_case, resolve_due, resolve_one
from payrelay.flows.resolution.resolvers import resolver_of
from payrelay.flows.resolution.search_payments import (
    resolve_charge,
    resolve_refund,
    resolve_retry,
    resolve_unseen,
    resolve_unseen_authorization,
)
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.flows.subscriptions.retry_subscription import retry_subscription
from payrelay.gateways.payhere.account import capabilities_of
from payrelay.store.payments.journal import HISTORY_ENTRIES_MAX


def payment_of(call: Charge) -> Payment:
    """Gives the payment that a charge makes at the start of the world."""
    return Payment(
        payment_id="320",
        order_id=call.order_id,
        at_ms=START_MS,
        description=call.items,
        status=PaymentStatus.RECEIVED,
        currency=call.currency,
        amount_minor=call.amount_minor,
    )


async def failed_charge(world: World) -> None:
    """Loses the reply to a charge that is then disproved."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    gateway, row = world.relay.accounts["gateway"], await world.operation()
    case = await open_case(world.relay, gateway, row, is_urgent=False, until_s=0)
    await case.disprove(Evidence())


class Going(SteppingJournal):
    """A journal whose server is replaced, once it has read a history, by one that lacks the operation."""

    async def call_of(self, operation_id: str) -> Effect:
        """Finds nothing any more."""
        raise LookupError(f"no operation {operation_id}")


async def test_an_operation_that_goes_with_its_server_is_left_alone(world: World) -> None:
    """The loss itself is told once. A fault of the program's own for each open operation would hide it."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    world.clock.passed_ms += DAY_MS
    due = await world.relay.resolution.lease_due(world.clock.now_ms(), leased_until_ms=world.clock.now_ms(), limit=1)
    going = Going(world.database, world.steps)
    for operation in due:
        await resolve_one(replace(world.relay, journal=going), operation)

    assert (len(due), world.log_events) == (1, [])


async def test_inquiries_about_a_failure_end_after_a_month(world: World) -> None:
    """Without an end each failure would cost a call a day for ever, and outgrow what is read of its history."""
    await failed_charge(world)
    for _ in range(REAPPEARANCE_MS // DAY_MS):
        assert (await world.operation()).inquire_at_ms is not None
        world.clock.passed_ms += DAY_MS
        assert await resolve_due(world.relay) == 1
    assert ((await world.operation()).state, (await world.operation()).inquire_at_ms) == (State.FAILED, None)


async def test_an_inquiry_about_a_failure_does_not_prolong_its_key(world: World) -> None:
    """A key is kept for a time from the final state on, and an inquiry that shows nothing is no new state."""
    await failed_charge(world)
    ends_at_ms = world.clock.now_ms() + KEYED_MS
    world.clock.passed_ms += DAY_MS
    await resolve_due(world.relay)
    assert (await world.operation()).claim_ends_at_ms == ends_at_ms


async def test_a_cancellation_that_is_rejected_for_weeks_needs_an_operator(world: World) -> None:
    """Its history must not outgrow what is read of it: no inquiry and no alert would follow."""
    world.account.script.extend(
        [outcome_of(OutcomeKind.UNKNOWN), *[outcome_of(OutcomeKind.NOT_EXECUTED)] * SENDINGS_MAX]
    )
    await cancel_subscription(world.relay, asked(world.relay), CANCEL)
    for _ in range(SENDINGS_MAX + 1):
        world.clock.passed_ms += DAY_MS
        await resolve_due(world.relay)
    history = await world.journal.history((await world.operation()).id)
    assert ((await world.operation()).state, history[-1].event) == (State.NEEDS_ATTENTION, Event.UNCLEAR)
    assert len(history) < HISTORY_ENTRIES_MAX


async def test_a_failed_charge_that_shows_itself_takes_its_guard_back(world: World) -> None:
    """Until an operator has looked, a second charge of the order would be one too many."""
    await failed_charge(world)
    world.clock.passed_ms += DAY_MS
    world.account.observations.append(PaymentsSeen(payments=(payment_of(CHARGE),), evidence=Evidence()))
    await resolve_due(world.relay)
    row = await world.operation()
    assert (row.state, row.guard) == (State.NEEDS_ATTENTION, row.subject)


APPROVED: Final[dict[str, object]] = {
    "state": CheckoutState.COMPLETED,
    "kind": CheckoutKind.PREAPPROVAL,
    "amount_minor": None,
    "first_minor": None,
}
FORMS: Final[dict[str, tuple[dict[str, object], int | None, bool]]] = {
    "a page that was paid": ({"state": CheckoutState.COMPLETED, "payment_id": "319"}, CHARGE.amount_minor, True),
    "a page that was closed": ({"state": CheckoutState.CANCELLED, "closed_at_ms": 1}, CHARGE.amount_minor, True),
    "a page of another principal": ({"principal": "B"}, CHARGE.amount_minor, True),
    "a hold": ({"kind": CheckoutKind.AUTHORIZATION}, CHARGE.amount_minor, True),
    "an approval that signed the amount": (APPROVED, CHARGE.amount_minor, True),
    "an approval": (APPROVED, 1_000, False),
    "another amount": ({"amount_minor": 1, "first_minor": 1}, 1, False),
    "another order with its text": ({"order_id": "A"}, CHARGE.amount_minor, True),
    "another order": ({"order_id": "A"}, 1, False),
    "no form at all": ({"order_id": "A"}, None, False),
}
"""What has a form, the amount that is signed with this order in it, and whether a payment may be that form's."""


@pytest.mark.parametrize("key", ["k", None])
async def test_a_payment_that_may_be_of_a_form_proves_no_lost_charge(world: World, key: str | None) -> None:
    """A customer may have paid the form again: the charge would be called done, and the customer's goods sent.

    A form that can't have made the payment calls nobody.
    """
    gateway, found = world.relay.accounts["gateway"], {}
    for number, (name, (members, signed_minor, _)) in enumerate(FORMS.items()):
        call = msgspec.structs.replace(CHARGE, order_id=f"B-{number}")
        world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
        await charge(world.relay, asked(world.relay, key and f"{key}-{number}"), call)
        ended = {"id": f"chk_{number}", "order_id": call.order_id, "state": CheckoutState.EXPIRED, "guard": None}
        page = msgspec.structs.replace(CHECKOUT, **ended | members)
        await world.relay.checkouts.add(page, Details(secret="s", asked=ASKED))
        if signed_minor is not None:
            text = SignedText(order_id=call.order_id, amount_minor=signed_minor, currency=call.currency)
            await world.relay.signed_texts.keep_form(page, [text], at_ms=START_MS)
        row = await world.operation()
        paid = msgspec.structs.replace(payment_of(call), payment_id=f"32{number}", at_ms=row.created_at_ms)
        world.account.observations.append(PaymentsSeen(payments=(paid,), evidence=Evidence()))
        await resolve_charge(await open_case(world.relay, gateway, row, is_urgent=False, until_s=0))
        entry = (await world.journal.history(row.id))[-1]
        found[name] = (entry.state, entry.evidence.seen)

    doubted, proved = (State.UNKNOWN, MatchResult.MAY_BE_OF_A_FORM), (State.SUCCEEDED, MatchResult.ONE_FITS)
    assert found == {name: doubted if is_doubted else proved for name, (_, _, is_doubted) in FORMS.items()}


async def test_a_guard_that_another_charge_holds_by_then_stays_there(world: World) -> None:
    """The customer was told that the charge failed, and has paid again; an operator sees both."""
    await failed_charge(world)
    first = await world.operation()
    world.account.script.append(outcome_of(OutcomeKind.DIFFERED))
    await charge(world.relay, asked(world.relay, "k-2"), CHARGE)
    world.clock.passed_ms += DAY_MS
    case = await open_case(world.relay, world.relay.accounts["gateway"], first, is_urgent=False, until_s=0)
    await case.apply(Report(event=Event.REAPPEARED))
    assert (case.operation.state, case.operation.guard) == (State.NEEDS_ATTENTION, None)


async def test_an_operation_whose_inquiries_fail_for_a_week_needs_an_operator(world: World) -> None:
    """A record that can't be read, credentials that are refused: nobody would ever be told."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    for _ in range(8):
        world.clock.passed_ms += DAY_MS
        world.account.observations.append(NoObservation(code=Code.GATEWAY_BAD_REPLY, evidence=Evidence()))
        await resolve_due(world.relay)
    assert (await world.operation()).state is State.NEEDS_ATTENTION


async def test_an_operation_without_its_account_for_a_week_needs_an_operator(world: World) -> None:
    """No inquiry can be made without the account."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    world.accounts.clear()
    world.clock.passed_ms += DAY_MS
    await resolve_due(world.relay)
    early = (await world.operation()).state
    world.clock.passed_ms += 6 * DAY_MS
    await resolve_due(world.relay)
    assert (early, (await world.operation()).state) == (State.UNKNOWN, State.NEEDS_ATTENTION)


async def test_no_inquiry_follows_a_decided_failure_of_a_part_refund(world: World) -> None:
    """Nothing at the gateway shows a part refund, so that each inquiry would be a call for nothing."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await refund(world.relay, asked(world.relay), PART)
    await decide(world.relay, decision_on(await world.operation(), State.FAILED))
    assert (await world.operation()).inquire_at_ms is None


async def test_a_zero_in_front_hides_no_other_refund_of_a_payment(world: World) -> None:
    """A refund that shows would else be taken for one of which the answer was lost."""
    await refund(world.relay, asked(world.relay, "k-1"), PART)
    await refund(world.relay, asked(world.relay, "k-2"), Refund(payment_id="0" + PART.payment_id, description="late"))
    row = await world.operation()
    assert row.payment_id == PART.payment_id
    assert await world.relay.resolution.has_other_refund(row.merchant, PART.payment_id, row.id)


async def test_the_payment_of_a_charge_that_was_called_failed_too_early_proves_no_other(world: World) -> None:
    """A minute later the shop charges again, loses that reply too, and the first one's payment shows."""
    await failed_charge(world)
    world.clock.passed_ms += 60_000
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay, "k-2"), CHARGE)
    world.clock.passed_ms += 2_000
    world.account.observations.append(PaymentsSeen(payments=(payment_of(CHARGE),), evidence=Evidence()))
    await resolve_due(world.relay)
    assert (await world.operation()).state is State.UNKNOWN


async def retried_after_a_success(world: World, *, pause_ms: int) -> State:
    """Retries, and after a pause once more with a lost reply; then a payment shows, dated as the second sending."""
    await retry_subscription(world.relay, asked(world.relay, "k-1"), RETRY)
    world.clock.passed_ms += pause_ms
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await retry_subscription(world.relay, asked(world.relay, "k-2"), RETRY)
    shown = msgspec.structs.replace(payment_of(CHARGE), at_ms=world.clock.now_ms())
    world.clock.passed_ms += 2_000
    world.account.observations.append(PaymentsSeen(payments=(shown,), evidence=Evidence()))
    await resolve_due(world.relay)
    return (await world.operation()).state


async def test_the_payment_of_the_retry_before_it_proves_no_second_one(world: World) -> None:
    """The gateway says that a retry was done and names no payment, which may show itself minutes later."""
    assert await retried_after_a_success(world, pause_ms=30_000) is State.UNKNOWN


async def test_a_retry_of_an_hour_ago_does_not_compete(world: World) -> None:
    """Its payment would be dated by its own sending, an hour before."""
    assert await retried_after_a_success(world, pause_ms=3_600_000) is State.SUCCEEDED


async def test_a_payment_of_another_order_than_the_plans_proves_no_retry(world: World) -> None:
    """What was read before the sending says whose the plan is. One look that differs must not book it elsewhere."""
    earlier = msgspec.structs.replace(payment_of(CHARGE), payment_id="1")
    world.account.observations.append(PaymentsSeen(payments=(earlier,), evidence=Evidence()))
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await retry_subscription(world.relay, asked(world.relay), RETRY)
    moved = [
        msgspec.structs.replace(each, order_id="B-1", at_ms=world.clock.now_ms())
        for each in (earlier, payment_of(CHARGE))
    ]
    world.clock.passed_ms += 2_000
    world.account.observations.append(PaymentsSeen(payments=tuple(moved), evidence=Evidence()))
    await resolve_due(world.relay)
    operation = await world.operation()
    assert (operation.state, operation.order_id, operation.payment_id) == (State.NEEDS_ATTENTION, None, None)


@pytest.mark.parametrize(
    ("kind", "resolver"),
    [
        (Kind.CHARGE, resolve_charge),
        (Kind.AUTHORIZATION, resolve_unseen_authorization),
        (Kind.CAPTURE, resolve_capture),
        (Kind.REFUND, resolve_refund),
        (Kind.VOID, resolve_unseen),
        (Kind.RETRY, resolve_retry),
        (Kind.CANCEL, resolve_cancel),
    ],
)
def test_the_capabilities_of_payhere_lead_to_its_resolvers(kind: Kind, resolver: object) -> None:
    """PayHere keeps no keys and shows no authorizations: no charge is ever resent to resolve it."""
    for is_live in (False, True):
        can = capabilities_of(is_live=is_live, is_signing=True, signs_elsewhere=None)
        assert resolver_of(kind, resolution_way_of(kind, can, is_key_kept=True)) is resolver


@pytest.mark.parametrize("kind", sorted(set(Kind) - {Kind.CAPTURE, Kind.CANCEL}))
def test_a_kind_without_a_resolver_for_resending_needs_an_operator(kind: Kind) -> None:
    """A capability without a resolver must not send money."""
    assert resolver_of(kind, ResolutionWay.SEND_AGAIN) is resolve_unseen
