"""Keeps a chargeback with the payment that it takes back, and has it told; it changes no operation by itself."""

from typing import Final

from payrelay.core.events import OutgoingEvent
from payrelay.core.money import decimal_text
from payrelay.core.notifications import Notification, Why
from payrelay.core.operations import Kind, Operation, State
from payrelay.gateways.payhere.client import PayHere
from payrelay.operations.finish_checkout import checkout_of_order
from payrelay.operations.relay import Relay
from payrelay.operations.watch import Passage
from payrelay.store.inbox import Chargeback, Inbox
from payrelay.store.journal import Filter

OPERATIONS_MAX: Final = 50


async def keep_chargeback(relay: Relay, inbox: Inbox, account: PayHere, notification: Notification) -> Why:
    """Keeps it, once for each payment. May be repeated. Raises StoreError.

    The status is signed, and so is the order; the payment is not, so that it must be known as one of that order.
    """
    payer = await _payer(relay, account, notification)
    if payer is None:
        return Why.UNKNOWN_PAYMENT
    payment_id, principal, operation_id = payer
    now_ms = relay.clock.now_ms()
    chargeback = Chargeback(
        merchant=account.merchant,
        payment_id=payment_id,
        order_id=notification.order_id,
        account=account.name,
        principal=principal,
        operation_id=operation_id,
        amount_minor=notification.amount_minor,
        currency=notification.currency,
        notification_id=notification.id,
        noted_at_ms=now_ms,
    )
    relay.watch.passed(Passage.NOTING, notification.id)
    await inbox.keep_chargeback(chargeback, _event_of(chargeback, relay.new_id("evt", now_ms)))
    relay.watch.passed(Passage.NOTED, notification.id)
    return Why.CHARGEBACK_KEPT


async def _payer(relay: Relay, account: PayHere, notification: Notification) -> tuple[str, str, str | None] | None:
    """Finds the payment, who is told of it, and its operation; None where no payment of the order is known as that."""
    found = await relay.journal.list(Filter(order_id=notification.order_id), before=None, limit=OPERATIONS_MAX)
    operation = _owner(found, account.merchant, notification.payment_id)
    if operation is not None and operation.payment_id is not None:
        return operation.payment_id, operation.principal, operation.id
    if relay.checkouts is None:
        return None
    checkout = await checkout_of_order(relay, account.name, notification.order_id)
    if checkout is None:
        return None
    payment_id = notification.payment_id or checkout.payment_id
    is_known = payment_id is not None and (payment_id == checkout.payment_id or checkout.subscription_id is not None)
    return (payment_id, checkout.principal, None) if is_known and payment_id is not None else None


def _owner(operations: list[Operation], merchant: str, payment_id: str | None) -> Operation | None:
    """Finds the operation that made the payment; without an id the only one of the order that took money."""
    paid = [
        each
        for each in operations
        if each.merchant == merchant
        and each.kind in {Kind.CHARGE, Kind.AUTHORIZATION, Kind.CAPTURE, Kind.RETRY}
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
