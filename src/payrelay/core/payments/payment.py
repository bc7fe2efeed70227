"""Payments as the gateway shows them, in Payrelay's own terms, and the results of a search for them."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from payrelay.core.outcomes import Evidence
from payrelay.errors import Code

PAYMENT_ID_DIGITS_MAX: Final = 19
"""The digits of a 64-bit integer; the gateway's numbers have 12 digits today."""
MISSING_MAX: Final = 50
"""The most payments that one answer names as missing from the gateway's record: some 1,000 bytes of a header."""
LOOK_S_MIN: Final = 2
LOOK_S_MAX: Final = 600
"""The limits of the pause before the gateway's record may show a payment; it is a tenth of the time since it is known.
"""


class PaymentStatus(StrEnum):
    """The status of a payment. The values are stored and never change; an adapter knows the gateway's own words."""

    RECEIVED = "RECEIVED"
    """The payment was charged. A refund of a part leaves it so."""
    AUTHORIZED = "HELD"
    """The amount is authorized, and not captured yet."""
    REFUND_REQUESTED = "REFUND REQUESTED"
    REFUND_PROCESSING = "REFUND PROCESSING"
    REFUNDED = "REFUNDED"
    CHARGED_BACK = "CHARGEBACKED"
    OTHER = "OTHER"
    """A status that the gateway does not document."""


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


class TakenPayment(msgspec.Struct, frozen=True, kw_only=True):
    """A payment that took money, as it is known here; what was given back of it since doesn't matter.

    Attributes:
        payment_id: the gateway's number; None where it isn't known.
        made_by: the operation or checkout that made it, or the subscription or import that tells of it.
        owner: the principal whose it is by that; None for an installment of a subscription of nobody's.
        known_at_ms: when it became known.
    """

    payment_id: str | None
    made_by: str
    owner: str | None
    known_at_ms: int

    @property
    def key(self) -> str:
        """Names the payment: by its number, or by what made it where that isn't known."""
        return self.payment_id or self.made_by


def missing_ids(missing: Iterable[TakenPayment]) -> tuple[str, ...]:
    """Gives the numbers of payments, as far as they are known, each once and sorted: the newest MISSING_MAX of them."""
    numbers = {each.payment_id for each in missing if each.payment_id is not None}
    return tuple(sorted(numbers, key=lambda number: (len(number), number))[-MISSING_MAX:])


def missing_sentence(payment_ids: Collection[str]) -> str:
    """Says that the gateway's record doesn't show payments that took money; without numbers where none is known."""
    if not payment_ids:
        return "money was taken by a payment whose number is not known, and the gateway's record does not show it yet"
    noun = "payment" if len(payment_ids) == 1 else "payments"
    return f"money was taken by the {noun} {', '.join(payment_ids)}, which the gateway's record does not show yet"


def look_again_s(missing: Iterable[TakenPayment], now_ms: int) -> int:
    """Gives after how many seconds the gateway's record may show the newest of some payments."""
    newest_ms = max((each.known_at_ms for each in missing), default=now_ms)
    return min(max((now_ms - newest_ms) // 10_000, LOOK_S_MIN), LOOK_S_MAX)
