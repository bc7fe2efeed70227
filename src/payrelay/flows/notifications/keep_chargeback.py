"""Stores a chargeback with its payment and an event; a chargeback changes no operation.

A chargeback counts when the gateway's record of the payment shows it: the notification's signature covers order and
amount with nothing between them, and doesn't cover the payment. While the record shows none, the notification waits; in
the end an operator looks at it.

A chargeback is won when the record shows the payment as received again, and a second look confirms it. Who reads the
record by then doesn't matter; a notification of success is only an occasion to read it.
"""

from typing import Final, NamedTuple

from payrelay.core.calls import PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.events.event import OutgoingEvent
from payrelay.core.money import decimal_text
from payrelay.core.notifications.notification import NotificationReason
from payrelay.core.orders.chargeback import Chargeback
from payrelay.core.orders.given_back import is_won
from payrelay.core.orders.joining import PaymentFacts, facts_of_one
from payrelay.core.orders.received_again import is_in_question
from payrelay.core.payments.operation import PAYMENT_KINDS, Operation, OperationFilter, State
from payrelay.core.payments.payment import NoObservation, Payment, PaymentsSeen, PaymentStatus
from payrelay.flows.notifications.context import NotificationContext
from payrelay.runtime.hooks import FlowPoint

OPERATIONS_MAX: Final = 50


class DisputedPayment(NamedTuple):
    """A payment that may have been charged back.

    Attributes:
        payment_id: the payment.
        principal: the principal that gets its events.
        operation_id: the operation that made it; None where none did.
        subscription_id: the subscription whose installment it is or may be; None for another payment.
        is_known: whether Payrelay knows it as a payment of the order.
    """

    payment_id: str
    principal: str
    operation_id: str | None = None
    subscription_id: str | None = None
    is_known: bool = True


async def keep_chargeback(context: NotificationContext) -> NotificationReason:
    """Stores a chargeback, once for each payment; returns the notification's reason. May be repeated.

    The gateway's record must show the payment as one of the order and of the notified amount, and as charged back.
    Raises StoreError.
    """
    relay, account, notification = context.relay, context.account, context.notification
    disputed = await _disputed_payment(context)
    if isinstance(disputed, NotificationReason):
        return disputed
    known = await relay.money.chargebacks.of_payment(account.merchant, disputed.payment_id)
    if known is not None and not await _is_won(context, known):
        return NotificationReason.CHARGEBACK_KEPT  # proved before: a repeat costs no call to the gateway
    record = await _record_of(context, disputed)
    if isinstance(record, NotificationReason):
        return record
    now_ms = relay.clock.now_ms()
    chargeback = Chargeback(
        merchant=account.merchant,
        payment_id=disputed.payment_id,
        order_id=notification.order_id,
        account=account.name,
        principal=disputed.principal,
        operation_id=disputed.operation_id,
        amount_minor=record.amount_minor,
        currency=record.currency,
        notification_id=notification.id,
        noted_at_ms=now_ms,
        part_minor=_part_of(context.content.moved_minor, record.amount_minor),
    )
    with relay.hooks.passing(FlowPoint.NOTING, FlowPoint.NOTED, notification.id):
        await relay.money.chargebacks.keep(chargeback, _event_of(chargeback, relay.new_id("evt", now_ms)), won=known)
    return NotificationReason.CHARGEBACK_KEPT


async def look_whether_won(context: NotificationContext) -> NotificationReason | None:
    """Reads the record of a payment that was charged back, and of which a later notification reports a success.

    Returns the notification's reason; None where it is about no such payment, or the record still shows the
    chargeback. Raises StoreError.
    """
    relay, account, payment_id = context.relay, context.account, context.content.payment_id
    if payment_id is None:
        return None
    known = await relay.money.chargebacks.of_payment(account.merchant, payment_id)
    if known is None or known.order_id != context.content.order_id:
        return None
    if context.notification.received_at_ms <= known.noted_at_ms or await _is_won(context, known):
        return None
    calls: list[PaymentsOfOrder | PaymentsOfSubscription] = [PaymentsOfOrder(order_id=known.order_id)]
    if context.content.subscription_id is not None:
        calls.append(PaymentsOfSubscription(subscription_id=int(context.content.subscription_id)))
    for call in calls:
        if isinstance(await context.inquire(call), NoObservation):
            return NotificationReason.UNSEEN
    facts = await _facts_of(context, known)
    if is_in_question(facts):
        return NotificationReason.CHARGEBACK_MAY_BE_WON
    return NotificationReason.CHARGEBACK_WON if is_won(known.noted_at_ms, facts) else None


