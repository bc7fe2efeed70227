"""What support reads out of an order's money: one sentence for each history, what went back, and what isn't certain."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.orders.balance_rows import ROWS
from tests.core.orders.order_facts import (
    HASH,
    P,
    again,
    chargeback,
    facts_of,
    failed,
    imported,
    installment,
    op,
    page,
    returned,
    seen,
)

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import Doubt, DoubtKind, Figure, OrderBalance
from payrelay.core.orders.given_back import shares_of
from payrelay.core.orders.received_again import SECOND_LOOK_MS
from payrelay.core.orders.sentences import doubt_text, headline, left_of, returns_of, status_text
from payrelay.core.payments.operation import Kind, State
from payrelay.core.payments.payment import PaymentStatus

CHARGE, PART = op(Kind.CHARGE), op(Kind.REFUND, 2, amount_minor=4_000)
RECEIVED, REFUNDED, TAKEN_BACK = PaymentStatus.RECEIVED, PaymentStatus.REFUNDED, PaymentStatus.CHARGED_BACK
KNOWN = "As far as is known, "


def balance(*history: object) -> OrderBalance:
    """Gives the balance after a history, at 5,000 ms."""
    return balance_of(facts_of(*history), now_ms=5_000)


def said(shown: OrderBalance) -> str:
    """Gives the sentence, with times as plain numbers."""
    return headline(shown, str)


class Told(NamedTuple):
    """A history, and the sentence that answers first."""

    name: str
    history: tuple[object, ...]
    says: str


TOLD = (
    Told("nothing", (), "Nothing was paid, and nothing is held."),
    Told("declined", (op(Kind.CHARGE, state=State.DECLINED),), "Nothing was paid, and nothing is held."),
    Told("paid", (CHARGE,), "LKR 100.00 was paid, and LKR 100.00 is left."),
    Told(
        "paid twice",
        (CHARGE, op(Kind.CHARGE, 3, payment_id="320025000002")),
        "LKR 200.00 was paid in 2 payments, and LKR 200.00 is left.",
    ),
    Told(
        "two currencies are not added",
        (CHARGE, op(Kind.CHARGE, 3, payment_id="320025000002", currency="USD", amount_minor=500)),
        "LKR 100.00 was paid, and LKR 100.00 is left. USD 5.00 was paid, and USD 5.00 is left.",
    ),
    Told(
        "two refunds of parts",
        (CHARGE, PART, op(Kind.REFUND, 3, amount_minor=1_000)),
        f"{KNOWN}LKR 100.00 was paid, LKR 50.00 was given back, and LKR 50.00 is left.",
    ),
    Told(
        "given back",
        (CHARGE, op(Kind.REFUND, amount_minor=None)),
        "LKR 100.00 was paid, LKR 100.00 was given back, and nothing is left.",
    ),
    Told(
        "charged back",
        (CHARGE, chargeback(), seen(TAKEN_BACK)),
        "LKR 100.00 was paid, LKR 100.00 was charged back by the bank, and nothing is left.",
    ),
    Told(
        "a chargeback that was won",
        (CHARGE, chargeback(), again(4_000), seen(at_ms=4_000 + SECOND_LOOK_MS)),
        "LKR 100.00 was paid, and LKR 100.00 is left.",
    ),
    Told(
        "an open refund is never read as done, and never left out",
        (CHARGE, op(Kind.REFUND, state=State.UNKNOWN, amount_minor=2_000)),
        f"{KNOWN}LKR 100.00 was paid, and LKR 100.00 is left.",
    ),
    Told("an open charge", (op(Kind.CHARGE, state=State.PENDING),), f"{KNOWN}nothing was paid, and nothing is held."),
    Told(
        "a hold",
        (op(Kind.AUTHORIZATION, result_ref=HASH),),
        f"LKR 100.00 is held and not charged, until {1_000 + 7 * 86_400_000} at the latest.",
    ),
    Told(
        "an amount that nothing says",
        (installment(amount_minor=None),),
        f"{KNOWN}something was paid, and nothing says how much.",
    ),
    Told(
        "imported, and charged back",
        (imported(TAKEN_BACK),),
        "LKR 100.00 was paid, LKR 100.00 was charged back by the bank, and nothing is left.",
    ),
)


@pytest.mark.parametrize("told", TOLD, ids=lambda each: each.name)
def test_one_sentence_answers_first(told: Told) -> None:
    """Support reads it to the customer: a wrong word in it costs a second refund."""
    assert said(balance(*told.history)) == told.says


def test_no_history_is_told_with_more_than_is_known() -> None:
    """Each figure of the balance is in the sentence, and what isn't certain is said to be so."""
    for row in ROWS:
        shown = balance_of(facts_of(*row.history), now_ms=5_000)
        sentence = said(shown)

        assert sentence.startswith(KNOWN) is bool(shown.doubts), row.name
        for sums in shown.currencies:
            told = ["was given back" in sentence, "was charged back" in sentence]
            told.append("is held" in sentence.removeprefix("Nothing was paid, and nothing is held"))
            returned = [bool(each and sums.paid_minor) for each in (sums.given_back_minor, sums.charged_back_minor)]
            assert told == [*returned, bool(sums.held_minor)], row.name
        assert len(shown.doubts) == len({doubt_text(each) for each in shown.doubts}), row.name


