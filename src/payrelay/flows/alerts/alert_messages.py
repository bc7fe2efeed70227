"""The messages that alert channels get, for each kind of subject: JSON without secrets."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.events.delivery import EndpointState
from payrelay.core.moments import rfc3339
from payrelay.core.money import amount_json
from payrelay.core.notifications.notification import NotificationState
from payrelay.core.payments.explanations import reason_phrase
from payrelay.flows.payments.operation_views import view
from payrelay.flows.relay import Relay
from payrelay.store.alerts import (
    BEHIND_ROW,
    LOST_CUSTOMERS_ROW,
    ORDER_ROW,
    SERVER_ROW,
    Alert,
    AlertSubject,
)
from payrelay.store.inbox import REFUSED_ALERT_FROM
from payrelay.store.payments.paid_again import PAID_AGAIN_ROW, told_in

STOPPED_SENTENCE: Final = (
    "Events are no longer sent to this endpoint: start it again once its receiver works, and replay what it missed"
)
CONTRADICTED_SENTENCE: Final = (
    "A customer began another subscription than the checkout asked for, by its amount, its first payment or its"
    " schedule: look at it at the gateway, and cancel it there"
)
UNEXPLAINED_SENTENCE: Final = (
    "The gateway shows a payment of the order that nothing here explains, since the database lost commits: find out"
    " whether the customer paid on the page or a client charged a card, and decide by `payrelay recover checkout`"
)
UNREAD_SENTENCE: Final = (
    "The gateway shows a payment of the order that may be the first of the subscription, and nothing here explains it:"
    " find out at the gateway what the customer was charged for, and tell the shop before it asks the customer again."
    " If the database lost commits, decide by `payrelay recover checkout`"
)
ROW_SENTENCE: Final = (
    "The service treats this row as not existing: run `payrelay audit verify`, find out who wrote to the database, and"
    " bring the row back from a backup, or remove it"
)
GONE_SENTENCE: Final = (
    "An anchor of the audit is gone or was changed, and what it covered may be gone with it: the service makes no more"
    " anchors until it is started again; run `payrelay audit verify` with the anchors that you keep outside"
)
ANCHOR_SENTENCE: Final = (
    "Keep it where nobody can change it together with the database, and give it to `payrelay audit verify --anchor`"
)
SERVER_WHY: Final = "Another server takes the writes of the database: a standby was promoted, or the address was moved"
SERVER_EXPLANATION: Final = (
    "Each process compared the newest commits that it remembers; where one is missing, another alert says so. Make sure"
    " that the earlier server takes no more writes"
)
ORDER_WHY: Final = "The gateway shows a payment of an order that isn't known here, since the database lost commits"
ORDER_EXPLANATION: Final = (
    "A shop asked for a page of the order, and got none: the customer may have paid on a page that was lost. Tell the"
    " shop that the order is paid, or refund the payment at the gateway. Until that, no page of the order is opened"
)
AGAIN_WHY: Final = "An order that was paid got a further payment"
AGAIN_EXPLANATION: Final = (
    "Find out whether the customer meant to pay twice, and refund one of the two payments if not. A subscription goes"
    " on: cancel it too. The shop was told by the event order.paid_again"
)
CUSTOMERS_WHY: Final = "A shop charges a stored customer who isn't known here, since the database lost commits"
CUSTOMERS_EXPLANATION: Final = (
    "The customer's approval, and its token, may be lost: the log names each such customer (`customer_may_be_lost`)."
    " Tell the shop to ask these customers for another approval"
)
BEHIND_WHY: Final = "The database lacks commits that a process was told of: it may be a restored or promoted copy"
BEHIND_EXPLANATION: Final = (
    "Nothing takes effect at a gateway until an operator runs `payrelay recover`; `payrelay check` says what is missing"
)
_LOGGED: Final = ("kind", "state", "account", "order_id", "payment_id", "subscription_id", "amount_minor", "currency")
"""What the log line of an alert has of an operation, beside its id and the reason."""


class AlertMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The members that every alert has, as JSON; holds no secret.

    ``alert`` is equal whenever one alert is given again. A ``state`` is the present one when the alert is given.
    """

    alert: str
    raised_at: str
    why: str


