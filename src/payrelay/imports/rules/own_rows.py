"""Reads the rows of files in Payrelay's own form, one kind of thing in each: cards, subscriptions or payments.

The column that a file must have tells its kind: ``payment_id``, ``subscription_id`` or ``customer_token``, in this
order. A column that no kind has is an error, so that a mistyped one isn't passed over.
"""

from typing import Final

from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.secret import Secret
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.imports.rules.fields import Fields, IsMerchant
from payrelay.imports.rules.items import (
    CardItem,
    ImportUnreadableError,
    Item,
    ItemRefusedError,
    NoItem,
    PaymentItem,
    PlanItem,
    SourceRow,
)

CARDS: Final = (
    *("customer_token", "reference", "label", "method", "card_no", "card_expiry", "card_holder", "order_id"),
    "merchant_id",
)
PLANS: Final = (
    *("subscription_id", "order_id", "state", "amount", "currency", "installments_paid", "next_on", "merchant_id"),
)
PAYMENTS: Final = (
    *("payment_id", "order_id", "amount", "currency", "status", "subscription_id", "paid_at", "merchant_id"),
)
KINDS: Final = {"payments": PAYMENTS, "subscriptions": PLANS, "cards": CARDS}
"""The columns of each kind; the first is the one that tells it."""
STATUSES: Final = {
    "received": PaymentStatus.RECEIVED,
    "refunded": PaymentStatus.REFUNDED,
    "charged_back": PaymentStatus.CHARGED_BACK,
}


def kind_of(columns: frozenset[str]) -> str:
    """Tells what a file with these columns has. Raises ImportUnreadableError."""
    kind = next((name for name, known in KINDS.items() if known[0] in columns), None)
    if kind is None:
        needed = ", ".join(f"{known[0]} ({name})" for name, known in KINDS.items())
        raise ImportUnreadableError(f"line 1: there is no column that tells what the file has: {needed}")
    unknown = sorted(columns - set(KINDS[kind]))
    if unknown:
        raise ImportUnreadableError(f"line 1: a file of {kind} has no column {unknown[0]!r}")
    return kind


def item_of(row: SourceRow, timezone: str, is_merchant: IsMerchant) -> Item:
    """Gives the item of a row; ``row.table`` is its kind."""
    fields = Fields(row.values)
    try:
        fields.require_merchant(is_merchant)
        if row.table == "payments":
            return _payment(row.place, fields, timezone)
        return _plan(row.place, fields) if row.table == "subscriptions" else _card(row.place, fields)
    except ItemRefusedError as error:
        return NoItem(place=row.place, reason=str(error))


def _payment(place: str, fields: Fields, timezone: str) -> PaymentItem:
    status = fields.text("status") or "received"
    if status not in STATUSES:
        raise ItemRefusedError(f"status is none of {', '.join(STATUSES)}")
    return PaymentItem(
        place=place,
        payment_id=fields.required_number("payment_id"),
        order_id=fields.required("order_id"),
        currency=fields.currency("currency"),
        amount_minor=fields.amount("amount"),
        status=STATUSES[status],
        subscription_id=fields.number("subscription_id"),
        paid_at_ms=fields.moment("paid_at", timezone),
    )


def _plan(place: str, fields: Fields) -> PlanItem:
    state = fields.text("state") or SubscriptionState.ACTIVE.value
    if state not in set(SubscriptionState):
        raise ItemRefusedError(f"state is none of {', '.join(SubscriptionState)}")
    has_amount = fields.text("amount") is not None
    return PlanItem(
        place=place,
        subscription_id=fields.required_number("subscription_id"),
        order_id=fields.required("order_id"),
        state=SubscriptionState(state),
        currency=fields.currency("currency") if has_amount or fields.text("currency") is not None else None,
        amount_minor=fields.amount("amount") if has_amount else None,
        paid=fields.count("installments_paid"),
        next_on=fields.day("next_on"),
    )


def _card(place: str, fields: Fields) -> CardItem:
    return CardItem(
        place=place,
        token=Secret(fields.token("customer_token")),
        reference=fields.text("reference"),
        label=fields.text("label"),
        method=fields.card_fact("method"),
        card_no_masked=fields.card_fact("card_no"),
        card_expiry=fields.card_expiry("card_expiry"),
        card_holder=fields.text("card_holder"),
        order_id=fields.text("order_id"),
    )
