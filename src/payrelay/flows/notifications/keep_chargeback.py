"""Stores a chargeback with its payment and an event; a chargeback changes no operation."""

from typing import Final, NamedTuple

from payrelay.core.calls import PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.events.event import OutgoingEvent
from payrelay.core.money import decimal_text
from payrelay.core.notifications.notification import NotificationReason
from payrelay.core.payments.operation import PAYMENT_KINDS, Operation, OperationFilter, State
from payrelay.core.payments.payment import NoObservation, PaymentsSeen
from payrelay.flows.notifications.context import NotificationContext
from payrelay.runtime.hooks import FlowPoint
from payrelay.store.chargebacks import Chargeback

OPERATIONS_MAX: Final = 50


class DisputedPayment(NamedTuple):
    """A payment, the principal that gets its events, and the operation that made it; None where none did."""

    payment_id: str
    principal: str
    operation_id: str | None


async def keep_chargeback(context: NotificationContext) -> NotificationReason:
    """Stores a chargeback, once for each payment; returns the notification's reason. May be repeated.

    The status and the order are signed, but the payment is not. So the payment must be known as one of the order, or
    the gateway must show it as one. Raises StoreError.
    """
    relay, account, notification = context.relay, context.account, context.notification
    disputed = await _disputed_payment(context)
    if isinstance(disputed, NotificationReason):
        return disputed
    now_ms = relay.clock.now_ms()
    chargeback = Chargeback(
        merchant=account.merchant,
        payment_id=disputed.payment_id,
        order_id=notification.order_id,
        account=account.name,
        principal=disputed.principal,
        operation_id=disputed.operation_id,
        amount_minor=notification.amount_minor,
        currency=notification.currency,
        notification_id=notification.id,
        noted_at_ms=now_ms,
    )
    relay.hooks.passed(FlowPoint.NOTING, notification.id)
    await relay.chargebacks.keep(chargeback, _event_of(chargeback, relay.new_id("evt", now_ms)))
    relay.hooks.passed(FlowPoint.NOTED, notification.id)
    return NotificationReason.CHARGEBACK_KEPT


async def _disputed_payment(context: NotificationContext) -> DisputedPayment | NotificationReason:
    """Finds the payment of the chargeback and its principal; else returns the reason why none is known."""
    relay, merchant, notification = context.relay, context.account.merchant, context.notification
    found = await relay.journal.list(OperationFilter(order_id=notification.order_id), before=None, limit=OPERATIONS_MAX)
    operation = _operation_of(found, merchant, notification.payment_id)
    if operation is not None and operation.payment_id is not None:
        return DisputedPayment(operation.payment_id, operation.principal, operation.id)
    checkouts = await relay.checkouts.of_order(merchant, notification.order_id)
    paid = {
        each.payment_id: each
        for each in reversed(checkouts)
        if each.payment_id is not None and notification.payment_id in {None, each.payment_id}
    }
    if len(paid) == 1:
        payment_id, checkout = paid.popitem()
        return DisputedPayment(payment_id, checkout.principal, None)
    plan = next((each for each in checkouts if each.subscription_id is not None), None)
    if plan is None or notification.payment_id is None:
        is_known = bool(checkouts) or any(each.merchant == merchant for each in found)
        return NotificationReason.UNKNOWN_PAYMENT if is_known else NotificationReason.UNKNOWN_ORDER
    return await _installment(context, plan, notification.payment_id)


async def _installment(
    context: NotificationContext, plan: Checkout, payment_id: str
) -> DisputedPayment | NotificationReason:
    """Returns the payment where it is an installment of the plan, known here or shown by the gateway; else the reason.

    The gateway may show an installment with its subscription only.
    """
    subscriptions, subscription_id = context.relay.subscriptions, plan.subscription_id or ""
    installment = DisputedPayment(payment_id, plan.principal, None)
    if await subscriptions.is_paid(plan.merchant, subscription_id, payment_id):
        return installment
    of_plan = PaymentsOfSubscription(subscription_id=int(subscription_id))
    for call in (PaymentsOfOrder(order_id=plan.order_id), of_plan):
        observation = await context.inquire(call)
        if isinstance(observation, NoObservation):
            return NotificationReason.UNSEEN
        payments = observation.payments if isinstance(observation, PaymentsSeen) else ()
        if any((each.payment_id, each.order_id) == (payment_id, plan.order_id) for each in payments):
            return installment
    return NotificationReason.UNKNOWN_PAYMENT


def _operation_of(operations: list[Operation], merchant: str, payment_id: str | None) -> Operation | None:
    """Finds the operation that made the payment; without an id, the operation of the order's only payment."""
    paid = [
        each
        for each in operations
        if each.merchant == merchant
        and each.kind in PAYMENT_KINDS
        and each.state in {State.SUCCEEDED, State.NEEDS_ATTENTION, State.UNKNOWN, State.PENDING}
        and each.payment_id is not None
        and payment_id in {None, each.payment_id}
    ]
    ids = {each.payment_id for each in paid}
    # An authorization and its capture have the same payment: the capture charged it, and is newer.
    return paid[0] if len(ids) == 1 else None


def _event_of(chargeback: Chargeback, event_id: str) -> OutgoingEvent:
    amount = None if chargeback.amount_minor is None else decimal_text(chargeback.amount_minor)
    return OutgoingEvent(
        id=event_id,
        type="payment.charged_back",
        account=chargeback.account,
        merchant=chargeback.merchant,
        principal=chargeback.principal,
        subject=f"payment:{chargeback.payment_id}",
        at_ms=chargeback.noted_at_ms,
        data={
            "payment_id": chargeback.payment_id,
            "order_id": chargeback.order_id,
            "operation_id": chargeback.operation_id,
            "amount": amount,
            "currency": chargeback.currency,
        },
    )