def test_an_order_that_is_too_long_has_no_sums() -> None:
    """Half of its payments would be a wrong sum."""
    facts = OrderFacts(order_id="A-1", operations=(CHARGE,), is_complete=False)

    assert (
        said(balance_of(facts, now_ms=0))
        == "The order has more than the service adds up at once, so there are no sums."
    )


def test_what_went_back_is_told_once_each() -> None:
    """Parts by their amounts, and a refund of the whole by what the parts left, so that they add up to the sum."""
    rest = op(Kind.REFUND, 3, amount_minor=None)
    (payment,) = balance(CHARGE, rest, PART).payments
    returns = returns_of(payment)

    assert [(each.origin.id, each.amount_minor) for each in returns] == [(PART.id, 4_000), (rest.id, 6_000)]
    assert sum(each.amount_minor or 0 for each in returns) == payment.given_back_minor


@pytest.mark.parametrize(
    ("history", "returns"),
    [
        ((CHARGE, chargeback(), seen(TAKEN_BACK)), [(Figure.CHARGED_BACK, "ntf_1", 10_000)]),
        ((CHARGE, seen(TAKEN_BACK)), [(Figure.CHARGED_BACK, P, 10_000)]),
        ((CHARGE, seen(REFUNDED)), [(Figure.GIVEN_BACK, P, 10_000)]),
        ((imported(REFUNDED), seen(REFUNDED)), [(Figure.GIVEN_BACK, "payments.csv, line 2", 10_000)]),
        (
            (CHARGE, returned(REFUNDED, 500), PART, seen(REFUNDED)),
            [(Figure.GIVEN_BACK, PART.id, 4_000), (Figure.GIVEN_BACK, P, 6_000)],
        ),
        (
            (imported(REFUNDED), op(Kind.REFUND, amount_minor=None)),
            [(Figure.GIVEN_BACK, "op_refund_1", 10_000), (Figure.GIVEN_BACK, "payments.csv, line 2", None)],
        ),
        ((CHARGE, PART, chargeback()), [(Figure.GIVEN_BACK, PART.id, 4_000), (Figure.CHARGED_BACK, "ntf_1", 6_000)]),
        (
            (installment(amount_minor=None), op(Kind.REFUND, amount_minor=None)),
            [(Figure.GIVEN_BACK, "op_refund_1", None)],
        ),
        ((CHARGE,), []),
    ],
)
def test_a_record_is_named_only_where_nothing_nearer_tells_of_it(
    history: tuple[object, ...], returns: list[tuple[Figure, str, int | None]]
) -> None:
    """One return of money that two sources tell of is one line, or support reads two refunds."""
    (payment,) = balance(*history).payments

    assert [(each.figure, each.origin.id, each.amount_minor) for each in returns_of(payment)] == returns