class OperationMessage(AlertMessage, frozen=True, kw_only=True):
    """An alert about an operation."""

    operation_id: str
    kind: str
    state: str
    explanation: str
    account: str
    principal: str
    order_id: str | None
    payment_id: str | None
    subscription_id: str | None
    amount: msgspec.Raw
    currency: str | None
    created_at: str
    updated_at: str


class NotificationMessage(AlertMessage, frozen=True, kw_only=True):
    """An alert about a notification."""

    notification_id: str
    kind: str
    reported: str
    state: str
    account: str
    order_id: str
    payment_id: str | None
    subscription_id: str | None
    amount: msgspec.Raw
    currency: str
    received_at: str


class RowMessage(AlertMessage, frozen=True, kw_only=True):
    """An alert about a stored row whose digest is wrong; ``row`` is its table and id."""

    kind: str = "row_changed"
    row: str
    explanation: str


class ServerMessage(AlertMessage, frozen=True, kw_only=True):
    """An alert that another server of a shared database took the writes, named by what tells it from others."""

    kind: str = "database_server_changed"
    server: str
    explanation: str


class BehindMessage(AlertMessage, frozen=True, kw_only=True):
    """An alert that the database is behind, in the incarnation of this number."""

    kind: str = "database_behind"
    incarnation: int
    explanation: str


class OrderMessage(AlertMessage, frozen=True, kw_only=True):
    """An alert that the gateway shows a payment of an order which nothing explains since commits were lost."""

    kind: str = "order_paid_unknown"
    merchant: str
    order_id: str
    explanation: str


class PaidPayment(msgspec.Struct, frozen=True, kw_only=True):
    """A payment of an order that was paid again, and what made it, as far as that is known."""

    payment_id: str | None
    operation_id: str | None = None
    checkout_id: str | None = None
    subscription_id: str | None = None
    principal: str | None = None
    amount: msgspec.Raw
    currency: str | None = None


class PaidAgainMessage(AlertMessage, frozen=True, kw_only=True):
    """An alert that an order was paid again: its further payment, and the one before; null where that is gone."""

    kind: str = "order_paid_again"
    merchant: str
    order_id: str
    payment: PaidPayment
    earlier: PaidPayment | None
    explanation: str


class LostCustomersMessage(AlertMessage, frozen=True, kw_only=True):
    """An alert that stored customers of a merchant may be lost, in the recovery of this incarnation."""

    kind: str = "customers_may_be_lost"
    merchant: str
    incarnation: int
    explanation: str


class AnchorMessage(AlertMessage, frozen=True, kw_only=True):
    """The newest anchor of the audit, to be kept where nobody can change it together with the database."""

    kind: str = "audit_anchor"
    anchor: str
    explanation: str


class EndpointMessage(AlertMessage, frozen=True, kw_only=True):
    """An alert about an endpoint that was stopped; of its address only the host, because the rest may be secret."""

    kind: str = "endpoint_stopped"
    endpoint_id: str
    state: str
    explanation: str
    account: str
    principal: str
    host: str
    label: str | None


class CheckoutMessage(AlertMessage, frozen=True, kw_only=True):
    """An alert about a checkout whose subscription contradicts what was asked for.

    Or, with ``payment_id`` in place of ``subscription_id``, about a payment of its order that nothing explains.
    """

    kind: str = "checkout_contradicted"
    checkout_id: str
    state: str
    account: str
    principal: str
    order_id: str
    subscription_id: str | None = None
    payment_id: str | None = None
    amount: msgspec.Raw
    currency: str
    explanation: str


async def _of_operation(relay: Relay, alert: Alert) -> bytes:
    """Writes an alert about an operation; before the first attempt a line of the log says the same."""
    operation = await relay.journal.get(alert.subject_id)
    if operation is None:
        raise LookupError(f"no operation {alert.subject_id}")
    history = await relay.journal.history(alert.subject_id)
    # Of an operation that is final since, the entries may be cleared that the alert was begun for.
    reason = reason_phrase([entry for entry in history if entry.version <= alert.version] or history)
    if alert.attempts == 0:
        logged = {name: getattr(operation, name) for name in _LOGGED}
        relay.log.error("operation_needs_attention", operation_id=operation.id, **logged, why=reason)
    shown = view(operation)
    members = {name: getattr(shown, name) for name in OperationMessage.__struct_fields__ if hasattr(shown, name)}
    message = OperationMessage(
        alert=alert.id, raised_at=rfc3339(alert.created_at_ms), why=reason, operation_id=shown.id, **members
    )
    return msgspec.json.encode(message)