async def _is_won(context: NotificationContext, chargeback: Chargeback) -> bool:
    """Tells whether the record of a payment showed it as received since its chargeback. Raises StoreError."""
    return is_won(chargeback.noted_at_ms, await _facts_of(context, chargeback))


async def _facts_of(context: NotificationContext, chargeback: Chargeback) -> PaymentFacts:
    return facts_of_one(await context.relay.money.orders.facts_of_payment(chargeback.merchant, chargeback.payment_id))


def _part_of(moved_minor: int | None, whole_minor: int | None) -> int | None:
    """Gives how much was charged back where a notification says less than the whole; nobody signs that."""
    is_part = moved_minor is not None and whole_minor is not None and 0 < moved_minor < whole_minor
    return moved_minor if is_part else None


async def _disputed_payment(context: NotificationContext) -> DisputedPayment | NotificationReason:
    """Finds the payment of the chargeback and its principal; else returns the reason why none is known."""
    relay, merchant, notification = context.relay, context.account.merchant, context.notification
    found = await relay.journal.list(OperationFilter(order_id=notification.order_id), before=None, limit=OPERATIONS_MAX)
    operation = _operation_of(found, merchant, notification.payment_id)
    if operation is not None and operation.payment_id is not None:
        return DisputedPayment(
            operation.payment_id, operation.principal, operation.id, subscription_id=operation.subscription_id
        )
    checkouts = await relay.checkouts.of_order(merchant, notification.order_id)
    paid = {
        each.payment_id: each
        for each in reversed(checkouts)
        if each.payment_id is not None and notification.payment_id in {None, each.payment_id}
    }
    if len(paid) == 1:
        payment_id, checkout = paid.popitem()
        return DisputedPayment(payment_id, checkout.principal, subscription_id=checkout.subscription_id)
    plan = next((each for each in checkouts if each.subscription_id is not None), None)
    if plan is None or notification.payment_id is None:
        is_known = bool(checkouts) or any(each.merchant == merchant for each in found)
        return NotificationReason.UNKNOWN_PAYMENT if is_known else NotificationReason.UNKNOWN_ORDER
    subscription_id = plan.subscription_id or ""
    is_known = await relay.subscriptions.is_paid(merchant, subscription_id, notification.payment_id)
    return DisputedPayment(notification.payment_id, plan.principal, subscription_id=subscription_id, is_known=is_known)


async def _record_of(context: NotificationContext, disputed: DisputedPayment) -> Payment | NotificationReason:
    """Returns the gateway's record of a payment of the order that was charged back; else the reason why there is none.

    The gateway may show an installment with its subscription only. Raises StoreError.
    """
    notification = context.notification
    order_id, money = notification.order_id, (notification.amount_minor, notification.currency)
    calls: list[PaymentsOfOrder | PaymentsOfSubscription] = [PaymentsOfOrder(order_id=order_id)]
    if disputed.subscription_id is not None:
        calls.append(PaymentsOfSubscription(subscription_id=int(disputed.subscription_id)))
    is_shown = False
    for call in calls:
        observation = await context.inquire(call)
        if isinstance(observation, NoObservation):
            return NotificationReason.UNSEEN
        payments = observation.payments if isinstance(observation, PaymentsSeen) else ()
        for payment in payments:
            if (payment.payment_id, payment.order_id) == (disputed.payment_id, order_id):
                is_of_amount = (payment.amount_minor, payment.currency) == money
                if payment.status is PaymentStatus.CHARGED_BACK and is_of_amount:
                    return payment
                is_shown = True
    is_of_order = is_shown or disputed.is_known
    return NotificationReason.CHARGEBACK_NOT_SHOWN if is_of_order else NotificationReason.UNKNOWN_PAYMENT


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
    amount_minor = chargeback.charged_back_minor
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
            "amount": None if amount_minor is None else decimal_text(amount_minor),
            "currency": chargeback.currency,
        },
    )
