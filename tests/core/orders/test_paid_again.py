"""Which payments of an order count, which are one, and what is told of a further one."""

from itertools import product

import msgspec
import pytest
from tests.core.orders.order_facts import ORDER, P, chargeback, facts_of, op, page, seen
from tests.samples import CHECKOUT, OPERATION

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.orders.figures import Figure, FigureSource, Origin, PaymentBalance
from payrelay.core.orders.paid_again import (
    OrderPayment,
    earlier_beside,
    events_of,
    made_by,
    paid_on,
    payments_in,
    standing,
    with_returns,
)
from payrelay.core.payments.operation import Kind, State
from payrelay.core.payments.payment import PaymentStatus

PAID = OrderPayment(
    merchant="0123456789abcdef",
    order_id="A-1",
    account="gateway",
    principal="shop",
    payment_id="320025000001",
    operation_id="op_1",
    amount_minor=100_000,
    currency="LKR",
    at_ms=1_000,
)
OTHER = msgspec.structs.replace(PAID, payment_id="320025000002", operation_id="op_2", at_ms=2_000)


def test_a_charge_and_a_capture_that_succeeded_took_money() -> None:
    """A hold took none, a refund gave some back, and a retry is a payment of its plan."""
    holds = {
        (kind, state): payment.hold
        for kind, state in product(Kind, State)
        if (payment := made_by(msgspec.structs.replace(OPERATION, kind=kind, state=state, payment_id="1")))
    }
    assert holds == {(Kind.CHARGE, State.SUCCEEDED): None, (Kind.CAPTURE, State.SUCCEEDED): OPERATION.subject}


def test_what_names_no_order_is_no_further_payment() -> None:
    """The capture of a hold that nobody here made."""
    operation = msgspec.structs.replace(OPERATION, kind=Kind.CAPTURE, state=State.SUCCEEDED, order_id=None)
    assert made_by(operation) is None


def test_a_completed_page_took_money() -> None:
    """An approval takes the amount that it asks for, and the fee of one that asks for none is no payment of the order.

    A hold is none before its capture, and a plan may begin before its payment.
    """
    paid = set()
    for kind, state, number, amount_minor in product(CheckoutKind, CheckoutState, (None, "1"), (None, 100_000)):
        members = {"payment_id": number, "amount_minor": amount_minor, "first_minor": amount_minor}
        payment = paid_on(msgspec.structs.replace(CHECKOUT, kind=kind, state=state, **members))
        if payment is not None:
            paid.add((kind, state, number, payment.amount_minor))
    assert paid == {
        *((CheckoutKind.PAYMENT, CheckoutState.COMPLETED, *each) for each in product((None, "1"), (None, 100_000))),
        *((CheckoutKind.PREAPPROVAL, CheckoutState.COMPLETED, number, 100_000) for number in (None, "1")),
        *((CheckoutKind.RECURRING, CheckoutState.COMPLETED, "1", amount_minor) for amount_minor in (None, 100_000)),
    }


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ({}, {}, True),
        ({}, {"operation_id": "op_2"}, True),
        ({}, {"payment_id": "2"}, False),
        ({"payment_id": None}, {}, True),
        ({"payment_id": None}, {"operation_id": None, "checkout_id": "chk_1"}, False),
        ({"operation_id": None, "checkout_id": "chk_1", "payment_id": None}, {}, False),
        (
            {"operation_id": None, "checkout_id": "chk_1", "payment_id": None},
            {"operation_id": None, "checkout_id": "chk_1"},
            True,
        ),
        ({"plan": "7"}, {"plan": "7", "payment_id": "2"}, True),
        ({"plan": "7"}, {"plan": "8", "payment_id": "2"}, False),
        ({"hold": "authorization/1"}, {"hold": "authorization/1", "payment_id": "2"}, True),
        ({"hold": "authorization/1"}, {"payment_id": "2"}, False),
    ],
    ids=str,
)
def test_two_ways_of_one_payment(one: dict[str, str | None], other: dict[str, str | None], *, is_same: bool) -> None:
    """By the number first; where one isn't known, by what made it. Either side may be the first."""
    first, second = msgspec.structs.replace(PAID, **one), msgspec.structs.replace(PAID, **other)
    assert first.is_same(second) is second.is_same(first) is is_same
    assert len(standing([first, second])) == (1 if is_same else 2)


@pytest.mark.parametrize(
    ("ids", "identity", "subject"),
    [
        ({}, "320025000001", "payment:320025000001"),
        ({"payment_id": None}, "op_1", "operation:op_1"),
        ({"payment_id": None, "operation_id": None, "checkout_id": "chk_1"}, "chk_1", "checkout:chk_1"),
        ({"payment_id": None, "operation_id": None, "plan": "7"}, "7", "subscription:7"),
    ],
)
def test_a_payment_is_named_by_what_is_known_of_it(ids: dict[str, str | None], identity: str, subject: str) -> None:
    """An installment may have been reported without the number of its payment."""
    payment = msgspec.structs.replace(PAID, **ids)
    assert (payment.identity, payment.subject) == (identity, subject)


def test_the_oldest_payment_that_counts_is_the_earlier_one() -> None:
    """What was given back, and the payment itself, are none."""
    returned = msgspec.structs.replace(PAID, payment_id="3", operation_id="op_3", at_ms=1, is_given_back=True)
    assert earlier_beside(OTHER, [OTHER, PAID, returned]) == PAID
    assert earlier_beside(OTHER, [OTHER, returned]) is None
    assert standing([OTHER, PAID, returned, PAID]) == [PAID, OTHER]