async def _of_notification(relay: Relay, alert: Alert) -> bytes:
    """Writes an alert about a notification; before the first attempt a line of the log says the same."""
    notification = await relay.inbox.get(alert.subject_id)
    if notification is None:
        raise LookupError(f"no notification {alert.subject_id}")
    reason = notification.reason.phrase
    if notification.state is NotificationState.REFUSED:
        reason = f"{REFUSED_ALERT_FROM} notifications or more were refused within a day; of this one {reason}"
    message = NotificationMessage(
        alert=alert.id,
        raised_at=rfc3339(alert.created_at_ms),
        why=f"{reason[:1].upper()}{reason[1:]}",
        notification_id=notification.id,
        kind=notification.kind,
        reported=notification.reported,
        state=notification.state,
        account=notification.account,
        order_id=notification.order_id,
        payment_id=notification.payment_id,
        subscription_id=notification.subscription_id,
        amount=amount_json(notification.amount_minor),
        currency=notification.currency,
        received_at=rfc3339(notification.received_at_ms),
    )
    if alert.attempts == 0:
        relay.log.error("notification_alert", notification_id=notification.id, why=message.why)
    return msgspec.json.encode(message)


async def _of_endpoint(relay: Relay, alert: Alert) -> bytes | None:
    """Writes an alert about a stopped endpoint; its log line was written when it was stopped."""
    endpoint = await relay.dispatch.endpoints.get(alert.subject_id)
    if endpoint is None or endpoint.state is not EndpointState.STOPPED or endpoint.reason is None:
        return None  # its owner has removed it, or started it again
    message = EndpointMessage(
        alert=alert.id,
        raised_at=rfc3339(alert.created_at_ms),
        why=endpoint.reason,
        endpoint_id=endpoint.id,
        state=endpoint.state,
        explanation=STOPPED_SENTENCE,
        account=endpoint.account,
        principal=endpoint.principal,
        host=endpoint.host,
        label=endpoint.label,
    )
    return msgspec.json.encode(message)


async def _of_checkout(relay: Relay, alert: Alert) -> bytes | None:
    """Writes an alert about a checkout; its log line was written when the subscription was found."""
    checkout = await relay.checkouts.get(alert.subject_id)
    if checkout is None:
        return None
    subscription_id = str(alert.version) if alert.version > 0 else None
    payment_id = str(-alert.version) if alert.version < 0 else None
    is_resolved = (
        subscription_id != checkout.subscription_id if payment_id is None else payment_id == checkout.payment_id
    )
    if is_resolved and checkout.state is CheckoutState.COMPLETED:
        return None  # by the subscription that was asked for, or by an operator
    unknown = UNREAD_SENTENCE if checkout.kind is CheckoutKind.RECURRING else UNEXPLAINED_SENTENCE
    message = CheckoutMessage(
        kind="checkout_contradicted" if payment_id is None else "checkout_payment_unknown",
        alert=alert.id,
        raised_at=rfc3339(alert.created_at_ms),
        why=CONTRADICTED_SENTENCE if payment_id is None else unknown,
        checkout_id=checkout.id,
        state=checkout.state,
        account=checkout.account,
        principal=checkout.principal,
        order_id=checkout.order_id,
        subscription_id=subscription_id,
        payment_id=payment_id,
        amount=amount_json(checkout.amount_minor),
        currency=checkout.currency,
        explanation=checkout.sentence,
    )
    return msgspec.json.encode(message)


