"""Notes what a notification tells of a subscription, once the gateway shows it."""

from typing import Final

import msgspec

from payrelay.core.calls import OneSubscription, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind
from payrelay.core.notifications.notification import NotificationReason
from payrelay.core.payments.payment import NoObservation, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState, fact_of_installment, fact_of_notification
from payrelay.errors import Code
from payrelay.flows.notifications.context import NotificationContext
from payrelay.gateways.pacing.rate_limiter import Priority
from payrelay.runtime.hooks import FlowPoint
from payrelay.store.subscriptions import SubscriptionOwner

_ENDS: Final = frozenset({SubscriptionState.STOPPED, SubscriptionState.COMPLETED})


async def note_subscription(
    context: NotificationContext, checkout: Checkout | None, *, payment: Payment | None
) -> NotificationReason | None:
    """Notes what a genuine notification tells of a subscription, and what the gateway shows of it at that moment.

    Nothing of it is signed, neither which subscription it is nor how that stands: it counts where the gateway shows the
    subscription as one of the news' order. An end counts when it is shown, and so many paid installments as are shown.
    What has ended by then doesn't go on again for a moment because of news that come late.

    ``checkout`` is that of its order, and tells whose subscription it is; ``payment`` is what was taken, where that was
    shown. Gives why the notification stands where it stands; None where it tells of no subscription. May be repeated.
    Raises StoreError.
    """
    relay, content = context.relay, context.content
    fact = fact_of_notification(content, context.notification)
    if fact is None:
        return None
    plan = await _shown_plan(context)
    if isinstance(plan, NotificationReason):
        return plan
    is_asked = checkout is not None and checkout.kind is CheckoutKind.RECURRING
    if is_asked and checkout is not None and plan.amount_minor not in {None, checkout.amount_minor}:
        return NotificationReason.OTHER_AMOUNT
    if fact.state in _ENDS and plan.state is SubscriptionState.ACTIVE:
        return NotificationReason.NOT_SHOWN
    if plan.state in _ENDS and fact.state not in _ENDS:
        # It set out before the end and comes after it: what it tells of the money counts, that it goes on doesn't.
        fact = msgspec.structs.replace(fact, state=plan.state)
    if fact.is_paid and payment is None:
        fact = msgspec.structs.replace(fact, payment=None, is_paid=False)
    principal = None if checkout is None else checkout.principal
    whose = SubscriptionOwner(account=context.account.name, merchant=context.account.merchant, principal=principal)
    paid = await _paid_by_then(context, whose, fact)
    if isinstance(paid, NotificationReason):
        return paid
    # What was told goes first: what is shown is younger, and each is told of as what it is.
    now_ms = relay.clock.now_ms()
    for each in (msgspec.structs.replace(fact, paid=paid), plan):
        relay.hooks.passed(FlowPoint.NOTING, context.notification.id)
        await relay.subscriptions.note(whose, [each], now_ms=now_ms)
        relay.hooks.passed(FlowPoint.NOTED, context.notification.id)
    return NotificationReason.SUBSCRIPTION_NOTED


async def _shown_plan(context: NotificationContext) -> Fact | NotificationReason:
    """Asks the gateway for the subscription that the news name; gives what it shows, or why that is no proof."""
    relay, account, content = context.relay, context.account, context.content
    asked_ms = relay.clock.now_ms()
    until_s = relay.clock.boot_s() + account.queue_s
    call = OneSubscription(subscription_id=int(content.subscription_id or 0))
    relay.hooks.passed(FlowPoint.ASKING, context.notification.id)
    reading = await account.read(call, priority=Priority.RESOLUTION, until_s=until_s)
    relay.hooks.passed(FlowPoint.ASKED, context.notification.id)
    if reading.code is not None:
        return NotificationReason.NOT_SHOWN if reading.code is Code.NOT_FOUND else NotificationReason.UNSEEN
    for fact in account.subscriptions_in(reading.raw_data or b"", seen_at_ms=asked_ms):
        is_of_order = fact.order_id == content.order_id and fact.currency == content.currency
        if fact.subscription_id == content.subscription_id and is_of_order:
            return fact
    return NotificationReason.NOT_SHOWN


async def _paid_by_then(
    context: NotificationContext, whose: SubscriptionOwner, fact: Fact
) -> int | NotificationReason | None:
    """Gives how many installments were paid by the word of a fact, and no more than are known by their payments.

    Those that nobody has told of are looked for at the gateway.
    """
    relay, subscriptions = context.relay, context.relay.subscriptions
    if fact.paid is None:
        return None
    key = (whose.merchant, fact.subscription_id)
    standing = await subscriptions.summary(*key)
    known = 0 if standing is None else standing.paid
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
        relay.hooks.passed(FlowPoint.NOTING, context.notification.id)
        await subscriptions.note(whose, facts, now_ms=relay.clock.now_ms())
        relay.hooks.passed(FlowPoint.NOTED, context.notification.id)
    is_among = any(each.payment == fact.payment for each in facts)
    return min(fact.paid, max(known, len(facts) + int(fact.is_paid and not is_among)))
