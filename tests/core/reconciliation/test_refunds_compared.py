"""Refunds and chargebacks beside the lines of statements: what is joined, what stays open, and what was never done."""

from datetime import timedelta

from tests.core.reconciliation.worlds import COMPLETE, DAY, line, payment, refund, refund_line

from payrelay.core.reconciliation.entries import EntryStanding, Movement
from payrelay.core.reconciliation.judging import judge
from payrelay.core.reconciliation.verdicts import BooksVerdict


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


def test_a_chargeback_may_be_weeks_from_its_line() -> None:
    """A bank takes the money back on one day and the gateway notifies it on another: that is no difference."""
    taken_back = payment(1, id="op_back", movement=Movement.CHARGEBACK)
    told = line(1, movement=Movement.CHARGEBACK, identity="1x", day=DAY + timedelta(days=30))
    found = judge((payment(1), taken_back), (line(1), told), COMPLETE)

    assert {(each.movement, each.verdict) for each in found if each.movement is Movement.CHARGEBACK} == {
        (Movement.CHARGEBACK, BooksVerdict.AGREED)
    }
