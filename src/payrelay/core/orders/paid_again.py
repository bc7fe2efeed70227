"""Whether a payment is a further one of its order, and what its owners are told then.

Rules:

1. What counts took money, and was neither given back whole nor charged back. A hold takes none: its capture does.
2. One payment may be known in several ways: by its number, or by what made it. It counts once.
3. All payments of one plan count as one, and so do all captures of one hold. An approval with an amount is a payment;
   the fee of one that charges nothing doesn't count.
4. An imported payment was there before. It is never the further one, and another payment may be further beside it.
5. Each further payment is told once, with the oldest other one that counts: to the owners of both, each without the ids
   of what is another's. What nobody made is its order's owner's.
"""

from collections.abc import Iterable

import msgspec

from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.checkouts.counted_payments import asks_for_money
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.events.event import PAID_AGAIN, OutgoingEvent, Plain, event_id
from payrelay.core.money import decimal_text
from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import Figure, PaymentBalance
from payrelay.core.orders.taken import is_paid
from payrelay.core.payments.imported import ImportedPayment
from payrelay.core.payments.operation import Kind, Operation, State


class OrderPayment(msgspec.Struct, frozen=True, kw_only=True):
    """A payment of an order that took money, as something here tells of it.

    Attributes:
        merchant, order_id: the order.
        account: the account under which it was asked for, or imported.
        principal: the principal that owns it; None where none is known.
        payment_id, operation_id, checkout_id: what it is known by; each None where it has none.
        plan: the subscription whose payment it is; None for another payment.
        hold: the subject of the authorization that it captured; None for another payment.
        amount_minor, currency: as requested, in hundredths; None where that isn't known.
        at_ms: when it was learnt, in milliseconds since 1970, UTC.
        is_given_back: whether it was given back whole, or charged back.
    """

    merchant: str
    order_id: str
    account: str
    principal: str | None
    payment_id: str | None
    operation_id: str | None = None
    checkout_id: str | None = None
    plan: str | None = None
    hold: str | None = None
    amount_minor: int | None
    currency: str | None
    at_ms: int
    is_given_back: bool = False

    @property
    def identity(self) -> str:
        """Names it within its order: its number, or else what made it."""
        return self.payment_id or self.operation_id or self.checkout_id or self.plan or ""

    @property
    def subject(self) -> str:
        """What an event about it is about."""
        if self.payment_id is not None:
            return f"payment:{self.payment_id}"
        if self.operation_id is not None:
            return f"operation:{self.operation_id}"
        return f"subscription:{self.plan}" if self.checkout_id is None else f"checkout:{self.checkout_id}"

    def is_same(self, other: "OrderPayment") -> bool:
        """Tells whether both are one payment, or payments of one plan or of one hold."""
        if (self.plan is not None and self.plan == other.plan) or (self.hold is not None and self.hold == other.hold):
            return True
        if self.payment_id is not None and other.payment_id is not None:
            return self.payment_id == other.payment_id  # a customer may pay twice on one page
        if self.operation_id is not None or other.operation_id is not None:
            return self.operation_id == other.operation_id
        return self.checkout_id == other.checkout_id


def made_by(operation: Operation) -> OrderPayment | None:
    """Gives the payment that an operation made; None where it took no money of an order, or none yet.

    The retry of an installment is a payment of its plan, and of no order.
    """
    if operation.state is not State.SUCCEEDED or operation.kind not in {Kind.CHARGE, Kind.CAPTURE}:
        return None
    if operation.order_id is None:
        return None
    return OrderPayment(
        merchant=operation.merchant,
        order_id=operation.order_id,
        account=operation.account,
        principal=operation.principal,
        payment_id=operation.payment_id,
        operation_id=operation.id,
        hold=operation.subject if operation.kind is Kind.CAPTURE else None,
        amount_minor=operation.amount_minor,
        currency=operation.currency,
        at_ms=operation.updated_at_ms,
    )


def paid_on(checkout: Checkout) -> OrderPayment | None:
    """Gives the payment that a customer made on a page; None where none is known to have taken money.

    An authorization takes none before its capture, which is an operation. An approval takes its amount, if it has one.
    """
    is_asked = asks_for_money(checkout.kind, checkout.amount_minor)
    if not (is_asked and is_paid(checkout)) or checkout.kind is CheckoutKind.AUTHORIZATION:
        return None
    return OrderPayment(
        merchant=checkout.merchant,
        order_id=checkout.order_id,
        account=checkout.account,
        principal=checkout.principal,
        payment_id=checkout.payment_id,
        checkout_id=checkout.id,
        plan=checkout.subscription_id,
        amount_minor=checkout.first_minor,
        currency=checkout.currency,
        at_ms=checkout.updated_at_ms,
    )


