"""Keeps a chargeback with the payment that it takes back, and has it told; it changes no operation by itself."""

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


class Payer(NamedTuple):
    """A payment, who is told of it, and the operation that made it, where one did."""

    payment_id: str
    principal: str
    operation_id: str | None


async def keep_chargeback(context: NotificationContext) -> NotificationReason:
    """Keeps it, once for each payment. May be repeated. Raises StoreError.

    The status is signed, and so is the order; the payment is not, so that it must be known as one of that order, or
    shown as one by the gateway.
    """
    relay, account, notification = context.relay, context.account, context.notification
    payer = await _payer(context)
    if isinstance(payer, NotificationReason):
        return payer
    now_ms = relay.clock.now_ms()
    chargeback = Chargeback(
        merchant=account.merchant,
        payment_id=payer.payment_id,
        order_id=notification.order_id,
        account=account.name,
        principal=payer.principal,
        operation_id=payer.operation_id,
        amount_minor=notification.amount_minor,
        currency=notification.currency,
        notification_id=notification.id,
        noted_at_ms=now_ms,
    )
    relay.hooks.passed(FlowPoint.NOTING, notification.id)
    await relay.chargebacks.keep(chargeback, _event_of(chargeback, relay.new_id("evt", now_ms)))
    relay.hooks.passed(FlowPoint.NOTED, notification.id)
    return NotificationReason.CHARGEBACK_KEPT


async def _payer(context: NotificationContext) -> Payer | NotificationReason:
    """Finds the payment and who is told of it, or why no payment of the order is known as that."""
    relay, merchant, notification = context.relay, context.account.merchant, context.notification
    found = await relay.journal.list(OperationFilter(order_id=notification.order_id), before=None, limit=OPERATIONS_MAX)
    operation = _owner(found, merchant, notification.payment_id)
    if operation is not None and operation.payment_id is not None:
        return Payer(operation.payment_id, operation.principal, operation.id)
    checkouts = await relay.checkouts.of_order(merchant, notification.order_id)
    paid = {
        each.payment_id: each
        for each in reversed(checkouts)
        if each.payment_id is not None and notification.payment_id in {None, each.payment_id}
    }
    if len(paid) == 1:
        payment_id, checkout = paid.popitem()
        return Payer(payment_id, checkout.principal, None)
    plan = next((each for each in checkouts if each.subscription_id is not None), None)
    if plan is None or notification.payment_id is None:
        is_of_ours = bool(checkouts) or any(each.merchant == merchant for each in found)
        return NotificationReason.UNKNOWN_PAYMENT if is_of_ours else NotificationReason.UNKNOWN_ORDER
    return await _of_plan(context, plan, notification.payment_id)


async def _of_plan(context: NotificationContext, plan: Checkout, payment_id: str) -> Payer | NotificationReason:
    """Looks whether the payment is an installment of the order: of those we may not have been told.

    Like any installment it may be shown with its subscription alone.
    """
    subscriptions, subscription_id = context.relay.subscriptions, plan.subscription_id or ""
    payer = Payer(payment_id, plan.principal, None)
    if await subscriptions.is_paid(plan.merchant, subscription_id, payment_id):
        return payer
    of_plan = PaymentsOfSubscription(subscription_id=int(subscription_id))
    for call in (PaymentsOfOrder(order_id=plan.order_id), of_plan):
        observation = await context.inquire(call)
        if isinstance(observation, NoObservation):
            return NotificationReason.UNSEEN
        payments = observation.payments if isinstance(observation, PaymentsSeen) else ()
        if any((each.payment_id, each.order_id) == (payment_id, plan.order_id) for each in payments):
            return payer
    return NotificationReason.UNKNOWN_PAYMENT


def _owner(operations: list[Operation], merchant: str, payment_id: str | None) -> Operation | None:
    """Finds the operation that made the payment; without an id the only one of the order that took money."""
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
    # A hold and its capture have the same payment: the capture took the money, and is the newer one.
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
