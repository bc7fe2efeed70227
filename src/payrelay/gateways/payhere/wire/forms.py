"""Writes the signed form by which a customer's browser asks the gateway for its page. Pure.

Rules:

1. The hash is made of the amount with two decimals and a point, whatever is posted. Where nothing is taken at once (an
   approval alone, a plan that begins later) the gateway wants an amount of its own in it; those differ between its
   environments and have changed without notice, and so are settings.
2. The digest of the secret is written in capitals, never the secret.
3. What isn't known isn't posted: an empty field is not the same as none to every gateway.
"""

import hashlib
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Final

import msgspec

from payrelay.core.calls import Item
from payrelay.core.checkouts.hosted_payment import CheckoutKind, HostedPayment, Plan
from payrelay.core.money import decimal_text
from payrelay.core.secret import Secret
from payrelay.gateways.gateway import CheckoutForm, ReturnUrls

LKR: Final = "LKR"
PATHS: Final[Mapping[CheckoutKind, str]] = MappingProxyType(
    {
        CheckoutKind.PAYMENT: "/pay/checkout",
        CheckoutKind.RECURRING: "/pay/checkout",
        CheckoutKind.PREAPPROVAL: "/pay/preapprove",
        CheckoutKind.AUTHORIZATION: "/pay/authorize",
    }
)


class HashAmounts(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the hash where nothing is taken at once, in hundredths.

    Attributes:
        preapproval_lkr_minor, preapproval_other_minor: of an approval that takes nothing, in rupees and in any other
            currency.
        trial_lkr_minor, trial_other_minor: of a plan that begins on a later day.
    """

    preapproval_lkr_minor: int = 1_000
    preapproval_other_minor: int = 51
    trial_lkr_minor: int = 1_000
    trial_other_minor: int = 50


class Merchant(msgspec.Struct, frozen=True, kw_only=True):
    """Who signs, and where the form goes; ``base_url`` has no slash at its end."""

    base_url: str
    merchant_id: str
    merchant_secret: Secret
    amounts: HashAmounts = HashAmounts()


def build_form(merchant: Merchant, asked: HostedPayment, returns: ReturnUrls, *, today: date) -> CheckoutForm:
    """Writes the form; ``today`` is the day at the gateway, after which a plan's first day is a later one."""
    person = asked.person
    fields: dict[str, str | None] = {
        "merchant_id": merchant.merchant_id,
        "return_url": returns.return_url,
        "cancel_url": returns.cancel_url,
        "notify_url": returns.notify_url,
        "first_name": person.first_name,
        "last_name": person.last_name,
        "email": person.email,
        "phone": person.phone,
        "address": person.home.address,
        "city": person.home.city,
        "country": person.home.country,
        "order_id": asked.order_id,
        "items": asked.items,
        "currency": asked.currency,
        "amount": None if asked.amount_minor is None else decimal_text(asked.amount_minor),
        "hash": hash_of(merchant, asked, today=today),
        **_delivery(asked),
        **_lines(asked.item_list),
        "platform": asked.platform,
        "custom_1": asked.custom_1,
        "custom_2": asked.custom_2,
        "payment_method": asked.payment_method,
        **({} if asked.plan is None else _plan(asked.plan)),
    }
    return CheckoutForm(
        action=merchant.base_url + PATHS[asked.kind],
        fields={name: value for name, value in fields.items() if value is not None},
    )


def hash_of(merchant: Merchant, asked: HostedPayment, *, today: date) -> str:
    """Gives the field ``hash``."""
    amount = decimal_text(hashed_minor(asked, merchant.amounts, today=today))
    secret_digest = md5_capitals(merchant.merchant_secret.reveal())
    return md5_capitals(merchant.merchant_id + asked.order_id + amount + asked.currency + secret_digest)


def hashed_minor(asked: HostedPayment, amounts: HashAmounts, *, today: date) -> int:
    """Gives the amount in the hash, in hundredths."""
    is_lkr = asked.currency == LKR
    starts_on = None if asked.plan is None else asked.plan.starts_on
    if starts_on is not None and starts_on > today:
        return amounts.trial_lkr_minor if is_lkr else amounts.trial_other_minor
    if asked.first_minor is None:
        return amounts.preapproval_lkr_minor if is_lkr else amounts.preapproval_other_minor
    return asked.first_minor


def md5_capitals(text: str) -> str:
    """Gives the digest that the gateway's signatures are made of; the algorithm is its choice, and no protection."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().upper()


def _delivery(asked: HostedPayment) -> dict[str, str | None]:
    place = asked.delivery
    if place is None:
        return {}
    return {
        "delivery_address": place.address,
        "delivery_city": place.city,
        "delivery_country": place.country,
    }


def _lines(items: tuple[Item, ...]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for number, item in enumerate(items, start=1):
        fields[f"item_name_{number}"] = item.name
        fields[f"item_number_{number}"] = item.number
        fields[f"amount_{number}"] = decimal_text(item.unit_amount_minor)
        fields[f"quantity_{number}"] = str(item.quantity)
    return fields


def _plan(plan: Plan) -> dict[str, str | None]:
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
