"""The comparison of our books with statements: it finds what is planted, invents nothing, and heeds no order."""

from collections import Counter
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.reconciliation.worlds import (
    COMPLETE,
    DAY,
    HOUR_MS,
    NOON_MS,
    NOTHING,
    PLANTS,
    ZONE,
    line,
    payment,
    planted,
    refund,
    worlds,
)
from tests.draws import examples

from payrelay.reconciliation.rules.entries import Coverage, EntryStanding, LineState, Movement, Source
from payrelay.reconciliation.rules.judging import judge
from payrelay.reconciliation.rules.sides import Known, is_told_by_line
from payrelay.reconciliation.rules.verdicts import Basis, BooksVerdict, Concern


@pytest.mark.parametrize("name", PLANTS)
def test_what_is_planted_is_found_and_nothing_else(name: str) -> None:
    """An accountant closes a day on the word of these verdicts."""
    ours, theirs, wanted = PLANTS[name](1)
    found = judge(ours, theirs, COMPLETE)
    assert Counter((each.verdict, each.aspects) for each in found) == Counter(wanted)


@settings(max_examples=examples(200))
@given(worlds)
def test_a_day_of_everything_has_each_finding_once(names: list[str]) -> None:
    """What is wrong with one order says nothing of another one."""
    ours, theirs, wanted = planted(names)
    found = judge(ours, theirs, COMPLETE)
    assert Counter((each.verdict, each.aspects) for each in found) == Counter(wanted)
    assert len({each.id for each in found}) == len(found)


@settings(max_examples=examples(200))
@given(worlds, st.randoms(use_true_random=False), st.integers(1, 3))
def test_shuffled_and_doubled_lines_change_nothing(names: list[str], random: Random, times: int) -> None:
    """Files come late, in parts, twice and in any order; the books of a day may not depend on that."""
    ours, theirs, _ = planted(names)
    wanted = judge(ours, theirs, COMPLETE)
    mine, lines = list(ours) * times, list(theirs) * times
    random.shuffle(mine)
    random.shuffle(lines)
    assert judge(mine, lines, COMPLETE) == wanted


@settings(max_examples=examples(200))
@given(worlds)
def test_without_complete_files_nothing_is_said_to_be_missing(names: list[str]) -> None:
    """A file that was cut or filtered must never accuse the gateway of having lost a payment."""
    ours, theirs, _ = planted(names)
    assert all(each.verdict is not BooksVerdict.ONLY_OURS for each in judge(ours, theirs, NOTHING))


@settings(max_examples=examples(200))
@given(worlds, st.data())
def test_a_part_of_a_file_only_leaves_things_unknown(names: list[str], data: st.DataObject) -> None:
    """What a cut file lacks becomes unknown, open, or is not found; it becomes no difference that isn't there."""
    ours, theirs, _ = planted(names)
    whole = {each.id: each for each in judge(ours, theirs, COMPLETE)}
    kept = data.draw(st.sets(st.sampled_from(theirs))) if theirs else set()
    for each in judge(ours, kept, NOTHING):
        if each.is_difference and not whole[each.id].is_difference:
            # A state that other lines of the same payment explain is a difference while those lines are missing.
            assert each.movement is Movement.PAYMENT
            assert each.theirs is not None
            assert each.theirs.state not in {LineState.TAKEN, LineState.NOT_TAKEN}


def test_the_gateway_that_was_asked_for_the_order_is_believed() -> None:
    """A search for one order shows that its payment isn't there, if it was made after the payment."""
    for searched_at_ms, verdict in ((NOON_MS, BooksVerdict.UNKNOWABLE), (NOON_MS + HOUR_MS, BooksVerdict.ONLY_OURS)):
        known = Known(coverage=Coverage(searched={"A-1": searched_at_ms}), zone=ZONE)
        [found] = judge([payment(1)], [], known)
        assert found.verdict is verdict


def test_what_our_books_cant_name_is_never_missing() -> None:
    """A subscription's retry has no payment id and no order here: no statement could show that it is the one."""
    [found] = judge([payment(1, payment_id=None, order_id=None, amount_minor=None)], [], COMPLETE)
    assert (found.verdict, found.basis) == (BooksVerdict.UNKNOWABLE, Basis.BOOKS)
    assert "neither its payment nor its order" in found.why


def test_a_refund_of_a_part_shows_in_no_search() -> None:
    """The gateway lists no refunds; whoever says that one isn't there has guessed."""
    known = Known(coverage=Coverage(searched={"A-1": NOON_MS + 10_000 * HOUR_MS}), zone=ZONE)
    shown = line(1, source=Source.SEARCH)
    paid, returned = judge([payment(1), refund("1a", 10, 1)], [shown], known)
    assert (paid.verdict, paid.basis) == (BooksVerdict.AGREED, Basis.SEARCH)
    assert returned.verdict is BooksVerdict.UNKNOWABLE
    assert "a refund of a part shows in no search" in returned.why


