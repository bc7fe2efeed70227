"""What notifications say: their fields, per flow, in the order in which the gateway writes them."""

from datetime import datetime
from typing import Literal

from payrelay_simulator.clock import GATEWAY_ZONE
from payrelay_simulator.money import text_of
from payrelay_simulator.notification_faults import Flow
from payrelay_simulator.notifications import Message
from payrelay_simulator.records import Card, Hold, Payment, Period, Subscription
from payrelay_simulator.rendering import masked
from payrelay_simulator.reply import MARK

SUCCESS, AUTHORIZED, PENDING, CANCELED, FAILED, CHARGED_BACK = 2, 3, 0, -1, -2, -3

MessageType = Literal[
    "AUTHORIZATION_SUCCESS",
    "AUTHORIZATION_FAILED",
    "RECURRING_INSTALLMENT_SUCCESS",
    "RECURRING_INSTALLMENT_FAILED",
    "RECURRING_COMPLETE",
    "RECURRING_STOPPED",
]

# The documents name a holder, a number and an expiry for these only.
METHODS_WITH_CARD = frozenset({"VISA", "MASTER"})

# `item_rec_status` of an active, a cancelled and a completed subscription.
REC_STATUS = {"ACTIVE": "0", "CANCELLED": "-1", "FAILED": "-1", "COMPLETED": "1"}


def status_text(status_code: int, method: str, reason: str = "") -> str:
    """Return the status message; only that of a success has been seen."""
    if status_code == SUCCESS:
        return f"Successfully received the {method} payment"
    words = {AUTHORIZED: "authorized", PENDING: "pending", CANCELED: "canceled", CHARGED_BACK: "charged back"}
    return MARK + (reason or words.get(status_code, "failed"))


def payment_message(flow: Flow, payment: Payment, status_code: int, *, reason: str = "") -> Message:
    """Return what is told of a payment, received or not."""
    return Message(flow=flow, notify_url=payment.notify_url, fields=_payment_fields(payment, status_code, reason))


def preapproval_message(payment: Payment, status_code: int, customer_token: str, *, reason: str = "") -> Message:
    """Return what is told of a preapproval, which names the customer's token where it was given."""
    fields = _payment_fields(payment, status_code, reason)
    for name in ("captured_amount", "recurring"):
        del fields[name]
    token = {"customer_token": customer_token} if customer_token else {}
    fields = _inserted(fields, "status_message", token)
    return Message(flow="preapproval", notify_url=payment.notify_url, fields=fields)


def hold_message(flow: Flow, hold: Hold, status_code: int, *, has_payment_id: bool, reason: str = "") -> Message:
    """Return what is told of an authorization, which names its token where it was given."""
    fields = {
        "merchant_id": hold.merchant_id,
        "order_id": hold.order_id,
        **({"payment_id": str(hold.payment_id)} if has_payment_id else {}),
        "payhere_amount": text_of(hold.amount_cents),
        "payhere_currency": hold.currency,
        "status_code": str(status_code),
        "status_message": status_text(status_code, hold.card.method, reason),
        **({"authorization_token": hold.authorization_token} if hold.authorization_token else {}),
        "custom_1": hold.custom_1 or "",
        "custom_2": hold.custom_2 or "",
        **_card_fields(hold.card),
    }
    return Message(flow=flow, notify_url=hold.notify_url, fields=fields)


def recurring_message(
    payment: Payment,
    subscription: Subscription,
    message_type: MessageType,
    *,
    next_at: datetime | None,
    reason: str = "",
) -> Message:
    """Return what is told of a subscription's first or a later payment, received or not."""
    is_good = message_type in {"AUTHORIZATION_SUCCESS", "RECURRING_INSTALLMENT_SUCCESS", "RECURRING_COMPLETE"}
    fields = _payment_fields(payment, SUCCESS if is_good else FAILED, reason)
    # A first payment that failed made no subscription that could be named; one that starts later has one already.
    if subscription.subscription_id:
        fields["subscription_id"] = str(subscription.subscription_id)
    rec_status = REC_STATUS[subscription.status]
    fields |= {
        "recurring": "1",
        "message_type": message_type,
        "item_recurrence": _period_text(subscription.recurrence),
        "item_duration": "Forever" if subscription.duration is None else _period_text(subscription.duration),
        "item_rec_status": "-1" if message_type == "AUTHORIZATION_FAILED" else rec_status,
        "item_rec_date_next": "" if next_at is None else next_at.astimezone(GATEWAY_ZONE).strftime("%Y-%m-%d"),
        "item_rec_install_paid": str(subscription.cycle),
    }
    return Message(flow="recurring", notify_url=subscription.notify_url, fields=fields)


def _payment_fields(payment: Payment, status_code: int, reason: str) -> dict[str, str]:
    amount = text_of(payment.amount_cents)
    return {
        "merchant_id": payment.merchant_id,
        "order_id": payment.order_id,
        "payment_id": str(payment.payment_id),
        "captured_amount": text_of(_moved_cents(payment, status_code)),
        "payhere_amount": amount,
        "payhere_currency": payment.currency,
        "status_code": str(status_code),
        "custom_1": payment.custom_1 or "",
        "custom_2": payment.custom_2 or "",
        "status_message": status_text(status_code, payment.card.method, reason),
        **_card_fields(payment.card),
        "recurring": "0" if payment.subscription_id is None else "1",
        **({} if payment.subscription_id is None else {"subscription_id": str(payment.subscription_id)}),
    }


def _moved_cents(payment: Payment, status_code: int) -> int:
    """Return how much was received, or taken back, with what is told."""
    if status_code == CHARGED_BACK:
        return payment.charged_back_cents
    return payment.amount_cents if status_code == SUCCESS else 0


def _card_fields(card: Card) -> dict[str, str]:
    if card.method not in METHODS_WITH_CARD:
        return {"method": card.method}
    return {
        "method": card.method,
        "card_holder_name": card.holder_name,
        "card_no": masked(card),
        "card_expiry": card.expiry,
    }


def _inserted(fields: dict[str, str], behind: str, more: dict[str, str]) -> dict[str, str]:
    result: dict[str, str] = {}
    for name, value in fields.items():
        result[name] = value
        if name == behind:
            result.update(more)
    return result


def _period_text(period: Period) -> str:
    return f"{period.count} {period.unit}"
