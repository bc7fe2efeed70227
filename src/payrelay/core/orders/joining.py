"""Joins the facts of an order that are about one payment.

A payment is known by its number at the gateway, a hold by the hash of its token. Whatever names both joins them: a
capture names the hold that it takes and the payment that it makes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.checkouts.counted_payments import asks_for_money
from payrelay.core.orders.facts import (
    AcceptedHold,
    ChargebackFact,
    FailedRefund,
    ImportedFact,
    OrderFacts,
    PaidInstallment,
    ReceivedAgain,
    ReturnSeen,
    SeenFact,
    ToldChargeback,
)
from payrelay.core.payments.operation import WITHOUT_EFFECT, Kind, Operation

_OF_HOLDS: Final = frozenset({Kind.CAPTURE, Kind.VOID})
_REPORTED: Final = frozenset({CheckoutState.NOTIFIED, CheckoutState.COMPLETED})
_SHOWN: Final = _REPORTED | {CheckoutState.OPEN}
"""A page in another state took nothing, as far as is known."""

_OfPayment = ImportedFact | SeenFact | ReturnSeen | ReceivedAgain | FailedRefund | ChargebackFact | ToldChargeback
_Fact = Operation | Checkout | PaidInstallment | _OfPayment


class PaymentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one payment, each once and in one order; ``hold`` is of its page's authorization."""

    operations: tuple[Operation, ...] = ()
    checkouts: tuple[Checkout, ...] = ()
    installments: tuple[PaidInstallment, ...] = ()
    imported: tuple[ImportedFact, ...] = ()
    seen: tuple[SeenFact, ...] = ()
    returned: tuple[ReturnSeen, ...] = ()
    again: tuple[ReceivedAgain, ...] = ()
    failed: tuple[FailedRefund, ...] = ()
    chargebacks: tuple[ChargebackFact, ...] = ()
    told: tuple[ToldChargeback, ...] = ()
    hold: AcceptedHold | None = None


_MEMBERS: Final = {
    Operation: "operations",
    Checkout: "checkouts",
    PaidInstallment: "installments",
    ImportedFact: "imported",
    SeenFact: "seen",
    ReturnSeen: "returned",
    ReceivedAgain: "again",
    FailedRefund: "failed",
    ChargebackFact: "chargebacks",
    ToldChargeback: "told",
}


def facts_of_payments(facts: OrderFacts) -> list[PaymentFacts]:
    """Sorts the facts of an order by payments. What belongs to none yet, such as an open charge, is alone."""
    facts = msgspec.structs.replace(facts, hold=_hold_of(facts))
    joined = _Joined()
    named = [(each, _names_of(each, facts)) for each in _believed(facts)]
    for _, names in named:
        joined.join(names)
    groups: dict[str, dict[str, set[_Fact]]] = defaultdict(lambda: defaultdict(set))
    for each, names in named:
        groups[joined.first_of(names[0])][_MEMBERS[type(each)]].add(each)
    return [_group(groups[name], facts.hold) for name in sorted(groups)]


def payments_of(facts: OrderFacts) -> frozenset[str]:
    """Gives the numbers of the payments that the believed facts of an order name, or the one that was asked for."""
    order = facts.order_id
    if order is None:
        return frozenset([facts.payment_id]) if facts.payment_id is not None else frozenset()
    numbers = {each.payment_id for each in facts.operations if each.order_id == order and _took_effect(each)}
    numbers |= {each.payment_id for each in facts.operations if each.subscription_id in facts.subscriptions}
    numbers |= {each.payment_id for each in facts.checkouts if each.order_id == order}
    numbers |= {each.payment for each in facts.installments if each.subscription_id in facts.subscriptions}
    numbers |= {each.payment_id for each in facts.imported if each.order_id == order}
    numbers |= {each.payment_id for each in facts.seen if each.order_id == order}
    return frozenset(each for each in numbers if each is not None)


def _believed(facts: OrderFacts) -> Iterator[_Fact]:
    """Gives the facts that are about the order's money. A row that is wrong may have led to those of another order."""
    numbers = payments_of(facts)
    yield from (each for each in operations_of(facts) if _took_effect(each))
    yield from (
        each for each in checkouts_of(facts) if asks_for_money(each.kind, each.amount_minor) and each.state in _SHOWN
    )
    for installment in facts.installments:
        if installment.subscription_id in facts.subscriptions or installment.payment in numbers:
            yield installment
    of_payments: list[_OfPayment] = [*facts.imported, *facts.seen, *facts.returned, *facts.again, *facts.failed]
    of_payments += [*facts.chargebacks, *told_by_payment(facts.told, numbers)]
    yield from (each for each in of_payments if each.payment_id in numbers)