@given(st.lists(st.none() | st.integers(1, 500), max_size=5), st.none() | st.integers(1, 1_000))
def test_shares_add_up_to_what_the_balance_counts(amounts: list[int | None], paid: int | None) -> None:
    """Whatever was asked for, in whatever order: up to what was paid, each refund has its share of the sum."""
    shares = shares_of(amounts, paid)
    made = [op(Kind.REFUND, number, amount_minor=each) for number, each in enumerate(amounts)]
    (payment,) = balance(installment(amount_minor=paid), *made).payments
    total = sum(each or 0 for each in shares)

    assert payment.given_back_minor == (total if paid is None else min(total, paid))
    assert [each for each, asked in zip(shares, amounts, strict=True) if asked is not None] == [
        each for each in amounts if each is not None
    ]
    assert (None in shares) is (paid is None and None in amounts)


@pytest.mark.parametrize(
    ("history", "left"),
    [
        ((CHARGE, PART), "LKR 60.00 of 100.00"),
        ((CHARGE, chargeback()), "LKR 0.00 of 100.00"),
        ((installment(amount_minor=None),), "not known, because nothing says how much was paid"),
    ],
)
def test_the_refund_form_says_what_is_left(history: tuple[object, ...], left: str) -> None:
    """Whoever refunds knows by how much before the gateway is asked."""
    (payment,) = balance(*history).payments

    assert left_of(payment) == left


@pytest.mark.parametrize("status", PaymentStatus)
def test_the_gateways_word_is_never_called_a_refund_of_nothing(status: PaymentStatus) -> None:
    """The record shows whole payments alone: a part that was given back stands beside its word."""
    (payment,) = balance(CHARGE, PART).payments
    told = status_text(status, payment)

    assert "nothing of it refunded" not in told
    assert ("LKR 40.00 was given back" in told) is (status is RECEIVED)
    assert "was given back" not in status_text(status, None)


@pytest.mark.parametrize(
    ("doubt", "name", "text"),
    [
        (
            Doubt(kind=DoubtKind.OPEN_OPERATION, id="op_1", payment_id=P, amount_minor=2_000, currency="LKR"),
            None,
            f"op_1, LKR 20.00, payment {P}: this operation has no outcome yet, and may move money.",
        ),
        (
            Doubt(kind=DoubtKind.OPEN_OPERATION, id="op_1", payment_id=P, amount_minor=2_000, currency="LKR"),
            f"refund of LKR 20.00 for payment {P}",
            f"Refund of LKR 20.00 for payment {P}: this operation has no outcome yet, and may move money.",
        ),
        (
            Doubt(kind=DoubtKind.PARTS_NOT_SHOWN, id=P, payment_id=P, amount_minor=4_000, currency="LKR"),
            None,
            f"Payment {P}, LKR 40.00: a part was given back, and the gateway's record shows no parts.",
        ),
        (
            Doubt(kind=DoubtKind.LOST_COMMITS, id="mx-88cbfe"),
            None,
            "mx-88cbfe: the database lost commits, and more may have happened than it has.",
        ),
        (
            Doubt(kind=DoubtKind.UNKNOWN_AMOUNT, id=""),
            None,
            "The order: nothing says how much was paid, so no sum has it.",
        ),
    ],
)
def test_what_is_not_certain_is_a_sentence(doubt: Doubt, name: str | None, text: str) -> None:
    """With what it is about, and how much. Somebody looks for an id by copying it, so it stays as it is."""
    assert doubt_text(doubt, name) == text


def test_a_page_is_open() -> None:
    """Whoever gave up on a page may still pay on it."""
    shown = balance(page(CheckoutKind.PAYMENT, CheckoutState.OPEN))

    assert [doubt_text(each) for each in shown.doubts] == [
        "chk_1, LKR 100.00: this page is open, and the customer may pay on it."
    ]


def test_a_refund_that_failed_later_is_left_again() -> None:
    """The money is the shop's again, and support can refund once more."""
    refund = op(Kind.REFUND, amount_minor=None)
    history = (CHARGE, refund, returned(REFUNDED, 2_000), failed(refund), again(3_000), seen(at_ms=9_000_000))

    assert said(balance(*history)) == "LKR 100.00 was paid, and LKR 100.00 is left."
