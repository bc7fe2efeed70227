"""The balance of an order: paid, held, given back, charged back and left, from all that is known of its money.

Rules:

1. ``balance_of`` is the only place that decides what an order's money is. The order of the facts makes no difference,
   and neither does a fact that is given twice.
2. One payment that is known by several ways is one payment. Of its amounts the one holds that is nearest to the
   gateway's answer; another amount is a doubt.
3. What was paid is what was given back, charged back and left, together. A fact about one payment changes no other.
4. What isn't certain is a doubt, and no figure hides it.
"""

from collections.abc import Iterator
from typing import Final

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import Doubt, DoubtKind, Figure, OrderBalance, PaymentBalance, sums_of
from payrelay.core.orders.given_back import returned_of
from payrelay.core.orders.joining import PaymentFacts, facts_of_payments
from payrelay.core.orders.taken import (
    about,
    held_beside,
    held_of,
    is_number,
    of_installment,
    of_operation,
    of_page,
    record_of,
    taken_of,
)
from payrelay.core.payments.operation import OPEN_STATES, Kind
from payrelay.core.payments.payment import PaymentStatus

_FIGURES: Final = {Kind.REFUND: Figure.GIVEN_BACK, Kind.AUTHORIZATION: Figure.HELD, Kind.VOID: Figure.HELD}


def balance_of(facts: OrderFacts, *, now_ms: int) -> OrderBalance:
    """Gives the balance of an order, or of the one payment that the facts are of; ``now_ms`` says which holds lapsed.

    Where the facts aren't complete there are no figures, and a doubt says so.
    """
    order_id = facts.order_id or _order_of(facts)
    if not facts.is_complete:
        too_many = Doubt(kind=DoubtKind.TOO_MANY, id=facts.order_id or facts.payment_id or "")
        doubts = {too_many, *_of_all(facts)}
        return OrderBalance(order_id=order_id, doubts=tuple(sorted(doubts, key=repr)), is_complete=False)
    payments: list[PaymentBalance] = []
    doubts = {*_of_all(facts)}
    for each in facts_of_payments(facts):
        balance = _balance(each, order_id, now_ms)
        if balance is None:
            doubts |= {*_open_things(each, None), *_told(each)}
        else:
            payments.append(balance)
            doubts |= set(balance.doubts)
    payments.sort(key=lambda each: (each.payment_id is None, len(each.id), each.id))
    return OrderBalance(
        order_id=order_id,
        currencies=sums_of(payments),
        payments=tuple(payments),
        doubts=tuple(sorted(doubts, key=repr)),
    )


def _of_all(facts: OrderFacts) -> Iterator[Doubt]:
    """Gives what isn't certain of everything that was read."""
    for each in facts.wrong:
        yield Doubt(kind=DoubtKind.FORGED, id=each)
    if facts.may_lack_more:
        yield Doubt(kind=DoubtKind.LOST_COMMITS, id=facts.order_id or facts.payment_id or "")


def _balance(facts: PaymentFacts, order_id: str | None, now_ms: int) -> PaymentBalance | None:
    """Gives the balance of one payment; None where no money is known to have moved."""
    number = _number_of(facts)
    taken = taken_of(facts, number)
    held = held_beside(taken, held_of(facts, number, now_ms=now_ms), number)
    given_back, charged_back = returned_of(facts, taken, number)
    origins = (*taken.origins, *held.origins, *given_back.origins, *charged_back.origins)
    if not origins:
        return None
    is_only_held = not (taken.origins or given_back.origins)
    paid_minor = 0 if is_only_held else taken.minor
    doubts = {
        *(*taken.doubts, *held.doubts, *given_back.doubts, *charged_back.doubts),
        *(*_open_things(facts, number), *_other_doubts(facts, order_id, number)),
    }
    if not charged_back.origins:
        doubts |= set(_told(facts))
    if not (taken.origins or held.origins):
        doubts.add(Doubt(kind=DoubtKind.UNKNOWN_AMOUNT, id=number or "", payment_id=number))
    if taken.origins and number is None:
        doubts |= {about(DoubtKind.UNNUMBERED, each, None) for each in taken.origins}
    return PaymentBalance(
        id=number or min(each.id for each in origins),
        payment_id=number,
        currency=taken.currency if taken.origins else held.currency or next((each.currency for each in origins), None),
        paid_minor=paid_minor,
        held_minor=held.minor,
        held_until_ms=held.until_ms,
        given_back_minor=given_back.minor,
        charged_back_minor=charged_back.minor,
        left_minor=None if paid_minor is None else paid_minor - given_back.minor - charged_back.minor,
        origins=tuple(sorted(set(origins), key=repr)),
        doubts=tuple(sorted(doubts, key=repr)),
    )


