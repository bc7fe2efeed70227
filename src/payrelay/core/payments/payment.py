"""Payments as they are seen at the gateway, in words of our own, and what an attempt to see them came to."""

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from payrelay.core.outcomes import Evidence
from payrelay.errors import Code

PAYMENT_ID_DIGITS_MAX: Final = 19
"""What a 64-bit integer can hold; the gateway's numbers have 12 digits today."""


class PaymentStatus(StrEnum):
    """How a payment stands. The values are stored, and stay as they are; an adapter knows the provider's own words."""

    RECEIVED = "RECEIVED"
    """The money was taken, and nothing of it given back."""
    AUTHORIZED = "HELD"
    """The money is held, and not taken yet."""
    REFUND_REQUESTED = "REFUND REQUESTED"
    REFUND_PROCESSING = "REFUND PROCESSING"
    REFUNDED = "REFUNDED"
    CHARGED_BACK = "CHARGEBACKED"
    OTHER = "OTHER"
    """In a way that the provider does not document."""


def status_of(stored: str) -> PaymentStatus:
    """Reads a stored status; earlier versions stored whatever word the provider had."""
    try:
        return PaymentStatus(stored)
    except ValueError:
        return PaymentStatus.OTHER


class Payment(msgspec.Struct, frozen=True, kw_only=True):
    """One payment's record.

    Attributes:
        payment_id: the gateway's number, as digits.
        order_id: of the order that was paid.
        at_ms: the gateway's date, read in its zone, milliseconds since 1970 UTC; None where it can't be read.
        description: what the payment was for, as it was asked.
        status: how it stands.
        currency, amount_minor: the money; None for an amount that is none of ours.
    """

    payment_id: str
    order_id: str
    at_ms: int | None
    description: str
    status: PaymentStatus
    currency: str
    amount_minor: int | None


def plain_number(digits: str) -> str:
    """Gives one of the gateway's numbers as it is kept, without leading zeros: with them it would be the same payment.

    Of zeros alone one stays.
    """
    return digits.lstrip("0") or "0"


class PaymentsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer showed these payments."""

    payments: tuple[Payment, ...]
    evidence: Evidence


class NothingShown(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer showed that there is none: exactly the gateway's words for that."""

    evidence: Evidence


class NoObservation(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing could be seen, which proves nothing; ``code`` says why, as of a read."""

    code: Code
    evidence: Evidence


Observation: TypeAlias = PaymentsSeen | NothingShown | NoObservation


def payment_number(text: str) -> str | None:
    """Gives a payment's number as it is kept, or None where the text can't be one (1 to 19 digits)."""
    is_number = text.isascii() and text.isdigit() and len(text) <= PAYMENT_ID_DIGITS_MAX
    return plain_number(text) if is_number else None
