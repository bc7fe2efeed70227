"""Reads the rows of laravel-payhere's tables, of every version that was published, as items.

Rules:

1. A row of the payments is a notification that the package accepted. A token in it is a card, a number of a
   subscription is an installment, and what took money is a payment.
2. The table of subscriptions says what the shop last knew. Versions without the gateway's number there tell of their
   subscriptions in the payments alone.
3. Columns that later versions encrypt are opened with the shop's key. So the database's own unique index on them
   finds no repeat: a payment may stand there several times.
"""

from collections.abc import Iterator
from typing import Final

from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.secret import Secret
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.imports.rules.fields import IsMerchant
from payrelay.imports.rules.items import CardItem, Item, ItemRefusedError, NoItem, PaymentItem, PlanItem, SourceRow
from payrelay_tools.laravel.fields import LaravelFields
from payrelay_tools.laravel.secrets import AppKeys

PAYMENTS: Final = frozenset({"order_id", "payhere_amount", "payhere_currency", "status_code"})
"""The columns by which the table of payments is known, whatever its name."""
SUBSCRIPTIONS: Final = frozenset({"order_id", "payhere_subscription_id", "status"})
"""Those of the table of subscriptions, where it has the gateway's numbers."""

SUCCESS: Final = "2"
HOLD: Final = "3"
CHARGED_BACK: Final = "-3"
_NO_MONEY: Final = {
    "0": "it was pending: import it again once the gateway has told the outcome, or ask the gateway for its order",
    "-1": "it was cancelled, and took no money",
    "-2": "it failed, and took no money",
}
_PENDING: Final = "0"
HOLD_REASON: Final = "it is an authorization, which lapses within a week: capture or void it by its token"
CHARGED_BACK_CARD: Final = "its card is left out, because its payment was charged back"
_REC_STATES: Final = {
    "0": SubscriptionState.ACTIVE,
    "1": SubscriptionState.COMPLETED,
    "-1": SubscriptionState.STOPPED,
    "-2": SubscriptionState.STOPPED,
}
_STATES: Final = {
    **_REC_STATES,
    "ACTIVE": SubscriptionState.ACTIVE,
    "TRIALING": SubscriptionState.ACTIVE,
    "COMPLETED": SubscriptionState.COMPLETED,
    "CANCELLED": SubscriptionState.STOPPED,
    "FAILED": SubscriptionState.STOPPED,
}
_NOT_BEGUN: Final = frozenset({"-3", "PENDING"})
_ENDS: Final = {"RECURRING_COMPLETE": SubscriptionState.COMPLETED, "RECURRING_STOPPED": SubscriptionState.STOPPED}


def items_of_laravel(row: SourceRow, keys: AppKeys, timezone: str, is_merchant: IsMerchant) -> Iterator[Item]:
    """Gives the items of a row of laravel-payhere's; one NoItem where it has none."""
    fields = LaravelFields(row.values, keys)
    try:
        yield from list(_items(row, fields, timezone, is_merchant))
    except ItemRefusedError as error:
        yield NoItem(place=row.place, reason=str(error))


def is_of_laravel(columns: frozenset[str]) -> bool:
    """Tells whether a table with these columns is one of laravel-payhere's that tell something."""
    return columns >= PAYMENTS or columns >= SUBSCRIPTIONS


def _items(row: SourceRow, fields: LaravelFields, timezone: str, is_merchant: IsMerchant) -> Iterator[Item]:
    fields.require_merchant(is_merchant)
    if frozenset(row.values) >= PAYMENTS:
        yield from _of_payments(row, fields, timezone)
    else:
        yield _of_subscriptions(row, fields, timezone)


def _of_payments(row: SourceRow, fields: LaravelFields, timezone: str) -> Iterator[Item]:
    status = fields.required("status_code")
    if status in _NO_MONEY:
        yield NoItem(place=row.place, reason=_NO_MONEY[status], is_refused=status == _PENDING)
        return
    if status == HOLD:
        yield NoItem(place=row.place, reason=HOLD_REASON)
        return
    if status not in {SUCCESS, CHARGED_BACK}:
        raise ItemRefusedError("status_code is none of the gateway's")
    order_id, subscription_id = fields.required("order_id"), fields.number("subscription_id")
    payment_id = fields.number("payment_id", "payhere_payment_id")
    at_ms = fields.moment("created_at", timezone)
    if status == SUCCESS and fields.text("customer_token") is not None:
        yield _card(row, fields, order_id, payment_id)
    elif fields.text("customer_token") is not None:
        yield NoItem(place=row.place, reason=CHARGED_BACK_CARD, is_refused=False)
    if payment_id is None:
        yield NoItem(
            place=row.place, reason="payment_id is missing: nobody can refund it by a number", is_refused=False
        )
        return
    amount_minor = fields.amount("payhere_amount")
    currency = fields.currency("payhere_currency")
    yield PaymentItem(
        place=row.place,
        payment_id=payment_id,
        order_id=order_id,
        currency=currency,
        amount_minor=amount_minor,
        status=_status(status, fields),
        subscription_id=subscription_id,
        paid_at_ms=at_ms,
    )
    if subscription_id is not None and status == SUCCESS:
        message = fields.text("message_type")
        state = _REC_STATES.get(fields.text("item_rec_status") or "0")
        if state is None:
            raise ItemRefusedError("item_rec_status is none of the gateway's")
        yield PlanItem(
            place=row.place,
            subscription_id=subscription_id,
            order_id=order_id,
            state=_ENDS.get(message or "", state),
            currency=currency,
            amount_minor=amount_minor,
            paid=fields.count("item_rec_install_paid"),
            next_on=fields.day("item_rec_date_next"),
            at_ms=at_ms,
            payment_id=payment_id,
        )


def _status(status: str, fields: LaravelFields) -> PaymentStatus:
    if status == CHARGED_BACK:
        return PaymentStatus.CHARGED_BACK
    return PaymentStatus.REFUNDED if fields.flag("refunded") else PaymentStatus.RECEIVED


def _card(row: SourceRow, fields: LaravelFields, order_id: str, payment_id: str | None) -> CardItem:
    return CardItem(
        place=row.place,
        token=Secret(fields.token("customer_token")),
        reference=fields.text("user_id"),
        method=fields.card_fact("method"),
        card_no_masked=fields.card_fact("card_no"),
        card_expiry=fields.card_expiry("card_expiry"),
        card_holder=fields.text("card_holder_name"),
        order_id=order_id,
        payment_id=payment_id,
    )


def _of_subscriptions(row: SourceRow, fields: LaravelFields, timezone: str) -> Item:
    status = (fields.text("status") or "-3").upper()
    if status in _NOT_BEGUN:
        return NoItem(place=row.place, reason="it is pending: nobody has paid for it yet", is_refused=False)
    if status not in _STATES:
        raise ItemRefusedError("status is none of laravel-payhere's")
    subscription_id = fields.number("payhere_subscription_id")
    if subscription_id is None:
        return NoItem(
            place=row.place, reason="payhere_subscription_id is missing: the payments may name it", is_refused=False
        )
    return PlanItem(
        place=row.place,
        subscription_id=subscription_id,
        order_id=fields.required("order_id"),
        state=_STATES[status],
        at_ms=fields.moment("updated_at", timezone),
    )
