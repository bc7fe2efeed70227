"""Refunds and chargebacks beside the lines of statements: what is joined, what stays open, and what was never done."""

from datetime import timedelta

import pytest
from tests.core.reconciliation.worlds import COMPLETE, DAY, NOTHING, line, payment, refund, refund_line

from payrelay.reconciliation.rules.entries import EntryStanding, Movement
from payrelay.reconciliation.rules.judging import judge
from payrelay.reconciliation.rules.verdicts import BooksVerdict


def test_a_failed_refund_without_a_line_is_no_finding() -> None:
    """Nothing was given back, and no statement says otherwise: an accountant has nothing to look at."""
    failed = refund("1a", 10, 1, standing=EntryStanding.FAILED)
    found = judge((payment(1), failed), (line(1),), COMPLETE)

    assert [each.verdict for each in found] == [BooksVerdict.AGREED]


def test_a_refund_without_an_outcome_is_open() -> None:
    """It must be called neither done nor missing before its outcome is known."""
    open_one = refund("1a", 10, 1, standing=EntryStanding.OPEN)
    found = judge((payment(1), open_one), (line(1),), COMPLETE)

    assert {each.movement: each.verdict for each in found} == {
        Movement.PAYMENT: BooksVerdict.AGREED,
        Movement.REFUND: BooksVerdict.OPEN,
    }


def test_a_refund_of_all_has_the_amount_that_our_books_say_was_paid() -> None:
    """A file of refunds alone has no line of the payment; the refund's line is compared with our own amount."""
    paid = payment(1)
    whole = refund("1a", None, 1)
    found = judge((paid, whole), (refund_line("1x", 100_001, 1),), COMPLETE)
    [returned] = [each for each in found if each.movement is Movement.REFUND]

    assert (returned.verdict, returned.ours_minor) == (BooksVerdict.AGREED, 100_001)


def test_what_went_back_is_counted_as_the_balance_counts_it() -> None:
    """A refund of the whole after a part gives back the rest: counted whole, more would be booked than was paid."""
    part, whole = refund("1a", 40, 1), refund("1b", None, 1)
    told = refund_line("1x", 40, 1), refund_line("1y", 99_961, 1)
    found = judge((payment(1), part, whole), (line(1), *told), COMPLETE)
    returns = [each for each in found if each.movement is Movement.REFUND]

    assert [(each.verdict, each.ours_minor) for each in returns] == [
        (BooksVerdict.AGREED, 40),
        (BooksVerdict.AGREED, 99_961),
    ]


@pytest.mark.parametrize(
    ("refunds", "amount_minor", "taken_minor"),
    [
        ((), None, 100_001),
        ((), 100_001, 100_001),
        ((40,), 100_001, 99_961),
        ((40,), None, 99_961),
        ((40,), 60, 60),
        ((None,), 100_001, 100_001),
    ],
)
def test_a_chargeback_takes_what_was_left(
    refunds: tuple[int | None, ...], amount_minor: int | None, taken_minor: int
) -> None:
    """The gateway notifies the whole amount; a bank takes what wasn't given back, and a statement says so."""
    taken_back = payment(1, id="op_back", movement=Movement.CHARGEBACK, amount_minor=amount_minor)
    told = line(1, movement=Movement.CHARGEBACK, identity="1x", amount_minor=taken_minor)
    made = [refund(f"1{number}", each, 1) for number, each in enumerate(refunds)]
    found = judge((payment(1), taken_back, *made), (line(1), told), COMPLETE)
    (chargeback,) = [each for each in found if each.movement is Movement.CHARGEBACK]

    assert (chargeback.verdict, chargeback.ours_minor) == (BooksVerdict.AGREED, taken_minor)


def test_a_chargeback_of_what_nobody_knows_has_the_amount_that_was_notified() -> None:
    """Its payment is in neither side, so nothing says what was left of it."""
    taken_back = payment(1, id="op_back", movement=Movement.CHARGEBACK, amount_minor=60)
    (chargeback,) = judge((taken_back,), (), NOTHING)

    assert (chargeback.verdict, chargeback.ours_minor) == (BooksVerdict.UNKNOWABLE, 60)


def test_an_open_refund_of_the_whole_is_counted_with_its_amount() -> None:
    """A day's report says how much is under way, not only that something is."""
    under_way = refund("1a", None, 1, standing=EntryStanding.OPEN)
    found = judge((payment(1), under_way), (line(1),), COMPLETE)
    (returned,) = [each for each in found if each.movement is Movement.REFUND]

    assert (returned.verdict, returned.ours_minor) == (BooksVerdict.OPEN, 100_001)


def test_a_chargeback_may_be_weeks_from_its_line() -> None:
    """A bank takes the money back on one day and the gateway notifies it on another: that is no difference."""
    taken_back = payment(1, id="op_back", movement=Movement.CHARGEBACK)
    told = line(1, movement=Movement.CHARGEBACK, identity="1x", day=DAY + timedelta(days=30))
    found = judge((payment(1), taken_back), (line(1), told), COMPLETE)

    assert {(each.movement, each.verdict) for each in found if each.movement is Movement.CHARGEBACK} == {
        (Movement.CHARGEBACK, BooksVerdict.AGREED)
    }
