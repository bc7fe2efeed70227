"""Applies a genuine notification to the checkout of its order: completes it with what was proved."""

from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState, begins_after, fits
from payrelay.core.checkouts.checkout_proof import JudgedPlan, PlanRuling
from payrelay.core.moments import day_at
from payrelay.core.notifications.notification import MessageType, NotificationReason, ReportedStatus
from payrelay.core.payments.payment import Payment
from payrelay.flows.checkouts.finish_checkout import finish_checkout
from payrelay.flows.checkouts.search_for_checkout import doubt_plan
from payrelay.flows.notifications.apply_authorization import apply_authorization
from payrelay.flows.notifications.context import NotificationContext, shown_installment, shown_payment_of
from payrelay.flows.notifications.ingest_approval import ingest_approval
from payrelay.flows.notifications.note_subscription import judge_subscription, note_subscription

OF_FIRST: Final = frozenset({None, MessageType.AUTHORIZATION_SUCCESS, MessageType.AUTHORIZATION_FAILED})
"""Message types of what a customer does on the gateway's page; all others report what happens later."""


async def apply_to_checkout(context: NotificationContext, checkout: Checkout) -> NotificationReason:
    """Completes a checkout with a proved payment or an approval's token, or notes that an authorization was reported.

    Returns the notification's reason.

    May be repeated. Raises StoreError, and Outdated where the checkout was changed meanwhile.
    """
    content = context.content
    if not fits(checkout, context.checkout_outcome.amount_minor, content.currency):
        return NotificationReason.OTHER_AMOUNT
    match checkout.kind:
        case CheckoutKind.PREAPPROVAL:
            return await ingest_approval(context, checkout)
        case CheckoutKind.AUTHORIZATION:
            return await apply_authorization(context, checkout)
        case CheckoutKind.RECURRING:
            return await _subscribe(context, checkout)
        case CheckoutKind.PAYMENT:
            return await _pay(context, checkout)


async def _pay(context: NotificationContext, checkout: Checkout) -> NotificationReason:
    if context.content.reported is not ReportedStatus.SUCCEEDED:
        return NotificationReason.OTHER_KIND
    payment_id = context.content.payment_id
    if checkout.state is CheckoutState.COMPLETED and payment_id is not None and payment_id == checkout.payment_id:
        return NotificationReason.CHECKOUT_FINISHED  # proved before: a repeat costs no call to the gateway
    shown = await shown_payment_of(context, checkout)
    if isinstance(shown, NotificationReason):
        return shown
    outcome = msgspec.structs.replace(context.checkout_outcome, payment_id=shown.payment_id)
    finished = await finish_checkout(context.relay, checkout, outcome)
    is_second = finished.payment_id not in {None, shown.payment_id}
    return await context.reason_of_second(shown.payment_id) if is_second else NotificationReason.CHECKOUT_FINISHED


async def _subscribe(context: NotificationContext, checkout: Checkout) -> NotificationReason:
    """Completes the checkout of a plan with the subscription that was asked for, and notes each payment of it.

    The subscription's id is not signed: the gateway must show it as it was asked for, with its first payment.
    """
    content = context.content
    if content.subscription_id is None:
        return NotificationReason.INCOMPLETE
    is_first = content.message_type in OF_FIRST
    shown: Payment | NotificationReason | None = await shown_installment(context)
    if shown is NotificationReason.NOT_SHOWN and is_first and await _begins_later(context, checkout):
        shown = None
    if isinstance(shown, NotificationReason):
        return shown
    judged = await judge_subscription(context, checkout)
    if isinstance(judged, NotificationReason):
        return judged
    if checkout.subscription_id == content.subscription_id:
        return await _follow(context, checkout, shown, judged)
    reason = await note_subscription(context, checkout, payment=shown, ruling=judged.ruling)
    if reason is not NotificationReason.SUBSCRIPTION_NOTED or judged.ruling is PlanRuling.ENDED:
        return reason or NotificationReason.INFORMED
    if judged.ruling is PlanRuling.NOT_SHOWN:
        return NotificationReason.NOT_SHOWN
    finished = await _finish_with(context, checkout, judged.first)
    is_second = finished.subscription_id not in {None, content.subscription_id}
    return await context.reason_of_second(content.payment_id) if is_second and is_first else reason


async def _follow(
    context: NotificationContext, checkout: Checkout, shown: Payment | None, judged: JudgedPlan
) -> NotificationReason:
    """Notes a payment of the subscription that the checkout has, and compares the first payment once it shows.

    The subscription completed its checkout without a payment where it begins later: what is paid first, the startup
    fee included, was in no signed text.
    """
    reason = await note_subscription(context, checkout, payment=shown)
    if reason is not NotificationReason.SUBSCRIPTION_NOTED or checkout.payment_id is not None:
        return reason or NotificationReason.INFORMED
    if judged.ruling is PlanRuling.AS_ASKED:
        await _finish_with(context, checkout, judged.first)
    elif judged.ruling is PlanRuling.OTHER_AMOUNT and judged.first == shown:
        return NotificationReason.OTHER_AMOUNT
    elif judged.ruling is PlanRuling.OTHER_AMOUNT:  # the notification of the first payment was lost
        await doubt_plan(context.relay, checkout, checkout.subscription_id or "")
    return reason


async def _finish_with(context: NotificationContext, checkout: Checkout, first: Payment | None) -> Checkout:
    payment_id = None if first is None else first.payment_id
    ids = {"subscription_id": context.content.subscription_id, "payment_id": payment_id}
    return await finish_checkout(context.relay, checkout, msgspec.structs.replace(context.checkout_outcome, **ids))


async def _begins_later(context: NotificationContext, checkout: Checkout) -> bool:
    """Tells whether the plan's first payment is due after the day on which the notification came."""
    day = day_at(context.notification.received_at_ms, context.account.timezone)
    return begins_after(await context.relay.checkouts.details_of(checkout.id), day)