@pytest.mark.parametrize(
    ("history", "counted"),
    [
        ((op(Kind.CHARGE),), [(P, False)]),
        ((op(Kind.CHARGE), op(Kind.REFUND, 2, amount_minor=None)), [(P, True)]),
        ((op(Kind.CHARGE), op(Kind.REFUND, 2, amount_minor=3_000)), [(P, False)]),
        ((op(Kind.CHARGE), chargeback(), seen(PaymentStatus.CHARGED_BACK, 3_000)), [(P, True)]),
        ((op(Kind.CHARGE, state=State.DECLINED), op(Kind.AUTHORIZATION)), []),
        ((op(Kind.CHARGE, order_id="another order"),), []),
        (
            (op(Kind.CHARGE), page(CheckoutKind.PREAPPROVAL, CheckoutState.COMPLETED, payment_id="2", updated_at_ms=1)),
            [("2", False), (P, False)],
        ),
    ],
    ids=lambda each: str(each) if isinstance(each, list) else "",
)
def test_the_payments_of_an_order_with_what_was_given_back(
    history: tuple[object, ...], counted: list[tuple[str, bool]]
) -> None:
    """Each that took money, the oldest first, is marked where the balance has nothing left of it."""
    found = payments_in(facts_of(*history), (), now_ms=4_000)
    assert [(each.payment_id, each.is_given_back) for each in found] == counted


def test_payments_of_other_owners_are_among_those_of_the_order() -> None:
    """An import and a plan have rows of their own; what they name of another order isn't taken."""
    before = msgspec.structs.replace(PAID, order_id=ORDER, at_ms=1)
    later = msgspec.structs.replace(OTHER, order_id=ORDER, at_ms=9_000)
    elsewhere = msgspec.structs.replace(OTHER, order_id="another order")
    found = payments_in(facts_of(op(Kind.CHARGE, payment_id="7")), (later, elsewhere, before), now_ms=4_000)
    assert [each.payment_id for each in found] == [before.payment_id, "7", later.payment_id]


def balance(left_minor: int | None, *, payment_id: str | None, origin: str = "op_9") -> PaymentBalance:
    """The balance of a payment of which so much is left."""
    says = Origin(figure=Figure.PAID, source=FigureSource.OPERATION, id=origin, amount_minor=100_000, currency="LKR")
    return PaymentBalance(
        id=payment_id or origin,
        payment_id=payment_id,
        currency="LKR",
        paid_minor=100_000,
        held_minor=0,
        held_until_ms=None,
        given_back_minor=0 if left_minor is None else 100_000 - left_minor,
        charged_back_minor=0,
        left_minor=left_minor,
        origins=(says,),
        doubts=(),
    )


@pytest.mark.parametrize(
    ("balances", "is_given_back"),
    [
        ([], False),
        ([balance(0, payment_id="320025000001")], True),
        ([balance(1, payment_id="320025000001")], False),
        ([balance(0, payment_id=None, origin="op_1")], True),
        ([balance(0, payment_id="320025000002")], False),
    ],
)
def test_the_balance_says_what_was_given_back(balances: list[PaymentBalance], *, is_given_back: bool) -> None:
    """A payment of which something is left counts, and so does one of which there is no balance."""
    assert with_returns(PAID, balances).is_given_back is is_given_back


def test_each_owner_is_told_in_its_own_words() -> None:
    """Neither reads the other's ids or amounts. Where both are one principal's, one event has all."""
    [told] = events_of(OTHER, PAID, at_ms=3_000)
    assert (told.type, told.principal, told.subject) == ("order.paid_again", "shop", "payment:320025000002")
    assert told.data == {
        "order_id": "A-1",
        "payment_id": "320025000002",
        "operation_id": "op_2",
        "checkout_id": None,
        "subscription_id": None,
        "amount": "1000.00",
        "currency": "LKR",
        "earlier_payment_id": "320025000001",
        "earlier_operation_id": "op_1",
        "earlier_checkout_id": None,
        "earlier_subscription_id": None,
        "earlier_amount": "1000.00",
        "earlier_currency": "LKR",
    }
    foreign = msgspec.structs.replace(PAID, principal="kiosk", account="kiosks")
    events = events_of(OTHER, foreign, at_ms=3_000)
    assert [(each.principal, each.account, each.subject) for each in events] == [
        ("shop", "gateway", "payment:320025000002"),
        ("kiosk", "kiosks", "payment:320025000001"),
    ]
    assert len({each.id for each in events}) == 2
    for each, hidden in zip(events, (foreign, OTHER), strict=True):
        assert not {hidden.payment_id, hidden.operation_id} & set(each.data.values())


@pytest.mark.parametrize(
    ("further", "earlier", "told"), [(None, "shop", ["shop"]), (None, None, []), ("shop", None, ["shop"])]
)
def test_what_nobody_owns_is_told_to_the_owner_of_the_other(
    further: str | None, earlier: str | None, told: list[str]
) -> None:
    """The gateway's record shows a payment that nobody here asked for."""
    events = events_of(
        msgspec.structs.replace(OTHER, principal=further), msgspec.structs.replace(PAID, principal=earlier), at_ms=3
    )
    assert [each.principal for each in events] == told
    assert all(each.data["payment_id"] == OTHER.payment_id for each in events)


def test_a_page_shows_what_was_paid_first() -> None:
    """The first payment of a plan may be more than its later ones."""
    checkout: Checkout = msgspec.structs.replace(
        CHECKOUT,
        kind=CheckoutKind.RECURRING,
        state=CheckoutState.COMPLETED,
        payment_id="1",
        subscription_id="7",
        first_minor=150_000,
    )
    payment = paid_on(checkout)
    assert payment is not None
    assert (payment.amount_minor, payment.plan, payment.checkout_id) == (150_000, "7", CHECKOUT.id)
