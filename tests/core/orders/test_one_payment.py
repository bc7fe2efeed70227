"""One payment alone, as a refund reads it, says what its order says of it."""

import pytest
from tests.core.orders.order_facts import (
    HASH,
    ORDER,
    P,
    chargeback,
    facts_of,
    imported,
    installment,
    op,
    page,
    seen,
)

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.orders.balance import balance_of
from payrelay.core.payments.operation import Kind, State

CHARGE, PART = op(Kind.CHARGE), op(Kind.REFUND, 2, amount_minor=3_000)
HELD = op(Kind.AUTHORIZATION, result_ref=HASH)
PAID_PAGE = page(CheckoutKind.PAYMENT, CheckoutState.COMPLETED)
NOW_MS = 4_000


@pytest.mark.parametrize(
    ("history", "order_id"),
    [
        ((CHARGE, PART), ORDER),
        ((PAID_PAGE,), ORDER),
        ((imported(),), ORDER),
        ((seen(),), ORDER),
        ((op(Kind.REFUND, order_id="C-1"), CHARGE), ORDER),
        ((op(Kind.REFUND, order_id="C-1"),), "C-1"),
        ((installment(),), None),
        ((), None),
    ],
)
def test_one_payment_alone_says_its_order(history: tuple[object, ...], order_id: str | None) -> None:
    """A refund names a payment; what made that payment says the order, before the refund does."""
    balance = balance_of(facts_of(*history, order_id=None, payment_id=P), now_ms=0)
    assert (balance.order_id, [each.payment_id for each in balance.payments]) == (order_id, [P] if history else [])


def test_one_payment_alone_is_as_in_its_order() -> None:
    """A refund is judged by the payment alone, and support reads the order: both have to say the same."""
    history = (CHARGE, PART, seen(), chargeback())
    alone = balance_of(facts_of(*history, order_id=None, payment_id=P), now_ms=0)
    assert alone.payment(P) == balance_of(facts_of(*history), now_ms=0).payment(P) is not None


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.UNKNOWN])
def test_a_payment_alone_has_the_capture_of_its_hold(state: State) -> None:
    """A person called the capture done, and nobody knows its payment's number: the money was taken all the same."""
    history = (HELD, op(Kind.CAPTURE, 2, state=state, payment_id=None))
    (alone,) = balance_of(facts_of(*history, order_id=None, payment_id=P), now_ms=NOW_MS).payments
    (of_order,) = balance_of(facts_of(*history), now_ms=NOW_MS).payments

    assert alone == of_order
    assert (alone.paid_minor, alone.is_certain) == ((10_000, True) if state is State.SUCCEEDED else (0, False))
