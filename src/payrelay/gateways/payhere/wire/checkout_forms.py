"""Writes the signed form by which a customer's browser asks the gateway for its page. Pure.

Rules:

1. The hash is made of the amount with two decimals and a point, whatever is posted. Where nothing is charged at once
   (an approval alone, a plan that begins later), the gateway wants a special amount in it. These amounts differ between
   its environments and have changed without notice, so they are settings.
2. The digest of the secret is written in capitals, never the secret.
3. An unknown value is not posted, because some gateways tell an empty field from an absent one.
"""

import hashlib
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Final

import msgspec

from payrelay.core.calls import Charge, Effect, Item
from payrelay.core.checkouts.hosted_payment import CheckoutKind, HostedPayment, Plan
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.money import decimal_text
from payrelay.core.secret import Secret
from payrelay.gateways.gateway import CheckoutForm, HostedPage, ReturnUrls

LKR: Final = "LKR"
CURRENCIES: Final = frozenset({LKR, "USD", "GBP", "EUR", "AUD"})
"""The currencies that the gateway documents; for a form in any other one its page shows the customer an error."""
PATHS: Final[Mapping[CheckoutKind, str]] = MappingProxyType(
    {
        CheckoutKind.PAYMENT: "/pay/checkout",
        CheckoutKind.RECURRING: "/pay/checkout",
        CheckoutKind.PREAPPROVAL: "/pay/preapprove",
        CheckoutKind.AUTHORIZATION: "/pay/authorize",
    }
)


class HashAmounts(msgspec.Struct, frozen=True, kw_only=True):
    """The amounts in the hash where nothing is charged at once, in hundredths.

    Attributes:
        preapproval_lkr_minor, preapproval_other_minor: of an approval that charges nothing, in rupees and in any other
            currency.
        trial_lkr_minor, trial_other_minor: of a plan that begins on a later day.
    """

    preapproval_lkr_minor: int = 1_000
    preapproval_other_minor: int = 51
    trial_lkr_minor: int = 1_000
    trial_other_minor: int = 50


class Merchant(msgspec.Struct, frozen=True, kw_only=True):
    """The merchant that signs, and the address for the form; ``base_url`` has no slash at its end."""

    base_url: str
    merchant_id: str
    merchant_secret: Secret
    amounts: HashAmounts = HashAmounts()


def build_form(merchant: Merchant, payment: HostedPayment, returns: ReturnUrls, *, today: date) -> CheckoutForm:
    """Writes the form. ``today`` is the gateway's day: a plan whose first day is after it begins later."""
    customer = payment.person
    fields: dict[str, str | None] = {
        "merchant_id": merchant.merchant_id,
        "return_url": returns.return_url,
        "cancel_url": returns.cancel_url,
        "notify_url": returns.notify_url,
        "first_name": customer.first_name,
        "last_name": customer.last_name,
        "email": customer.email,
        "phone": customer.phone,
        "address": customer.home.address,
        "city": customer.home.city,
        "country": customer.home.country,
        "order_id": payment.order_id,
        "items": payment.items,
        "currency": payment.currency,
        "amount": None if payment.amount_minor is None else decimal_text(payment.amount_minor),
        "hash": hash_of(merchant, payment, today=today),
        **_delivery_fields(payment),
        **_item_fields(payment.item_list),
        "platform": payment.platform,
        "custom_1": payment.custom_1,
        "custom_2": payment.custom_2,
        "payment_method": payment.payment_method,
        **({} if payment.plan is None else _plan_fields(payment.plan)),
    }
    return CheckoutForm(
        action=merchant.base_url + PATHS[payment.kind],
        fields={name: value for name, value in fields.items() if value is not None},
    )


def hash_of(merchant: Merchant, payment: HostedPayment, *, today: date) -> str:
    """Gives the field ``hash``."""
    amount = decimal_text(hashed_minor(payment, merchant.amounts, today=today))
    secret_digest = md5_capitals(merchant.merchant_secret.reveal())
    return md5_capitals(merchant.merchant_id + payment.order_id + amount + payment.currency + secret_digest)


def hashed_minor(payment: HostedPayment, amounts: HashAmounts, *, today: date) -> int:
    """Gives the amount in the hash, in hundredths."""
    is_lkr = payment.currency == LKR
    starts_on = None if payment.plan is None else payment.plan.starts_on
    if starts_on is not None and starts_on > today:
        return amounts.trial_lkr_minor if is_lkr else amounts.trial_other_minor
    return approval_minor(amounts, payment.currency) if payment.first_minor is None else payment.first_minor


def approval_minor(amounts: HashAmounts, currency: str) -> int:
    """Gives the amount in the hash of an approval that charges nothing, in hundredths."""
    return amounts.preapproval_lkr_minor if currency == LKR else amounts.preapproval_other_minor


def signed_texts_of(subject: HostedPage | Effect, amounts: HashAmounts) -> tuple[SignedText, ...]:
    """Gives the texts that the gateway signs once it gets a form, or a call for an authorization; none for other calls.

    The form of a plan has the first payment in its hash. Later payments are notified with the plan's own amount.
    """
    if isinstance(subject, Charge) and subject.authorize:
        return (_text(subject.order_id, subject.amount_minor, subject.currency),)
    if not isinstance(subject, HostedPage):
        return ()
    payment = subject.payment
    signed = {hashed_minor(payment, amounts, today=subject.today)}
    if payment.plan is not None and payment.amount_minor is not None:
        signed.add(payment.amount_minor)
    return tuple(_text(payment.order_id, amount_minor, payment.currency) for amount_minor in sorted(signed))


def _text(order_id: str, amount_minor: int, currency: str) -> SignedText:
    return SignedText(order_id=order_id, amount_minor=amount_minor, currency=currency)


def md5_capitals(text: str) -> str:
    """Gives the digest that the gateway's signatures are made of.

    The gateway chose the algorithm, which is no protection.
    """
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().upper()


def _delivery_fields(payment: HostedPayment) -> dict[str, str | None]:
    to = payment.delivery
    if to is None:
        return {}
    return {"delivery_address": to.address, "delivery_city": to.city, "delivery_country": to.country}


def _item_fields(items: tuple[Item, ...]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for number, item in enumerate(items, start=1):
        fields[f"item_name_{number}"] = item.name
        fields[f"item_number_{number}"] = item.number
        fields[f"amount_{number}"] = decimal_text(item.unit_amount_minor)
        fields[f"quantity_{number}"] = str(item.quantity)
    return fields


def _plan_fields(plan: Plan) -> dict[str, str | None]:
    return {
        "recurrence": plan.recurrence,
        "duration": plan.duration,
        "startup_fee": None if plan.startup_fee_minor is None else _signed(plan.startup_fee_minor),
        "auto_cancel": _word(is_so=plan.auto_cancel),
        "max_retries": None if plan.max_retries is None else str(plan.max_retries),
        "recurring_start_date": None if plan.starts_on is None else plan.starts_on.isoformat(),
        "is_recovery_due": _word(is_so=plan.is_recovery_due),
    }


def _signed(amount_minor: int) -> str:
    return decimal_text(amount_minor) if amount_minor >= 0 else f"-{decimal_text(-amount_minor)}"


def _word(*, is_so: bool | None) -> str | None:
    return None if is_so is None else "true" if is_so else "false"
