"""The figures of an order's money: of each payment, of each currency, where each comes from, and what isn't certain.

Amounts are hundredths. Those of different currencies are never added.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Self

import msgspec


class Figure(StrEnum):
    """One of the figures of a payment."""

    PAID = "paid"
    HELD = "held"
    GIVEN_BACK = "given_back"
    CHARGED_BACK = "charged_back"


class FigureSource(StrEnum):
    """What a figure comes from."""

    OPERATION = "operation"
    CHECKOUT = "checkout"
    INSTALLMENT = "installment"
    """Its id is the subscription and the payment, with a slash between them."""
    IMPORT = "import"
    """Its id is the file, and the line in it."""
    CHARGEBACK = "chargeback"
    """Its id is the notification."""
    RECORD = "record"
    """The gateway's record of the payment, as it was read last; its id is the payment."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What says a figure of a payment, and what it says; None for an amount or a currency that it doesn't name."""

    figure: Figure
    source: FigureSource
    id: str
    amount_minor: int | None
    currency: str | None


class DoubtKind(StrEnum):
    """Why something isn't certain: the word for programs, and a sentence for people."""

    sentence: str

    def __new__(cls, word: str, sentence: str = "") -> Self:
        """Makes a member, whose value is its word."""
        member = str.__new__(cls, word)
        member._value_, member.sentence = word, sentence
        return member

    OPEN_OPERATION = "open_operation", "this operation has no outcome yet, and may move money"
    OPEN_PAGE = "open_page", "this page is open, and the customer may pay on it"
    UNPROVED_HOLD = "unproved_hold", "the gateway reported this hold; only its capture proves the amount"
    VOID_OF_PART = "void_of_part", "the gateway doesn't document what a void of a part leaves"
    UNKNOWN_AMOUNT = "unknown_amount", "nothing says how much was paid, so no sum has it"
    UNKNOWN_STATUS = "unknown_status", "the gateway's record has a status that the service doesn't know"
    UNNUMBERED = "unnumbered", "nothing says which payment this is: another one of the order may be it"
    UNNUMBERED_LEFT_OUT = (
        "unnumbered_left_out",
        "this was paid, and nothing says by which payment: another one of the order may be it, so no sum has it",
    )
    DIFFERENT_AMOUNTS = "different_amounts", "two sources name different amounts or currencies of this payment"
    OTHER_CURRENCY = "other_currency", "this is of another currency than its payment, so no sum has it"
    OTHER_ORDER = "other_order", "another source says that this payment is another order's"
    PARTS_NOT_SHOWN = "parts_not_shown", "a part was given back, and the gateway's record shows no parts"
    REFUND_NOT_MADE_HERE = (
        "refund_not_made_here",
        "the gateway's record shows a refund that the service didn't make, and doesn't say of how much",
    )
    REFUND_NOT_SHOWN = (
        "refund_not_shown",
        "the gateway accepted the refund, and its record, read after that, showed the payment as not refunded",
    )
    REFUND_MAY_BE_WHOLE = (
        "refund_may_be_whole",
        "the gateway's record shows a refund, and doesn't say whether it is of more than the parts given back here",
    )
    RECEIVED_AGAIN = (
        "received_again",
        "the gateway's record showed that the payment went back, and now that it didn't: a second look will tell",
    )
    CHARGEBACK_NOT_SHOWN = (
        "chargeback_not_shown",
        "the gateway notified a chargeback, and its record of the payment doesn't show it yet",
    )
    CHARGEBACK_NOT_NOTIFIED = (
        "chargeback_not_notified",
        "the gateway's record shows a chargeback, and doesn't say of how much",
    )
    PART_NOT_SIGNED = "part_not_signed", "how much was charged back is in a field that the gateway doesn't sign"
    MORE_THAN_PAID = "more_than_paid", "more was given back and charged back than was paid"
    FORGED = "forged", "this row was changed by something other than the service, so nothing of it is believed"
    LOST_COMMITS = "lost_commits", "the database lost commits, and more may have happened than it has"
    TOO_MANY = "too_many", "the order has more than the service adds up at once, so there are no sums"


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """Something that isn't certain: why, and what it is about.

    ``id`` is an operation, a checkout, a payment or a row; the amount is what it is about, None where none is known.
    """

    kind: DoubtKind
    id: str
    payment_id: str | None = None
    amount_minor: int | None = None
    currency: str | None = None


