"""Payouts against what they are made of, and against the bank's account."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reconciliation.worlds import COMPLETE, DAY, NOTHING, ZONE, line

from payrelay.reconciliation.rules.entries import Coverage, Movement, StatementLine
from payrelay.reconciliation.rules.payouts_compared import PayoutParts, compare_payouts
from payrelay.reconciliation.rules.sides import Known
from payrelay.reconciliation.rules.verdicts import Aspect, BooksVerdict


def payout(number: int, **members: object) -> StatementLine:
    """Makes a payout of the gateway's."""
    return line(number, movement=Movement.PAYOUT, identity=f"P{number}", payout_id=f"P{number}", **members)


def credit(number: int, **members: object) -> StatementLine:
    """Makes a line of the bank's account with the amount of the payout of that number."""
    return line(number, movement=Movement.BANK, identity=f"B{number}", **members)


def verdicts(lines: list[StatementLine], known: Known = COMPLETE) -> list[tuple[BooksVerdict, tuple[Aspect, ...]]]:
    """Compares, and gives the verdicts in their order."""
    return [(each.verdict, each.aspects) for each in compare_payouts(lines, {}, known)]


def test_a_payout_is_found_by_its_amount_where_it_is_the_only_one() -> None:
    """Most banks don't print the gateway's number."""
    assert verdicts([payout(1), credit(1, day=DAY + timedelta(days=3))]) == [(BooksVerdict.AGREED, ())]


def test_two_equal_payouts_are_not_guessed_apart() -> None:
    """Which credit is which payout isn't known; saying so would be invented."""
    lines = [payout(1, amount_minor=5), payout(2, amount_minor=5), credit(1, amount_minor=5)]
    assert [each for each, _ in verdicts(lines)] == [
        BooksVerdict.ONLY_THEIRS,
        BooksVerdict.ONLY_OURS,
        BooksVerdict.ONLY_OURS,
    ]


def test_a_name_joins_them_whatever_they_say() -> None:
    """The bank's line names the payout, and has another amount and another day."""
    named = credit(1, payout_id="P1", amount_minor=7, day=DAY + timedelta(days=9))
    assert verdicts([payout(1), named]) == [(BooksVerdict.DIFFERENT, (Aspect.AMOUNT, Aspect.DAY))]


@pytest.mark.parametrize(
    ("known", "verdict"),
    [
        (COMPLETE, BooksVerdict.ONLY_OURS),
        (NOTHING, BooksVerdict.UNKNOWABLE),
        (Known(coverage=Coverage(days={Movement.BANK: frozenset({DAY})}), zone=ZONE), BooksVerdict.OPEN),
    ],
)
def test_what_the_bank_lacks_needs_the_banks_whole_statements(known: Known, verdict: BooksVerdict) -> None:
    """Five days pass until the money is there, and nobody may be accused before."""
    assert verdicts([payout(1)], known) == [(verdict, ())]


def test_a_credit_that_no_payout_explains_is_told() -> None:
    """Money on the account that nobody can explain is a difference too."""
    assert verdicts([credit(1)]) == [(BooksVerdict.ONLY_THEIRS, ())]


def test_what_a_payout_is_made_of_must_come_to_it() -> None:
    """A fee that was taken twice shows here alone."""
    lines = [payout(1, amount_minor=900), credit(1, amount_minor=900)]
    [right] = compare_payouts(lines, {"P1": PayoutParts(900, 3)}, COMPLETE)
    [wrong] = compare_payouts(lines, {"P1": PayoutParts(905, 3)}, COMPLETE)
    assert right.verdict is BooksVerdict.AGREED
    assert (wrong.verdict, wrong.aspects) == (BooksVerdict.DIFFERENT, (Aspect.FEE,))
    assert wrong.why == "its 3 lines come to 9.05"


def test_two_files_about_one_payout_that_differ_are_told() -> None:
    """The later file doesn't win in silence."""
    lines = [payout(1), payout(1, amount_minor=5), credit(1)]
    found = compare_payouts(lines, {}, COMPLETE)
    assert any(Aspect.STATEMENTS in each.aspects for each in found)
    twice = compare_payouts([credit(1), credit(1, amount_minor=6)], {}, COMPLETE)
    assert [each.aspects for each in twice] == [(Aspect.STATEMENTS,)]


@given(st.lists(st.integers(1, 4), max_size=8), st.lists(st.integers(1, 4), max_size=8), st.randoms())
def test_no_order_of_files_changes_the_pairs(paid: list[int], received: list[int], random: Random) -> None:
    """Payouts of a month come in several files, before or after the bank's."""
    lines = [payout(number, amount_minor=amount) for number, amount in enumerate(paid)]
    lines += [credit(number, amount_minor=amount) for number, amount in enumerate(received)]
    wanted = compare_payouts(lines, {}, COMPLETE)
    shuffled = lines * 2
    random.shuffle(shuffled)
    assert compare_payouts(shuffled, {}, COMPLETE) == wanted
