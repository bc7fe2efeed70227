"""Days of the books: what comes after a day was closed is booked later, and sums say what is in them."""

from datetime import date, timedelta
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reconciliation.worlds import COMPLETE, DAY, NOTHING, ZONE, line, payment, planted, worlds

from payrelay.reconciliation.rules.days import Closure, DayReport, Sum, Tally, added, booked_on, unseen
from payrelay.reconciliation.rules.entries import Movement, last_of_month
from payrelay.reconciliation.rules.judging import judge
from payrelay.reconciliation.rules.verdicts import DIFFERENCES, BooksFinding, BooksVerdict

LAST = Closure(DAY, 1_000, 900)


@given(st.integers(-5, 5))
def test_a_closed_day_gets_nothing_more(number: int) -> None:
    """Whatever is stored behind a closing is booked behind the closed day, also of days long before."""
    day = DAY + timedelta(days=number)
    assert booked_on(day, LAST) == max(day, DAY + timedelta(days=1))
    assert booked_on(day, None) == day


def test_a_closing_knew_nothing_of_its_last_minute() -> None:
    """Another process may have stored something with an earlier time, which the comparison couldn't see yet."""
    assert LAST.knew_to_ms == 900 - 60_000


@given(worlds, st.randoms())
def test_a_fingerprint_is_of_the_findings_and_not_of_their_order(names: list[str], random: Random) -> None:
    """Pages come in any order; a finding more, or one of another day, makes it another one."""
    ours, theirs, _ = planted(names)
    found = judge(ours, theirs, COMPLETE)
    mixed = random.sample(found, len(found))
    assert fingerprint_of(found) == fingerprint_of(mixed)
    if found:
        moved = msgspec.structs.replace(found[0], day=found[0].day + timedelta(days=1))
        different = {fingerprint_of(each) for each in (found, found[1:], [moved, *found[1:]], [*found, found[0]])}
        assert len(different) == 4


def fingerprint_of(found: list[BooksFinding]) -> str:
    """Adds findings up, and gives their fingerprint."""
    tally = Tally()
    for each in found:
        tally.add(each)
    return tally.fingerprint


@given(worlds)
def test_the_sums_have_every_finding_once(names: list[str]) -> None:
    """The total of a report is the money that moved by its findings, to the hundredth."""
    ours, theirs, _ = planted(names)
    found, tally = judge(ours, theirs, COMPLETE), Tally()
    for each in found:
        tally.add(each)
    sums = tally.sums()
    assert sum(each.count for each in sums) == len(found)
    assert sum(each.ours_minor for each in sums) == sum(each.ours_moved_minor or 0 for each in found)
    assert sum(each.theirs_minor for each in sums) == sum(each.theirs_moved_minor or 0 for each in found)
    report = DayReport(
        account="shop",
        day=DAY,
        timezone=ZONE.name,
        ran_at_ms=1,
        sums=sums,
        corrections=(),
        unseen=(),
        rests_on=(),
        listed=(),
        left_out=0,
        taken_back=(),
        lines=0,
        fingerprint=tally.fingerprint,
    )
    assert sum(map(report.count, DIFFERENCES)) == sum(each.is_difference for each in found)


def test_a_sum_says_what_it_lacks() -> None:
    """A refund of everything has no amount of its own; a sum without it must say so."""
    tally = Tally()
    for each in judge([payment(1, amount_minor=None)], [], COMPLETE):
        tally.add(each)
    [found] = tally.sums()
    assert (found.verdict, found.unknown, found.ours_minor) == (BooksVerdict.ONLY_OURS, 1, 0)


def sum_of(name: str, movement: Movement) -> Sum:
    """Gives the sum of a movement that both sides agree on, in a world of one thing."""
    ours, theirs, _ = planted([name])
    tally = Tally()
    for each in judge(ours, theirs, COMPLETE):
        tally.add(each)
    [found] = [each for each in tally.sums() if (each.movement, each.verdict) == (movement, BooksVerdict.AGREED)]
    return found


def test_what_failed_on_both_sides_is_agreed_on_and_is_no_money() -> None:
    """Counted as money, a declined charge would be income in the sums of a day."""
    found = sum_of("declined on both sides", Movement.PAYMENT)
    assert (found.count, found.moved_nothing, found.ours_minor, found.theirs_minor) == (1, 1, 0, 0)
    assert (found.booked_minor, found.without_fee) == (0, 0)
    [said] = found.bases
    assert said.startswith("1 of 1 took no money")


def test_what_the_state_of_a_payment_proves_is_said_to_be_so() -> None:
    """Agreed with 1000.01 on our side and 0.00 on theirs looks like a mistake, unless the basis is said."""
    found = sum_of("refunded in full", Movement.REFUND)
    assert (found.by_state, found.ours_minor, found.theirs_minor, found.booked_minor) == (1, 100_001, 0, 100_001)
    assert found.bases == (
        "1 of 1 by the state of the payment alone: 1000.01 is our amount, and no line of a statement has it",
    )
    assert sum_of("agreed", Movement.PAYMENT).bases == ()


@given(st.lists(worlds, max_size=3))
def test_the_sums_of_days_are_those_of_all_their_findings(days: list[list[str]]) -> None:
    """A month's figures are the days' figures, whatever each day lacks."""
    whole, each_day = Tally(), list[Sum]()
    for names in days:
        ours, theirs, _ = planted(names)
        tally = Tally()
        for each in judge(ours, theirs, COMPLETE):
            whole.add(each)
            tally.add(each)
        each_day += tally.sums()
    assert added(each_day) == whole.sums()


def test_a_month_ends_on_its_last_day() -> None:
    """A leap year has a day more."""
    assert last_of_month(date(2024, 2, 1)) == date(2024, 2, 29)


def test_what_cant_be_known_is_said() -> None:
    """A report without files must not look as if nothing were missing."""
    assert {each.movement for each in unseen(DAY, NOTHING.coverage)} == set(Movement)
    assert unseen(DAY, COMPLETE.coverage) == ()


def test_a_content_that_changes_is_another_finding() -> None:
    """A difference that a person closed is not closed for another amount."""
    [first] = judge([payment(1)], [line(1, amount_minor=5)], COMPLETE)
    [same] = judge([payment(1, known_at_ms=9)], [line(1, amount_minor=5, known_at_ms=7, place="line 9")], COMPLETE)
    [other] = judge([payment(1)], [line(1, amount_minor=6)], COMPLETE)
    assert (first.id, first.content) == (same.id, same.content)
    assert first.id == other.id
    assert first.content != other.content
    assert ZONE.day(first.known_at_ms) == DAY
