"""Payments as the gateway shows them, in Payrelay's own terms, and the results of a search for them."""

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from payrelay.core.outcomes import Evidence
from payrelay.errors import Code

PAYMENT_ID_DIGITS_MAX: Final = 19
"""The digits of a 64-bit integer; the gateway's numbers have 12 digits today."""


class PaymentStatus(StrEnum):
    """The status of a payment. The values are stored and never change; an adapter knows the gateway's own words."""

    RECEIVED = "RECEIVED"
    """The payment was charged, and nothing of it refunded."""
    AUTHORIZED = "HELD"
    """The amount is authorized, and not captured yet."""
    REFUND_REQUESTED = "REFUND REQUESTED"
    REFUND_PROCESSING = "REFUND PROCESSING"
    REFUNDED = "REFUNDED"
    CHARGED_BACK = "CHARGEBACKED"
    OTHER = "OTHER"
    """A status that the gateway does not document."""


def status_of(stored: str) -> PaymentStatus:
    """Reads a stored status; OTHER for a word of the gateway's, which earlier versions stored."""
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
        description: what the payment was for, as it was requested.
        status: its status.
        currency, amount_minor: the money; None for an amount that can't be one of Payrelay's.
    """

    payment_id: str
    order_id: str
    at_ms: int | None
    description: str
    status: PaymentStatus
    currency: str
    amount_minor: int | None


def plain_number(digits: str) -> str:
    """Gives one of the gateway's numbers without leading zeros, as it is stored; of zeros alone one stays."""
    return digits.lstrip("0") or "0"


class PaymentsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer showed these payments."""

    payments: tuple[Payment, ...]
    evidence: Evidence


class NothingShown(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer showed that there is no payment: it had exactly the gateway's words for that."""

    evidence: Evidence


class NoObservation(msgspec.Struct, frozen=True, kw_only=True):
    """The search failed, which proves nothing; ``code`` is the error code, as for a read."""

    code: Code
    evidence: Evidence


Observation: TypeAlias = PaymentsSeen | NothingShown | NoObservation


def payment_number(text: str) -> str | None:
    """Gives a payment's number as it is stored, or None where the text can't be one (1 to 19 digits)."""
    is_number = text.isascii() and text.isdigit() and len(text) <= PAYMENT_ID_DIGITS_MAX
    return plain_number(text) if is_number else None
