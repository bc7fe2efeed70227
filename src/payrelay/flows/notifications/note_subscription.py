"""Stores what a notification reports of a subscription, once the gateway shows it."""

from typing import Final

import msgspec

from payrelay.core.calls import PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, Details
from payrelay.core.checkouts.checkout_proof import (
    JudgedPlan,
    PlanRuling,
    contradiction_of,
    judge_first_payment,
    judge_plan,
)
from payrelay.core.moments import day_at
from payrelay.core.notifications.notification import NotificationReason
from payrelay.core.payments.payment import NoObservation, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.subscriptions.schedule import may_be_next
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState, fact_of_installment, fact_of_notification
from payrelay.flows.notifications.context import NotificationContext
from payrelay.runtime.hooks import FlowPoint
from payrelay.store.subscriptions import SubscriptionOwner

_ENDS: Final = frozenset({SubscriptionState.STOPPED, SubscriptionState.COMPLETED})
_REASONS: Final = {
    PlanRuling.OTHER_AMOUNT: NotificationReason.OTHER_AMOUNT,
    PlanRuling.OTHER_SCHEDULE: NotificationReason.OTHER_SCHEDULE,
    PlanRuling.EARLIER: NotificationReason.EARLIER_PAYMENT,
}
"""The reasons of a notification whose subscription contradicts what was asked for."""


async def judge_subscription(context: NotificationContext, checkout: Checkout) -> JudgedPlan | NotificationReason:
    """Judges whether a notification's subscription is the one that its checkout asked for, by what the gateway shows.

    Of a subscription that the checkout has already, only the first payment is judged. Returns the notification's reason
    where the gateway doesn't show the subscription, or can't be asked. Raises StoreError.
    """
    plan = await _shown_plan(context)
    if isinstance(plan, NotificationReason):
        return plan
    observation = await context.inquire(PaymentsOfSubscription(subscription_id=int(plan.subscription_id)))
    if isinstance(observation, NoObservation):
        return NotificationReason.UNSEEN
    payments = observation.payments if isinstance(observation, PaymentsSeen) else ()
    if checkout.subscription_id == plan.subscription_id:
        return judge_first_payment(checkout, payments)
    details = await _details_beside(context, checkout, plan)
    return judge_plan(checkout, details, plan, payments, timezone=context.account.timezone)


async def note_subscription(
    context: NotificationContext,
    checkout: Checkout | None,
    *,
    payment: Payment | None,
    ruling: PlanRuling | None = None,
) -> NotificationReason | None:
    """Stores what a genuine notification reports of a subscription, and what the gateway shows of it at that moment.

    Neither the subscription's id nor its state is signed. They count where the gateway shows the subscription for the
    notification's order. An end counts when it is shown, and paid installments as far as they are shown. A late
    notification doesn't make an ended subscription active again.

    A subscription that contradicts what its checkout asked for is for an operator. Once the gateway shows that it was
    stopped, as an operator may do there, it is stored, and completes nothing.

    ``checkout`` is that of the order, and names the subscription's principal. ``payment`` is the charged payment, where
    the gateway showed it. ``ruling`` is that of ``judge_subscription`` about the checkout; at None the subscription's
    record alone is compared. Returns the notification's reason; None where it reports no subscription. May be repeated.
    Raises StoreError.
    """
    relay, content = context.relay, context.content
    fact = fact_of_notification(content, context.notification)
    if fact is None:
        return None
    plan = await _shown_plan(context)
    if isinstance(plan, NotificationReason):
        return plan
    doubt = _REASONS.get(ruling or await _ruling_by_record(context, checkout, plan))
    is_stopped = plan.state is SubscriptionState.STOPPED and doubt is not NotificationReason.EARLIER_PAYMENT
    if doubt is not None and not is_stopped:
        return doubt
    if fact.state in _ENDS and plan.state is SubscriptionState.ACTIVE:
        return NotificationReason.NOT_SHOWN
    if plan.state in _ENDS and fact.state not in _ENDS:
        # The notification was sent before the end and came after it: its payment counts, its state doesn't.
        fact = msgspec.structs.replace(fact, state=plan.state)
    received_on = day_at(context.notification.received_at_ms, context.account.timezone)
    if fact.next_on is not None and not may_be_next(fact.next_on, received_on, plan.schedule):
        fact = msgspec.structs.replace(fact, next_on=None)
    if fact.is_paid and payment is None:
        fact = msgspec.structs.replace(fact, payment=None, is_paid=False)
    principal = None if checkout is None or context.is_contested else checkout.principal
    owner = SubscriptionOwner(account=context.account.name, merchant=context.account.merchant, principal=principal)
    paid = await _paid_installments(context, owner, fact)
    if isinstance(paid, NotificationReason):
        return paid
    # The notification's fact goes first: the gateway's is newer, and each gets its own event.
    now_ms = relay.clock.now_ms()
    for each in (msgspec.structs.replace(fact, paid=paid), plan):
        with relay.hooks.passing(FlowPoint.NOTING, FlowPoint.NOTED, context.notification.id):
            await relay.subscriptions.note(owner, [each], now_ms=now_ms)
    return NotificationReason.SUBSCRIPTION_NOTED if doubt is None else NotificationReason.OTHER_SCHEDULE_STOPPED


