"""Records in the gateway's JSON forms, its misspellings included."""

from datetime import datetime, timedelta
from decimal import Decimal

from payrelay_simulator.clock import gateway_date
from payrelay_simulator.money import double_of, fee_of, text_of
from payrelay_simulator.records import Card, Payment, Period, Person, Subscription
from payrelay_simulator.state import State
from payrelay_simulator.switches import Switches

Document = dict[str, object]

# A refund that is carried out in steps spends this long in each of the first two.
REFUND_STEP = timedelta(days=1)


def amount(cents: int, given: Decimal | int | None, switches: Switches) -> object:
    """Return an amount as a JSON number: a double, or just as the caller wrote it, by switch."""
    if switches.amounts == "doubles":
        return double_of(cents)
    if given is not None:
        return given
    return cents // 100 if cents % 100 == 0 else Decimal(text_of(cents))


def payment_record(payment: Payment, *, now: datetime, switches: Switches, items: object = None) -> Document:
    """Return a payment as searches and subscription payments show it."""
    return {
        "payment_id": payment.payment_id,
        "order_id": payment.order_id,
        "date": gateway_date(payment.at),
        "description": payment.description,
        "status": payment_status(payment, now=now, switches=switches),
        "currency": payment.currency,
        "amount": amount(payment.amount_cents, payment.amount_given, switches),
        "customer": _customer(payment.person),
        "amount_detail": _amount_detail(payment.amount_cents, payment.currency, switches),
        "payment_method": _payment_method(payment.card),
        "items": items,
        "request": {"custom1": payment.custom_1, "custom2": payment.custom_2},
    }


def payment_status(payment: Payment, *, now: datetime, switches: Switches) -> str:
    """Return the record status; a whole refund passes its steps as the clock moves, by switch."""
    if payment.is_charged_back:
        return switches.chargeback_record
    if not payment.standing_refunds:
        return "RECEIVED"
    if payment.refunded_cents < payment.amount_cents:
        return switches.partial_refund_record
    age = now - payment.standing_refunds[-1].at
    if switches.refund_progress == "instant" or age >= 2 * REFUND_STEP:
        return "REFUNDED"
    return "REFUND PROCESSING" if age >= REFUND_STEP else "REFUND REQUESTED"


def installment_record(payment: Payment, *, now: datetime, switches: Switches) -> Document:
    """Return a subscription's payment, which unlike a search shows its items."""
    items = item_rows(
        payment.description,
        payment.amount_cents - payment.startup_fee_cents,
        payment.startup_fee_cents,
        currency=payment.currency,
        switches=switches,
    )
    return payment_record(payment, now=now, switches=switches, items=items)


def subscription_record(subscription: Subscription, state: State, switches: Switches) -> Document:
    """Return a subscription as the list and the single lookup show it."""
    customer = state.customers[subscription.customer_token]
    first_cents = subscription.amount_cents + subscription.startup_fee_cents
    items = item_rows(
        subscription.description,
        subscription.amount_cents,
        subscription.startup_fee_cents,
        currency=subscription.currency,
        switches=switches,
    )
    is_cancelled = subscription.status == "CANCELLED"
    return {
        "subscription_id": subscription.subscription_id,
        "order_id": subscription.order_id,
        "date": gateway_date(subscription.started_at),
        "description": subscription.description,
        "recurring": recurring_prose(subscription.recurrence, subscription.duration),
        "status": switches.cancelled_subscription if is_cancelled else subscription.status,
        "amount": amount(subscription.amount_cents, None, switches),
        "currency": subscription.currency,
        "customer": _customer(customer.person),
        "amount_detail": _amount_detail(first_cents, subscription.currency, switches),
        "payment_method": _payment_method(customer.card),
        "items": items,
    }


def recurring_prose(recurrence: Period, duration: Period | None) -> str:
    """Return how often and how long, in the gateway's words; those for plurals and without end are a guess."""
    unit = recurrence.unit.lower()
    every = unit if recurrence.count == 1 else f"{recurrence.count} {unit}s"
    if duration is None:
        return f"Charged every {every} forever"
    plural = "" if duration.count == 1 else "s"
    return f"Charged every {every} for {duration.count} {duration.unit.lower()}{plural}"


def item_rows(
    name: str, amount_cents: int, startup_fee_cents: int, *, currency: str, switches: Switches
) -> list[Document]:
    """Return the item lines of a recurring payment: its subject, and the startup fee where there is one."""
    rows = [(name, amount_cents)] + ([("Startup Fee", startup_fee_cents)] if startup_fee_cents else [])
    return [
        {
            "name": row_name,
            "quantity": 1,
            "currency": currency,
            "unit_price": amount(cents, None, switches),
            "total_price": amount(cents, None, switches),
        }
        for row_name, cents in rows
    ]


def _customer(person: Person) -> Document:
    return {
        "fist_name": person.first_name,  # the gateway's own spelling
        "last_name": person.last_name,
        "email": person.email,
        "phone": person.phone,
        "delivery_details": {"address": person.address, "city": person.city, "country": person.country},
    }


def _amount_detail(cents: int, currency: str, switches: Switches) -> Document:
    fee_cents = fee_of(cents)
    return {
        "currency": currency,
        "gross": amount(cents, None, switches),
        "fee": amount(fee_cents, None, switches),
        "net": amount(cents - fee_cents, None, switches),
        "exchange_rate": 1.0 if switches.amounts == "doubles" else 1,
        "exchange_from": currency,
        "exchange_to": currency,
    }


def _payment_method(card: Card) -> Document:
    return {
        "method": card.method,
        "card_customer_name": card.holder_name,
        "card_no": masked(card),
    }


def masked(card: Card) -> str:
    """Return the card's number as it is shown; an empty text for a wallet, which has none."""
    return "*" * 12 + card.last_digits if card.last_digits else ""