def _number_of(facts: PaymentFacts) -> str | None:
    """Gives the number of a payment: that of what took the money, before that of what only names it."""
    taking = [each.payment_id for each in facts.operations if each.kind is Kind.CAPTURE]
    numbers: list[str | None] = [each.payment for each in facts.installments if is_number(each.payment)]
    numbers += [each.payment_id for each in facts.operations]
    numbers += [each.payment_id for each in facts.checkouts]
    numbers += [each.payment_id for each in facts.imported]
    numbers += [each.payment_id for each in facts.seen]
    numbers += [each.payment_id for each in facts.chargebacks]
    first = [min((each for each in some if each is not None), default=None) for some in (taking, numbers)]
    return first[0] or first[1]


def _order_of(facts: OrderFacts) -> str | None:
    """Gives the order of the one payment that facts are of: by the gateway's record, or by what made the payment."""
    made = [(each.kind is Kind.REFUND, each.id, each.order_id) for each in facts.operations]
    made += [(False, each.id, each.order_id) for each in facts.checkouts]
    made += [(False, each.place, each.order_id) for each in facts.imported]
    named = [*(each.order_id for each in facts.seen), *(order_id for _, _, order_id in sorted(made, key=repr))]
    return next((each for each in named if each is not None), None)


def _open_things(facts: PaymentFacts, number: str | None) -> Iterator[Doubt]:
    """Gives what may still move money, and what is paid without a payment's number."""
    for operation in facts.operations:
        origin = of_operation(_FIGURES.get(operation.kind, Figure.PAID), operation)
        if operation.state in OPEN_STATES:
            yield about(DoubtKind.OPEN_OPERATION, origin, number)
        elif operation.kind is Kind.RETRY and operation.payment_id is None:
            yield about(DoubtKind.UNNUMBERED_LEFT_OUT, origin, None)
    for checkout in facts.checkouts:
        if checkout.state is CheckoutState.OPEN:
            yield about(DoubtKind.OPEN_PAGE, of_page(checkout), number)
    for each in facts.installments:
        if not is_number(each.payment):
            yield about(DoubtKind.UNNUMBERED_LEFT_OUT, of_installment(each), None)


def _told(facts: PaymentFacts) -> Iterator[Doubt]:
    """Gives the chargebacks that the gateway notified, and that no record proves yet."""
    for each in facts.told:
        yield Doubt(
            kind=DoubtKind.CHARGEBACK_NOT_SHOWN,
            id=each.id,
            payment_id=each.payment_id,
            amount_minor=each.amount_minor,
            currency=each.currency,
        )


def _other_doubts(facts: PaymentFacts, order_id: str | None, number: str | None) -> Iterator[Doubt]:
    record = record_of(facts)
    if record is not None and record.status is PaymentStatus.OTHER:
        yield Doubt(kind=DoubtKind.UNKNOWN_STATUS, id=record.payment_id, payment_id=number)
    named = [(each.id, each.order_id) for each in facts.operations if each.kind is not Kind.REFUND]
    named += [(each.id, each.order_id) for each in facts.checkouts]
    named += [(each.place, each.order_id) for each in facts.imported]
    named += [(each.payment_id, each.order_id) for each in facts.seen]
    for id_, other in named:
        if other not in {None, order_id}:
            yield Doubt(kind=DoubtKind.OTHER_ORDER, id=id_, payment_id=number)
