"""What a payer does on a hosted page, and what that leads to: money, tokens, holds, subscriptions, notifications."""

from datetime import datetime, timedelta

import msgspec

from payrelay_simulator.clock import GATEWAY_ZONE
from payrelay_simulator.installments import Course, go_on, plan_next, receive_installment
from payrelay_simulator.ledger_lines import payment_line
from payrelay_simulator.messages import (
    AUTHORIZED,
    CANCELED,
    FAILED,
    PENDING,
    SUCCESS,
    hold_message,
    payment_message,
    preapproval_message,
    recurring_message,
)
from payrelay_simulator.notifications import Message
from payrelay_simulator.pages.cards import Means
from payrelay_simulator.pages.forms import HostedForm, Plan
from payrelay_simulator.pages.visits import Visit
from payrelay_simulator.payments import HOLD_LIFE, receive, set_aside
from payrelay_simulator.records import Card, Customer, Hold, Payment, Refund, Subscription
from payrelay_simulator.turn import Turn
from payrelay_simulator.world import World


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What a payment on a page led to; `numbers` are those of its notifications."""

    payment_id: int | None
    numbers: tuple[int, ...] = ()
    is_pending: bool = False


def open_visit(world: World, form: HostedForm) -> Visit:
    """Begin a visit with a form that is in order."""
    visit = Visit(visit_id=world.state.draws.uuid("visit"), form=form)
    world.visits.put(visit)
    return visit


def pay(world: World, visit: Visit, means: Means, *, arrival: int | None = None) -> Visit:
    """Pay once. A visit that is over stays as it is, so that a repeated click takes no more money."""
    if visit.state != "open":
        return visit
    form = visit.form
    fault = world.faults.draw("pay", form.order_id)
    turn = world.turn_of(form.merchant, arrival, fault)
    decline = turn.fault_named("decline")
    refusal = means.refusal if decline is None else decline.reason.replace("_", " ")
    if refusal is not None:
        return _refuse(world, turn, visit, means.card, refusal)
    ended = EFFECTS[form.kind](turn, form, means.card)
    paid = msgspec.structs.replace(
        visit,
        state="paid",
        refusal=None,
        method=means.card.method,
        payment_id=ended.payment_id,
        is_pending=ended.is_pending,
        notifications=ended.numbers,
    )
    world.visits.put(paid)
    return paid


def cancel(world: World, visit: Visit) -> Visit:
    """End the visit without paying; one that is over stays as it is."""
    if visit.state != "open":
        return visit
    numbers: tuple[int, ...] = ()
    if world.switches.cancel_notification == "sent":
        turn = world.turn_of(visit.form.merchant, None)
        message = _failure(turn, visit.form, Card(), CANCELED, "canceled by the payer")
        numbers = turn.tell(message)
    cancelled = msgspec.structs.replace(visit, state="cancelled", notifications=numbers)
    world.visits.put(cancelled)
    return cancelled


def _refuse(world: World, turn: Turn, visit: Visit, card: Card, refusal: str) -> Visit:
    if turn.switches.refusal_notification == "sent":
        turn.tell(_failure(turn, visit.form, card, FAILED, refusal))
    refused = msgspec.structs.replace(visit, refusal=refusal, refusals=visit.refusals + 1, method=card.method)
    world.visits.put(refused)
    return refused


def _failure(turn: Turn, form: HostedForm, card: Card, status_code: int, reason: str) -> Message:
    """Return what is told of an attempt that took nothing."""
    if form.kind == "authorization":
        hold = msgspec.structs.replace(_hold(turn, form, card), authorization_token="")
        return hold_message("authorization", hold, status_code, has_payment_id=_names_payment(turn), reason=reason)
    payment = _payment(turn, form, card)
    if form.kind == "preapproval":
        return preapproval_message(payment, status_code, "", reason=reason)
    if form.plan is not None:
        subscription = _subscription(turn, form, form.plan, "", subscription_id=0)
        return recurring_message(payment, subscription, "AUTHORIZATION_FAILED", next_at=None, reason=reason)
    return payment_message("payment", payment, status_code, reason=reason)


def _payment(turn: Turn, form: HostedForm, card: Card) -> Payment:
    return Payment(
        payment_id=turn.state.next_payment_id(),
        merchant_id=form.merchant.merchant_id,
        order_id=form.order_id,
        at=turn.now,
        description=form.title,
        currency=form.currency,
        amount_cents=form.due_cents,
        person=form.person,
        card=card,
        custom_1=form.custom_1,
        custom_2=form.custom_2,
        visible_at=turn.visible_at(),
        notify_url=form.notify_url,
    )


def _names_payment(turn: Turn) -> bool:
    return turn.switches.authorize_payment_id == "present"


def _take_payment(turn: Turn, form: HostedForm, card: Card) -> Ended:
    payment = _payment(turn, form, card)
    pending = turn.fault_named("pending")
    if pending is None:
        receive(turn, payment)
        return _ended(turn, payment.payment_id, payment_message("payment", payment, SUCCESS))
    ended = _ended(turn, payment.payment_id, payment_message("payment", payment, PENDING))
    if pending.settles:
        receive(turn, payment)
        turn.tell(payment_message("payment", payment, SUCCESS), at=payment.visible_at)
    return msgspec.structs.replace(ended, is_pending=True)


def _ended(turn: Turn, payment_id: int | None, message: Message) -> Ended:
    return Ended(payment_id=payment_id, numbers=turn.tell(message))


def _preapprove(turn: Turn, form: HostedForm, card: Card) -> Ended:
    payment = _payment(turn, form, card)
    receive(turn, payment)
    customer_token = _new_customer(turn, form, card)
    if form.amount_cents is None:
        _give_back(turn, payment)
    return _ended(turn, payment.payment_id, preapproval_message(payment, SUCCESS, customer_token))


def _new_customer(turn: Turn, form: HostedForm, card: Card) -> str:
    token = turn.state.draws.token("customer token")
    turn.state.customers[token] = Customer(
        customer_token=token, merchant_id=form.merchant.merchant_id, person=form.person, card=card
    )
    return token


def _give_back(turn: Turn, payment: Payment) -> None:
    """Refund at once what was only taken to try the card."""
    refund = Refund(refund_id=turn.state.next_refund_id(), at=turn.now, amount_cents=payment.amount_cents)
    turn.state.put_payment(msgspec.structs.replace(payment, refunds=(refund,)))
    turn.enter(payment_line(payment, "refund", payment.amount_cents, refund.refund_id))


def _hold(turn: Turn, form: HostedForm, card: Card) -> Hold:
    return Hold(
        authorization_token=turn.state.draws.uuid("authorization token"),
        payment_id=turn.state.next_payment_id(),
        merchant_id=form.merchant.merchant_id,
        order_id=form.order_id,
        expires_at=turn.now + HOLD_LIFE,
        description=form.title,
        currency=form.currency,
        amount_cents=form.due_cents,
        person=form.person,
        card=card,
        custom_1=form.custom_1,
        custom_2=form.custom_2,
        notify_url=form.notify_url,
    )


def _authorize(turn: Turn, form: HostedForm, card: Card) -> Ended:
    hold = _hold(turn, form, card)
    set_aside(turn, hold)
    message = hold_message("authorization", hold, AUTHORIZED, has_payment_id=_names_payment(turn))
    return _ended(turn, None, message)


def _subscription(
    turn: Turn, form: HostedForm, plan: Plan, customer_token: str, *, subscription_id: int
) -> Subscription:
    return Subscription(
        subscription_id=subscription_id,
        merchant_id=form.merchant.merchant_id,
        order_id=form.order_id,
        customer_token=customer_token,
        started_at=_start(turn, plan),
        description=form.title,
        currency=form.currency,
        amount_cents=form.amount_cents or 0,
        recurrence=plan.recurrence,
        duration=plan.duration,
        startup_fee_cents=plan.startup_fee_cents,
        cycle=0,
        custom_1=form.custom_1,
        custom_2=form.custom_2,
        notify_url=form.notify_url,
        retries_max=plan.retries_max,
        is_auto_cancelled=plan.is_auto_cancelled,
    )


def _start(turn: Turn, plan: Plan) -> datetime:
    """Return when the first installment is due: now, or on the day that was named, one step off in accelerated time."""
    if plan.starts_on is None:
        return turn.now
    if turn.switches.installments == "accelerated":
        return turn.now + timedelta(seconds=turn.switches.accelerated_interval_s)
    return datetime.combine(plan.starts_on, datetime.min.time(), tzinfo=GATEWAY_ZONE)


def _subscribe(turn: Turn, form: HostedForm, card: Card) -> Ended:
    plan = form.plan
    if plan is None:
        raise RuntimeError("a recurring payment has a plan")
    token = _new_customer(turn, form, card)
    subscription = _subscription(turn, form, plan, token, subscription_id=turn.state.next_subscription_id())
    if plan.starts_on is not None:
        # The card is only tried; the first installment comes on its day.
        payment = _payment(turn, form, card)
        receive(turn, payment)
        _give_back(turn, payment)
        plan_next(turn.state, subscription, subscription.started_at)
        message = recurring_message(payment, subscription, "AUTHORIZATION_SUCCESS", next_at=subscription.started_at)
        return _ended(turn, payment.payment_id, message)
    course = Course(state=turn.state, ledger=turn.ledger, switches=turn.switches, visible_at=turn.visible_at())
    subscription = receive_installment(course, subscription, "installment", turn.now, arrival=turn.arrival)
    numbers = go_on(course, subscription, turn.now, "AUTHORIZATION_SUCCESS")
    return Ended(payment_id=subscription.payment_ids[-1], numbers=numbers)


EFFECTS = {
    "payment": _take_payment,
    "preapproval": _preapprove,
    "authorization": _authorize,
    "recurring": _subscribe,
}