def facts_of_one(facts: OrderFacts) -> PaymentFacts:
    """Gives the facts of the one payment that was asked for; those of a payment of which nothing is known are empty."""
    found = (each for each in facts_of_payments(facts) if any(one.payment_id == facts.payment_id for one in each.seen))
    return next(found, PaymentFacts())


def told_by_payment(told: Iterable[ToldChargeback], numbers: Iterable[str]) -> Iterator[ToldChargeback]:
    """Gives each chargeback with its payment; one that names none may be of any of these payments."""
    for each in told:
        named = numbers if each.payment_id is None else [each.payment_id]
        yield from (msgspec.structs.replace(each, payment_id=number) for number in named)


def operations_of(facts: OrderFacts) -> list[Operation]:
    """Gives the operations on the order, its payments with their holds, and its plans, whatever became of them."""
    numbers, order = payments_of(facts), facts.order_id
    holds = {
        _authorization(each.result_ref)
        for each in facts.operations
        if each.result_ref is not None and each.payment_id is not None and each.payment_id in numbers
    }
    return [
        each
        for each in facts.operations
        if (order is not None and each.order_id == order)
        or (each.subscription_id is not None and each.subscription_id in facts.subscriptions)
        or (each.payment_id is not None and each.payment_id in numbers)
        or (each.kind in _OF_HOLDS and each.subject in holds)
    ]


def checkouts_of(facts: OrderFacts) -> list[Checkout]:
    """Gives the pages of the order, whatever became of them."""
    return [each for each in facts.checkouts if facts.order_id in {None, each.order_id}]


def _is_reported_hold(checkout: Checkout) -> bool:
    return checkout.kind is CheckoutKind.AUTHORIZATION and checkout.state in _REPORTED


def _hold_of(facts: OrderFacts) -> AcceptedHold | None:
    """Gives the authorization that was reported for a page of the order; None where nobody knows for which of several.

    Joined with the wrong one, it would hide what the other one holds.
    """
    return facts.hold if sum(map(_is_reported_hold, checkouts_of(facts))) == 1 else None


def _took_effect(operation: Operation) -> bool:
    return operation.state not in WITHOUT_EFFECT


def _names_of(fact: _Fact, facts: OrderFacts) -> list[str]:
    """Gives all that a fact's payment is known by, to this fact."""
    if isinstance(fact, PaidInstallment):
        return [_payment(fact.payment)]
    if not isinstance(fact, Operation | Checkout):
        return [_payment(str(fact.payment_id))]
    names = [] if fact.payment_id is None else [_payment(fact.payment_id)]
    if isinstance(fact, Checkout):
        if _is_reported_hold(fact) and facts.hold is not None:
            names.append(_authorization(facts.hold.token_hash))
    elif fact.kind in _OF_HOLDS:
        names.append(fact.subject)
    elif fact.result_ref is not None and fact.kind is Kind.AUTHORIZATION:
        names.append(_authorization(fact.result_ref))
    return names or [f"itself/{fact.id}"]


def _payment(number: str) -> str:
    return f"payment/{number}"


def _authorization(token_hash: str) -> str:
    return f"authorization/{token_hash}"


def _group(members: dict[str, set[_Fact]], hold: AcceptedHold | None) -> PaymentFacts:
    checkouts = members.get("checkouts", set())
    is_held = any(isinstance(each, Checkout) and each.kind is CheckoutKind.AUTHORIZATION for each in checkouts)
    found = {name: tuple(sorted(each, key=repr)) for name, each in members.items()}
    return PaymentFacts(**found, hold=hold if is_held else None)  # type: ignore[arg-type]  # by _MEMBERS


class _Joined:
    """Names that mean the same payment."""

    def __init__(self) -> None:
        self._others: dict[str, str] = {}

    def join(self, names: Iterable[str]) -> None:
        first, *others = names
        for each in others:
            self._merge(first, each)

    def first_of(self, name: str) -> str:
        """Gives the name by which all that are joined are known: the least of them."""
        while name in self._others:
            name = self._others[name]
        return name

    def _merge(self, one: str, other: str) -> None:
        least, most = sorted((self.first_of(one), self.first_of(other)))
        if least != most:
            self._others[most] = least