async def _of_row(relay: Relay, alert: Alert) -> bytes:
    """Writes an alert about a row whose digest is wrong; before the first attempt a line of the log says the same.

    One about another server, or that the database is behind, has no row; the processes that found it have logged it.
    """
    if alert.subject_id.startswith(SERVER_ROW):
        changed = ServerMessage(
            alert=alert.id,
            raised_at=rfc3339(alert.created_at_ms),
            why=SERVER_WHY,
            server=alert.subject_id.removeprefix(SERVER_ROW),
            explanation=SERVER_EXPLANATION,
        )
        return msgspec.json.encode(changed)
    if alert.subject_id.startswith(BEHIND_ROW):
        behind = BehindMessage(
            alert=alert.id,
            raised_at=rfc3339(alert.created_at_ms),
            why=BEHIND_WHY,
            incarnation=int(alert.subject_id.removeprefix(BEHIND_ROW)),
            explanation=BEHIND_EXPLANATION,
        )
        return msgspec.json.encode(behind)
    if alert.subject_id.startswith(ORDER_ROW):
        merchant, _, order_id = alert.subject_id.removeprefix(ORDER_ROW).partition("/")
        paid = OrderMessage(
            alert=alert.id,
            raised_at=rfc3339(alert.created_at_ms),
            why=ORDER_WHY,
            merchant=merchant,
            order_id=order_id,
            explanation=ORDER_EXPLANATION,
        )
        return msgspec.json.encode(paid)
    if alert.subject_id.startswith(PAID_AGAIN_ROW):
        return await _of_paid_again(relay, alert)
    if alert.subject_id.startswith(LOST_CUSTOMERS_ROW):
        number, _, merchant = alert.subject_id.removeprefix(LOST_CUSTOMERS_ROW).partition("/")
        lost = LostCustomersMessage(
            alert=alert.id,
            raised_at=rfc3339(alert.created_at_ms),
            why=CUSTOMERS_WHY,
            merchant=merchant,
            incarnation=int(number),
            explanation=CUSTOMERS_EXPLANATION,
        )
        return msgspec.json.encode(lost)
    if alert.attempts == 0:
        relay.log.error("row_digest_wrong", row=alert.subject_id)
    message = RowMessage(
        alert=alert.id,
        raised_at=rfc3339(alert.created_at_ms),
        why="A stored row was changed, or written, by somebody who lacks the key; or the key of its values was lost",
        row=alert.subject_id,
        explanation=GONE_SENTENCE if alert.subject_id.startswith("anchors/") else ROW_SENTENCE,
    )
    return msgspec.json.encode(message)


async def _of_paid_again(relay: Relay, alert: Alert) -> bytes:
    """Writes an alert that an order was paid again; before the first attempt a line of the log says the same."""
    told = told_in(alert.subject_id)
    both = await relay.money.paid_again.both(told, now_ms=alert.created_at_ms)
    if alert.attempts == 0:
        before = None if both[1] is None else both[1].identity
        logged = {"order_id": told.order_id, "payment": told.identity, "earlier": before}
        relay.log.error("order_paid_again", merchant=told.merchant, **logged)
    payment, earlier = (
        None
        if each is None
        else PaidPayment(
            payment_id=each.payment_id,
            operation_id=each.operation_id,
            checkout_id=each.checkout_id,
            subscription_id=each.plan,
            principal=each.principal,
            amount=amount_json(each.amount_minor),
            currency=each.currency,
        )
        for each in both
    )
    message = PaidAgainMessage(
        alert=alert.id,
        raised_at=rfc3339(alert.created_at_ms),
        why=AGAIN_WHY,
        merchant=told.merchant,
        order_id=told.order_id,
        # The alert's name has its number, where nothing else is left of it.
        payment=payment or PaidPayment(payment_id=told.identity, amount=amount_json(None)),
        earlier=earlier,
        explanation=AGAIN_EXPLANATION,
    )
    return msgspec.json.encode(message)


async def _of_anchor(_: Relay, alert: Alert) -> bytes:
    """Writes the anchor of the day; the log has had it since it was made."""
    message = AnchorMessage(
        alert=alert.id,
        raised_at=rfc3339(alert.created_at_ms),
        why="The newest anchor of the audit",
        anchor=alert.subject_id,
        explanation=ANCHOR_SENTENCE,
    )
    return msgspec.json.encode(message)


MESSAGES: Final[dict[AlertSubject, Callable[[Relay, Alert], Awaitable[bytes | None]]]] = {
    AlertSubject.OPERATION: _of_operation,
    AlertSubject.NOTIFICATION: _of_notification,
    AlertSubject.ENDPOINT: _of_endpoint,
    AlertSubject.CHECKOUT: _of_checkout,
    AlertSubject.ROW: _of_row,
    AlertSubject.ANCHOR: _of_anchor,
}
"""The functions that write the messages; each returns None where no alert is needed any more. They raise LookupError
where what the alert is about is gone, and StoreError."""
