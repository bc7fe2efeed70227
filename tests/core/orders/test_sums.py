"""The sums of an order: each currency apart, and nothing in them that isn't known."""

import msgspec
from tests.core.orders.order_facts import (
    facts_of,
    installment,
    op,
    seen,
)

from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.figures import CurrencyBalance, DoubtKind
from payrelay.core.payments.operation import Kind
from payrelay.core.payments.payment import PaymentStatus

CHARGE, PART = op(Kind.CHARGE), op(Kind.REFUND, 2, amount_minor=3_000)
NOW_MS = 4_000


def test_currencies_are_added_apart() -> None:
    """Rupees and dollars have no sum."""
    dollars = op(Kind.CHARGE, 2, payment_id="320025000002", currency="USD", amount_minor=500)
    balance = balance_of(facts_of(CHARGE, PART, dollars), now_ms=0)
    assert balance.currencies == (
        CurrencyBalance(
            currency="LKR",
            paid_minor=10_000,
            held_minor=0,
            given_back_minor=3_000,
            charged_back_minor=0,
            left_minor=7_000,
        ),
        CurrencyBalance(
            currency="USD", paid_minor=500, held_minor=0, given_back_minor=0, charged_back_minor=0, left_minor=500
        ),
    )


def test_a_payment_without_an_amount_is_in_no_sum() -> None:
    """A sum that left it out silently would be a wrong one: the doubt says so."""
    balance = balance_of(facts_of(CHARGE, installment("320025000002", None)), now_ms=0)
    assert (balance.currencies[0].paid_minor, balance.is_certain, balance.payments[1].is_paid) == (10_000, False, True)


def test_a_payment_without_a_currency_is_in_no_sum() -> None:
    """The subscription that would say it was changed by somebody else."""
    nameless = msgspec.structs.replace(installment("320025000002"), currency=None)
    balance = balance_of(facts_of(CHARGE, nameless), now_ms=0)
    assert [each.paid_minor for each in balance.currencies] == [10_000]
    assert [each.kind for each in balance.doubts] == [DoubtKind.UNKNOWN_AMOUNT]


def test_what_is_held_in_another_currency_is_in_no_sum() -> None:
    """Two sources contradict each other; the sum of the rupees has no dollars."""
    held = seen(PaymentStatus.AUTHORIZED, currency="USD")
    (payment,) = balance_of(facts_of(CHARGE, held), now_ms=NOW_MS).payments

    assert (payment.currency, payment.held_minor, payment.left_minor) == ("LKR", 0, 10_000)
    assert DoubtKind.OTHER_CURRENCY in {each.kind for each in payment.doubts}
