"""What a refund gives back of its payment, or what is in its way.

Rules:

1. Only what is known is in the way of a refund: that more is asked for than can be left. Where nothing says how much is
   left, the gateway decides.
2. A refund without an amount is of all that is left. Once a part went back, the call names that rest: no gateway
   documents what it gives back otherwise.
3. While nobody knows whether a bank took a payment back, or whether what went back of it has come back, nothing more is
   given back of it.
4. What a payment's record shows as charged back counts as charged back whole, unless a notification names a part. What
   the record shows as refunded, and wasn't refunded here, may be a part or the whole: every refund is too much then.
5. Where more is stored of a payment than is added up, nothing says what is left, and every refund is too much.
"""

from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256
from typing import Final

import msgspec

from payrelay.core.money import money_text
from payrelay.core.orders.figures import Doubt, DoubtKind, Figure, FigureSource, OrderBalance, PaymentBalance
from payrelay.core.orders.sentences import returns_of

NAMED_MAX: Final = 5
"""Refunds that a sentence names; hardly a payment has more."""
_TOLD: Final = (
    *(DoubtKind.CHARGEBACK_NOT_SHOWN, DoubtKind.RECEIVED_AGAIN, DoubtKind.REFUND_MAY_BE_WHOLE),
    *(DoubtKind.REFUND_NOT_MADE_HERE, DoubtKind.REFUND_NOT_SHOWN, DoubtKind.CHARGEBACK_NOT_NOTIFIED),
    *(DoubtKind.PART_NOT_SIGNED, DoubtKind.DIFFERENT_AMOUNTS, DoubtKind.UNKNOWN_STATUS, DoubtKind.MORE_THAN_PAID),
)
"""What isn't certain of the figures that a refusal names."""
_UNTIL_SEEN: Final = (DoubtKind.CHARGEBACK_NOT_SHOWN, DoubtKind.RECEIVED_AGAIN)
"""What a later look at the gateway's record decides."""


class Obstacle(StrEnum):
    """What is in the way of a refund, as the beginning of a sentence."""

    CHARGED_BACK = "this payment was charged back"
    GIVEN_BACK = "this payment is already refunded"
    MORE_THAN_LEFT = "this refund is of more than is left of the payment"
    NOT_ADDED_UP = "nothing says what is left of this payment"
    NOT_SEEN_YET = "what is left of this payment is not known yet"
    """A later look at the gateway's record decides it."""


class RefundPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a refund gives back, in hundredths: None for the whole payment. ``obstacle`` is what is in its way."""

    amount_minor: int | None
    obstacle: Obstacle | None = None


def payment_in(balance: OrderBalance, payment_id: str) -> PaymentBalance | None:
    """Gives what a refund of a payment is planned by; None where nothing is known of the payment.

    Where the balance isn't complete, and where only a chargeback was told of the payment, it is one without figures.
    """
    told = tuple(each for each in balance.doubts if each.kind is DoubtKind.CHARGEBACK_NOT_SHOWN)
    if balance.is_complete and (balance.payment(payment_id) is not None or not told):
        return balance.payment(payment_id)
    too_many = Doubt(kind=DoubtKind.TOO_MANY, id=payment_id, payment_id=payment_id)
    return PaymentBalance(
        id=payment_id,
        payment_id=payment_id,
        currency=None,
        paid_minor=None,
        held_minor=0,
        held_until_ms=None,
        given_back_minor=0,
        charged_back_minor=0,
        left_minor=None,
        origins=(),
        doubts=told if balance.is_complete else (too_many,),
    )


def plan_refund(payment: PaymentBalance | None, amount_minor: int | None) -> RefundPlan:
    """Plans a refund of an amount, or without one; ``payment`` is as ``payment_in`` gives it."""
    if payment is not None and _has(payment, DoubtKind.TOO_MANY):
        return RefundPlan(amount_minor=amount_minor, obstacle=Obstacle.NOT_ADDED_UP)
    if payment is not None and any(_has(payment, each) for each in _UNTIL_SEEN):
        return RefundPlan(amount_minor=amount_minor, obstacle=Obstacle.NOT_SEEN_YET)
    if payment is None or not _has_moved(payment):
        return RefundPlan(amount_minor=amount_minor)
    if amount_minor is None:
        return _plan_of_rest(payment)
    most_minor = _most_left(payment)
    is_too_much = most_minor is not None and amount_minor > most_minor
    return RefundPlan(amount_minor=amount_minor, obstacle=_obstacle(payment) if is_too_much else None)


def figures_sentence(payment: PaymentBalance | None, named: Iterable[str] = ()) -> str:
    """Tells the figures of a payment; refunds made here are named by their ids where ``named`` has them."""
    if payment is None:
        return "nothing is known here of this payment"
    if _has(payment, DoubtKind.TOO_MANY):
        return "more is stored of this payment than the service adds up at once"
    currency, is_known = payment.currency, payment.paid_minor is not None
    parts = [f"{money_text(payment.paid_minor, currency)} was paid" if is_known else "nothing says how much was paid"]
    if payment.of(Figure.GIVEN_BACK):
        amount = money_text(payment.given_back_minor, currency) if is_known else "it"
        parts.append(f"{amount} was given back{_by(payment, frozenset(named))}")
    if payment.of(Figure.CHARGED_BACK):
        amount = money_text(payment.charged_back_minor, currency) if is_known else "it"
        is_beside = is_known and not payment.charged_back_minor
        parts.append("the payment was charged back as well" if is_beside else f"{amount} was charged back")
    if is_known:
        left = money_text(payment.left_minor, currency) if payment.left_minor else "nothing"
        parts.append(f"{left} is left")
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def refusal_sentence(payment: PaymentBalance, obstacle: Obstacle, named: Iterable[str] = ()) -> str:
    """Tells why a refund is refused, by which figures, and what isn't certain of them; ``named`` as above."""
    doubts = {each.kind: each for each in payment.doubts}
    told = [_in_words(doubts[each]) for each in _TOLD if each in doubts]
    return "; ".join((f"{obstacle}: {figures_sentence(payment, named)}", *told))


