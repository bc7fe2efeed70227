"""An order's money in words that support can read to a customer; they are the names of the figures.

Rules:

1. One sentence says what was paid, given back, charged back, and is left; another one what is held. No amounts of
   different currencies are added.
2. Where anything isn't certain, the sentence says that it holds as far as is known. What isn't certain follows it, each
   in a sentence of its own.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from payrelay.core.money import money_text
from payrelay.core.orders.figures import (
    CurrencyBalance,
    Doubt,
    DoubtKind,
    Figure,
    FigureSource,
    OrderBalance,
    Origin,
    PaymentBalance,
)
from payrelay.core.orders.given_back import shares_of
from payrelay.core.payments.payment import PaymentStatus

_STATUSES: Final = {
    PaymentStatus.RECEIVED: "paid; the record shows no refund of a part",
    PaymentStatus.AUTHORIZED: "held, and not captured",
    PaymentStatus.REFUND_REQUESTED: "a refund is requested",
    PaymentStatus.REFUND_PROCESSING: "a refund is being processed",
    PaymentStatus.REFUNDED: "given back",
    PaymentStatus.CHARGED_BACK: "charged back: the bank took it",
    PaymentStatus.OTHER: "a status that the gateway does not document",
}

UNDONE_SENTENCE: Final = (
    "Later news calls it failed: the gateway's record showed its payment as given back, and shows it so no more."
    " Nothing of it counts as given back."
)


class Return(msgspec.Struct, frozen=True, kw_only=True):
    """What went back of a payment at once: by a refund, or by a chargeback.

    ``figure`` is GIVEN_BACK or CHARGED_BACK. The amount is in hundredths; None where it isn't known.
    """

    figure: Figure
    origin: Origin
    amount_minor: int | None
    currency: str | None


def headline(balance: OrderBalance, when: Callable[[int], str]) -> str:
    """Says what an order's money is; ``when`` writes a time, in milliseconds since 1970, for the reader."""
    if not balance.is_complete:
        return _sentence(DoubtKind.TOO_MANY.sentence)
    said = list(_said(balance, when)) or ["nothing was paid, and nothing is held"]
    if not balance.is_certain:
        said[0] = f"as far as is known, {said[0]}"
    return " ".join(_sentence(each) for each in said)


def left_of(payment: PaymentBalance) -> str:
    """Says what is left of a payment, and may be given back: ``LKR 60.00 of 100.00``."""
    if payment.paid_minor is None or payment.left_minor is None:
        return "not known, because nothing says how much was paid"
    return f"{money_text(payment.left_minor, payment.currency)} of {money_text(payment.paid_minor, None)}"


def returns_of(payment: PaymentBalance) -> list[Return]:
    """Gives what went back of a payment, each once: a refund that was made here, in the order in which they began.

    A refund of the whole gave back what the others left. What only a file or the gateway's record tells is one return
    of the rest; how much isn't known where there is none.
    """
    given_back = payment.of(Figure.GIVEN_BACK)
    made = sorted((each for each in given_back if each.source is FigureSource.OPERATION), key=lambda each: each.id)
    shares = shares_of([each.amount_minor for each in made], payment.paid_minor)
    returns = [_return(each, share, payment) for each, share in zip(made, shares, strict=True)]
    elsewhere = tuple(each for each in given_back if each not in made)
    rest_minor = payment.given_back_minor - sum(each or 0 for each in shares)
    returns += _told_elsewhere(elsewhere, max(0, rest_minor), payment)
    return returns + _told_elsewhere(payment.of(Figure.CHARGED_BACK), payment.charged_back_minor, payment)


def status_text(status: PaymentStatus, known: PaymentBalance | None) -> str:
    """Says what the gateway's record has of a payment, beside what is known here of parts, which it doesn't show."""
    text = _STATUSES[status]
    if status is not PaymentStatus.RECEIVED or known is None or not known.given_back_minor:
        return text
    return f"{text}, and {money_text(known.given_back_minor, known.currency)} was given back"


def doubt_text(doubt: Doubt, name: str | None = None) -> str:
    """Says what isn't certain; ``name`` is what people call the thing that it is about, None for its id.

    An id stays as it is, also where the sentence begins with it.
    """
    number = None if doubt.payment_id is None else f"payment {doubt.payment_id}"
    about: list[str | None] = [name] if name is not None else [number if doubt.id == doubt.payment_id else doubt.id]
    if name is None:
        about.append(money_text(doubt.amount_minor, doubt.currency))
    if doubt.payment_id is not None and doubt.payment_id not in str(about[0]):
        about.append(number)
    text = f"{', '.join(filter(None, about)) or 'the order'}: {doubt.kind.sentence}"
    is_id = name is None and doubt.id != doubt.payment_id and bool(doubt.id)
    return f"{text}." if is_id else _sentence(text)


def _said(balance: OrderBalance, when: Callable[[int], str]) -> Iterator[str]:
    for each in balance.currencies:
        if each.paid_minor:
            yield _paid(each, sum(1 for one in balance.payments if one.currency == each.currency and one.paid_minor))
    if any(each.paid_minor is None for each in balance.payments):
        yield "something was paid, and nothing says how much"
    for payment in balance.payments:
        if payment.held_minor:
            lapses = "" if payment.held_until_ms is None else f", until {when(payment.held_until_ms)} at the latest"
            yield f"{money_text(payment.held_minor, payment.currency)} is held and not charged{lapses}"


def _paid(sums: CurrencyBalance, payments: int) -> str:
    currency = sums.currency
    times = f" in {payments} payments" if payments > 1 else ""
    said = [f"{money_text(sums.paid_minor, currency)} was paid{times}"]
    if sums.given_back_minor:
        said.append(f"{money_text(sums.given_back_minor, currency)} was given back")
    if sums.charged_back_minor:
        said.append(f"{money_text(sums.charged_back_minor, currency)} was charged back by the bank")
    left = money_text(sums.left_minor, currency) if sums.left_minor else "nothing"
    return f"{', '.join(said)}, and {left} is left"


def _told_elsewhere(origins: tuple[Origin, ...], amount_minor: int, payment: PaymentBalance) -> list[Return]:
    """Gives the one return that all these tell of; a record tells the least of it."""
    first = min(origins, key=lambda each: (each.source is FigureSource.RECORD, each.id), default=None)
    return [] if first is None else [_return(first, amount_minor or None, payment)]


def _return(origin: Origin, amount_minor: int | None, payment: PaymentBalance) -> Return:
    return Return(figure=origin.figure, origin=origin, amount_minor=amount_minor, currency=payment.currency)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