def test_a_refund_in_full_has_two_weeks_to_show() -> None:
    """The gateway takes it back at a day's end, and the card up to ten days later."""
    shown = line(1, source=Source.SEARCH)
    for days, verdict in ((1, BooksVerdict.OPEN), (30, BooksVerdict.ONLY_OURS)):
        known = Known(coverage=Coverage(searched={"A-1": NOON_MS + days * 24 * HOUR_MS}), zone=ZONE)
        _, returned = judge([payment(1), refund("1a", None, 1)], [shown], known)
        assert returned.verdict is verdict
    until = frozenset(DAY + timedelta(days=number) for number in range(3))
    known = Known(coverage=Coverage(days={Movement.REFUND: until}), zone=ZONE)
    _, returned = judge([payment(1), refund("1a", None, 1)], [shown], known)
    assert returned.verdict is BooksVerdict.OPEN


@pytest.mark.parametrize(
    ("standing", "concern"), [(EntryStanding.FAILED, Concern.TAKEN_THOUGH_FAILED), (EntryStanding.OPEN, None)]
)
def test_money_for_what_failed_concerns_somebody(standing: EntryStanding, concern: Concern | None) -> None:
    """The client was told that nothing was taken."""
    [found] = judge([payment(1, standing=standing, payment_id=None)], [line(1)], COMPLETE)
    assert found.concern is concern
    [foreign] = judge([], [line(2)], COMPLETE)
    assert foreign.concern is Concern.NOT_MADE_HERE


def test_the_day_is_the_statements_at_midnight() -> None:
    """A payment of 23:59:59 that the gateway dates one second later is on the day that its statement has."""
    midnight_ms = ZONE.ends_ms(DAY)
    late = payment(1, from_ms=midnight_ms - 1_000, until_ms=midnight_ms - 900)
    tomorrow = DAY + timedelta(days=1)
    [found] = judge([late], [line(1, day=tomorrow)], COMPLETE)
    assert (found.verdict, found.day) == (BooksVerdict.AGREED, tomorrow)
    [alone] = judge([late], [], COMPLETE)
    assert alone.day == DAY


def test_of_two_payments_of_an_order_the_equal_amount_is_the_ours() -> None:
    """An open charge must not be taken for a payment of another amount while one of its own amount is there."""
    unknown = payment(1, standing=EntryStanding.OPEN, payment_id=None)
    other, own = line(8, order_id="A-1", amount_minor=5), line(9, order_id="A-1", amount_minor=100_001)
    found = {each.identity: each for each in judge([unknown], [other, own], COMPLETE)}
    assert found["9"].ours == unknown
    assert found["8"].verdict is BooksVerdict.ONLY_THEIRS


def test_a_payment_that_several_entries_have_is_one() -> None:
    """An operation, a page and an installment may all know it, and the money moved once."""
    page, installment = payment(1, id="chk_1"), payment(1, id="sub/4/1", amount_minor=None)
    elsewhere = payment(1, id="import/1")
    for entries in ([page, installment, payment(1), elsewhere], [elsewhere, payment(1), installment, page]):
        [found] = judge(entries, [line(1)], COMPLETE)
        assert (found.verdict, found.ours) == (BooksVerdict.AGREED, payment(1))


def test_of_several_tries_of_an_order_the_open_one_was_paid() -> None:
    """A declined charge that would take the line would alarm somebody, and leave the other one open."""
    declined = payment(1, standing=EntryStanding.FAILED, payment_id=None)
    pending = payment(1, id="op_2", standing=EntryStanding.OPEN, payment_id=None, from_ms=NOON_MS + 1)
    [found] = judge([declined, pending], [line(1)], COMPLETE)
    assert (found.ours, found.concern) == (pending, None)


def test_a_payment_of_a_page_is_booked_on_the_day_of_its_line() -> None:
    """A page may be paid long after it was opened, and our books of that day don't have it."""
    page = payment(1, id="chk_1", standing=EntryStanding.OFFERED, payment_id=None, is_offer=True)
    later = DAY + timedelta(days=30)
    [found] = judge([page], [line(1, day=later)], COMPLETE)
    assert (found.verdict, found.day, is_told_by_line(found, ZONE)) == (BooksVerdict.DIFFERENT, later, True)


def test_a_charge_that_was_sent_weeks_later_is_met_with_its_line() -> None:
    """After a recovery a person may send what was held; our books are read by when it was made."""
    weeks_ms = 14 * 24 * HOUR_MS
    held = payment(1, until_ms=NOON_MS + weeks_ms, booked_ms=NOON_MS)
    [found] = judge([held], [line(1, day=DAY + timedelta(days=14))], COMPLETE)
    assert (found.verdict, found.day, is_told_by_line(found, ZONE)) == (
        BooksVerdict.AGREED,
        DAY + timedelta(days=14),
        True,
    )
    [missing] = judge([held], [], COMPLETE)
    assert (missing.day, is_told_by_line(missing, ZONE)) == (DAY, False)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"fee_minor": 3_500, "expected_fee_minor": 3_300}, "it is 35.00, and 33.00 is agreed on"),
        ({"fee_minor": 3_500, "expected_fee_minor": 0}, "it is 35.00, and 0.00 is agreed on"),
        ({"fee_minor": 3_500, "net_minor": 5}, "without the fee of 35.00 it leaves 965.01, and not the net"),
        ({"order_id": "B-1"}, "the two sides differ in order"),
    ],
)
def test_a_fee_that_differs_is_told_with_what_was_agreed(members: dict[str, object], why: str) -> None:
    """An accountant asks the gateway about a number, and not about a fee."""
    [found] = judge([payment(1)], [line(1, **members)], COMPLETE)
    assert found.why.endswith(why)