def earlier_beside(further: OrderPayment, known: Iterable[OrderPayment]) -> OrderPayment | None:
    """Gives the oldest of an order's known payments beside which another one is a further payment; None for none."""
    others = [each for each in known if not each.is_given_back and not each.is_same(further)]
    return min(others, key=lambda each: (each.at_ms, each.identity), default=None)


def standing(known: Iterable[OrderPayment]) -> list[OrderPayment]:
    """Gives the payments of an order that count, each once, the oldest first: of two, one is a further payment."""
    found: list[OrderPayment] = []
    for payment in sorted(known, key=lambda each: (each.at_ms, each.identity)):
        if not payment.is_given_back and not any(payment.is_same(other) for other in found):
            found.append(payment)
    return found


def payments_in(facts: OrderFacts, more: Iterable[OrderPayment], *, now_ms: int) -> list[OrderPayment]:
    """Gives the payments of an order that took money, the oldest first, and each as often as it is known.

    ``more`` are those that the facts don't name an owner of: imported ones, and installments.
    """
    made = [*map(made_by, facts.operations), *map(paid_on, facts.checkouts), *more]
    balances = balance_of(facts, now_ms=now_ms).payments
    found = [with_returns(each, balances) for each in made if each is not None and each.order_id == facts.order_id]
    return sorted(found, key=lambda each: (each.at_ms, each.identity))


def with_returns(payment: OrderPayment, balances: Iterable[PaymentBalance]) -> OrderPayment:
    """Gives a payment with what its balance says of it: whether it was given back whole, or charged back."""
    ids = {payment.operation_id, payment.checkout_id} - {None}
    own = [
        each
        for each in balances
        if (payment.payment_id is not None and each.payment_id == payment.payment_id)
        or any(origin.id in ids for origin in each.of(Figure.PAID))
    ]
    is_given_back = bool(own) and not any(each.is_paid for each in own)
    return msgspec.structs.replace(payment, is_given_back=is_given_back)


def events_of(further: OrderPayment, earlier: OrderPayment, *, at_ms: int) -> list[OutgoingEvent]:
    """Gives the event that an order was paid again, for each principal that owns one of the two payments."""
    owners = [further.principal or earlier.principal, earlier.principal]
    told = []
    for principal in dict.fromkeys(owner for owner in owners if owner is not None):
        own = further if further.principal in {None, principal} else earlier
        told.append(
            OutgoingEvent(
                id=event_id(at_ms, f"{further.merchant}/{further.order_id}/{further.identity}/{principal}"),
                type=PAID_AGAIN,
                account=own.account,
                merchant=further.merchant,
                principal=principal,
                subject=own.subject,
                at_ms=at_ms,
                data={
                    "order_id": further.order_id,
                    **_told(further, principal),
                    **{f"earlier_{name}": value for name, value in _told(earlier, principal).items()},
                },
            )
        )
    return told


def _told(payment: OrderPayment, principal: str) -> dict[str, Plain]:
    """Gives what a principal is told of a payment: of another's that there is one, and nothing more."""
    is_foreign = payment.principal not in {None, principal}
    amount_minor = None if is_foreign else payment.amount_minor
    return {
        "payment_id": None if is_foreign else payment.payment_id,
        "operation_id": None if is_foreign else payment.operation_id,
        "checkout_id": None if is_foreign else payment.checkout_id,
        "subscription_id": None if is_foreign else payment.plan,
        "amount": None if amount_minor is None else decimal_text(amount_minor),
        "currency": None if is_foreign else payment.currency,
    }


def of_import(payment: ImportedPayment) -> OrderPayment:
    """Gives an imported payment as one of its order."""
    return OrderPayment(
        merchant=payment.merchant,
        order_id=payment.order_id,
        account=payment.account,
        principal=payment.principal,
        payment_id=payment.payment_id,
        plan=payment.subscription_id,
        amount_minor=payment.amount_minor,
        currency=payment.currency,
        at_ms=payment.latest_ms,
    )