async def _ruling_by_record(context: NotificationContext, checkout: Checkout | None, plan: Fact) -> PlanRuling:
    """Compares the record of a subscription with what the checkout of its order asked for, if that asked for one."""
    if checkout is None or checkout.kind is not CheckoutKind.RECURRING:
        return PlanRuling.AS_ASKED
    if checkout.subscription_id == plan.subscription_id:  # an earlier notification completed the checkout with it
        is_other = plan.amount_minor not in {None, checkout.amount_minor}
        return PlanRuling.OTHER_AMOUNT if is_other else PlanRuling.AS_ASKED
    details = await _details_beside(context, checkout, plan)
    return contradiction_of(checkout, details, plan) or PlanRuling.AS_ASKED


async def _details_beside(context: NotificationContext, checkout: Checkout, plan: Fact) -> Details | None:
    """Reads what a checkout asked for, to compare it; logs where the schedule of its subscription can't be read."""
    if plan.schedule is None or not plan.schedule.is_known:
        context.relay.log.warning("subscription_schedule_not_read", subscription_id=plan.subscription_id)
    return await context.relay.checkouts.details_of(checkout.id)


async def _shown_plan(context: NotificationContext) -> Fact | NotificationReason:
    """Reads the notification's subscription at the gateway; returns its fact, or the reason why it proves nothing."""
    content = context.content
    fact = await context.search.subscription(content.subscription_id or "0", for_id=context.notification.id)
    if isinstance(fact, NoObservation):
        return NotificationReason.UNSEEN
    is_of_order = fact is not None and fact.order_id == content.order_id and fact.currency == content.currency
    return fact if fact is not None and is_of_order else NotificationReason.NOT_SHOWN


async def _paid_installments(
    context: NotificationContext, owner: SubscriptionOwner, fact: Fact
) -> int | NotificationReason | None:
    """Returns how many installments a fact reports as paid, but no more than have known payments.

    Where payments are missing here, searches the gateway for them, and stores those that it shows. Returns UNSEEN where
    the gateway can't be asked, and None where the fact reports no number.
    """
    relay, subscriptions = context.relay, context.relay.subscriptions
    if fact.paid is None:
        return None
    key = (owner.merchant, fact.subscription_id)
    summary = await subscriptions.summary(*key)
    known = 0 if summary is None else summary.paid
    if fact.is_paid and fact.payment is not None and not await subscriptions.is_paid(*key, fact.payment):
        known += 1
    if fact.paid <= known:
        return fact.paid
    call = PaymentsOfSubscription(subscription_id=int(fact.subscription_id))
    asked_ms = relay.clock.now_ms()
    observation = await context.inquire(call)
    if isinstance(observation, NoObservation):
        return NotificationReason.UNSEEN
    payments = observation.payments if isinstance(observation, PaymentsSeen) else ()
    facts = [
        fact_of_installment(fact.subscription_id, each, asked_ms)
        for each in payments
        if each.status == PaymentStatus.RECEIVED
    ]
    if facts:
        with relay.hooks.passing(FlowPoint.NOTING, FlowPoint.NOTED, context.notification.id):
            await subscriptions.note(owner, facts, now_ms=relay.clock.now_ms())
    is_among = any(each.payment == fact.payment for each in facts)
    return min(fact.paid, max(known, len(facts) + int(fact.is_paid and not is_among)))