def _in_words(doubt: Doubt) -> str:
    """Tells a doubt, with the amount of a chargeback: no figure has that yet."""
    amount = money_text(doubt.amount_minor, doubt.currency) if doubt.kind is DoubtKind.CHARGEBACK_NOT_SHOWN else ""
    return f"{doubt.kind.sentence}{amount and f' ({amount})'}"


def standing_of(payment: PaymentBalance | None) -> str:
    """Gives a short text that is another one after each refund, chargeback or further figure of a payment."""
    if payment is None:
        return "unknown"
    figures = (payment.currency, payment.paid_minor, payment.given_back_minor, payment.charged_back_minor)
    refunds = [each.id for each in payment.of(Figure.GIVEN_BACK) if each.source is FigureSource.OPERATION]
    is_charged_back = bool(payment.of(Figure.CHARGED_BACK))
    under_way = [each.id for each in payment.doubts if each.kind in {DoubtKind.OPEN_OPERATION, *_UNTIL_SEEN}]
    text = repr((figures, sorted(refunds), is_charged_back, sorted(under_way)))
    return sha256(text.encode()).hexdigest()[:16]


def _has_moved(payment: PaymentBalance) -> bool:
    """False for an authorization that nobody captured: a refund of it, by its number, is left to the gateway."""
    return any(payment.of(each) for each in (Figure.PAID, Figure.GIVEN_BACK, Figure.CHARGED_BACK))


def _plan_of_rest(payment: PaymentBalance) -> RefundPlan:
    """Plans a refund without an amount: of all that is left, by the figures."""
    has_gone = bool(payment.of(Figure.GIVEN_BACK) or payment.of(Figure.CHARGED_BACK))
    may_be_left = payment.left_minor != 0 and not _is_all_gone(payment)
    if has_gone and not may_be_left:
        return RefundPlan(amount_minor=None, obstacle=_obstacle(payment))
    return RefundPlan(amount_minor=payment.left_minor if has_gone else None)


def _most_left(payment: PaymentBalance) -> int | None:
    """Gives the most that can be left of a payment, whatever isn't certain of it; None where nothing says that."""
    if _is_all_gone(payment):
        return 0
    if payment.left_minor is None or payment.paid_minor is None:
        return None
    # A refund is in the currency of its payment, whichever of the sources has that one right.
    amounts = [each.amount_minor for each in payment.doubts if each.kind is DoubtKind.DIFFERENT_AMOUNTS]
    if None in amounts:
        return None
    paid_minor = max([payment.paid_minor, *(each or 0 for each in amounts)])
    return payment.left_minor + paid_minor - payment.paid_minor


def _is_all_gone(payment: PaymentBalance) -> bool:
    """True where the payment went back as a whole, however much it was, or may have gone back so elsewhere."""
    is_part = bool(payment.left_minor) or _has(payment, DoubtKind.PART_NOT_SIGNED)
    if payment.of(Figure.CHARGED_BACK) and not is_part:
        return True
    return any(
        each.source is not FigureSource.OPERATION or each.amount_minor is None for each in payment.of(Figure.GIVEN_BACK)
    )


def _has(payment: PaymentBalance, kind: DoubtKind) -> bool:
    return any(each.kind is kind for each in payment.doubts)


def _obstacle(payment: PaymentBalance) -> Obstacle:
    if payment.left_minor != 0 and not _is_all_gone(payment):
        return Obstacle.MORE_THAN_LEFT
    is_charged_back = payment.of(Figure.CHARGED_BACK) and (payment.charged_back_minor or not payment.given_back_minor)
    return Obstacle.CHARGED_BACK if is_charged_back else Obstacle.GIVEN_BACK


def _by(payment: PaymentBalance, named: frozenset[str]) -> str:
    """Names the refunds that were made here, as far as they may be named."""
    made = [each for each in returns_of(payment) if each.figure is Figure.GIVEN_BACK]
    own = [each for each in made if each.origin.id in named][:NAMED_MAX]
    if not own:
        return ""
    words = [f"{each.origin.id} ({money_text(each.amount_minor, each.currency) or 'the whole'})" for each in own]
    return " by " + ", ".join([*words, *(["others"] if len(own) < len(made) else [])])