class PaymentBalance(msgspec.Struct, frozen=True, kw_only=True):
    """The money of one payment, whatever ways it is known by.

    What was paid is what was given back, what was charged back, and what is left, together.

    Attributes:
        id: the payment's number; what is known of it instead where it has no number.
        payment_id: its number; None where nobody knows it, as of a hold.
        currency: of all amounts; None where none is known.
        paid_minor: what was taken; None where something was, and nothing says how much.
        held_minor, held_until_ms: what is authorized and not taken yet, and when that lapses at the latest.
        given_back_minor: what was refunded, at most what was paid.
        charged_back_minor: what a bank took back of the rest.
        left_minor: what is left, and may be refunded; None where it isn't known how much was paid.
        origins: where each figure comes from.
        doubts: what isn't certain of it.
    """

    id: str
    payment_id: str | None
    currency: str | None
    paid_minor: int | None
    held_minor: int
    held_until_ms: int | None
    given_back_minor: int
    charged_back_minor: int
    left_minor: int | None
    origins: tuple[Origin, ...]
    doubts: tuple[Doubt, ...]

    @property
    def is_certain(self) -> bool:
        """True where no figure may be another one."""
        return not self.doubts

    @property
    def is_paid(self) -> bool:
        """True where money was taken, and not all of it was given back or charged back."""
        return self.left_minor != 0 if self.paid_minor is None else bool(self.left_minor)

    def of(self, figure: Figure) -> tuple[Origin, ...]:
        """Gives where one figure comes from."""
        return tuple(each for each in self.origins if each.figure is figure)


class CurrencyBalance(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of an order's payments of one currency."""

    currency: str
    paid_minor: int
    held_minor: int
    given_back_minor: int
    charged_back_minor: int
    left_minor: int


class OrderBalance(msgspec.Struct, frozen=True, kw_only=True):
    """The money of one order, or of one payment where only that was asked for.

    Attributes:
        order_id: the order; None where nothing says a payment's order.
        currencies: the sums, by currency.
        payments: each payment, by its number.
        doubts: all that isn't certain, that of each payment among it.
        is_complete: False where there is too much to be added up; then there are neither sums nor payments.
    """

    order_id: str | None
    currencies: tuple[CurrencyBalance, ...] = ()
    payments: tuple[PaymentBalance, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    is_complete: bool = True

    @property
    def is_certain(self) -> bool:
        """True where no figure may be another one."""
        return not self.doubts

    def payment(self, payment_id: str) -> PaymentBalance | None:
        """Finds a payment by its number."""
        return next((each for each in self.payments if each.payment_id == payment_id), None)


def sums_of(payments: Iterable[PaymentBalance]) -> tuple[CurrencyBalance, ...]:
    """Adds up payments by currency; one whose amount or currency isn't known is in no sum but for what is held."""
    found: dict[str, list[PaymentBalance]] = {}
    for each in payments:
        if each.currency is not None:
            found.setdefault(each.currency, []).append(each)
    return tuple(_sum(currency, found[currency]) for currency in sorted(found))


def _sum(currency: str, payments: list[PaymentBalance]) -> CurrencyBalance:
    known = [each for each in payments if each.paid_minor is not None]
    return CurrencyBalance(
        currency=currency,
        paid_minor=sum(each.paid_minor or 0 for each in known),
        held_minor=sum(each.held_minor for each in payments),
        given_back_minor=sum(each.given_back_minor for each in known),
        charged_back_minor=sum(each.charged_back_minor for each in known),
        left_minor=sum(each.left_minor or 0 for each in known),
    )
