"""Days of the books: what comes after a day was closed is booked later, and sums say what is in them."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.core.reconciliation.worlds import COMPLETE, DAY, NOTHING, ZONE, line, payment, planted, worlds

from payrelay.core.reconciliation.days import Closure, DayReport, Tally, booked_on, unseen
from payrelay.core.reconciliation.entries import Movement
from payrelay.core.reconciliation.judging import judge
from payrelay.core.reconciliation.verdicts import DIFFERENCES, BooksVerdict

CLOSED = tuple(Closure(DAY + timedelta(days=number), 1_000 * (number + 1)) for number in range(3))


@given(st.integers(-2, 5), st.integers(0, 5_000))
def test_a_closed_day_gets_nothing_more(number: int, known_at_ms: int) -> None:
    """Whatever comes after a day was closed is booked on a later one; what was known before stays where it was."""
    day = DAY + timedelta(days=number)
    booked = booked_on(day, known_at_ms, CLOSED)
    assert booked >= day
    assert all(booked != each.day for each in CLOSED if each.closed_at_ms <= known_at_ms)
    assert booked == day or any(each.closed_at_ms <= known_at_ms for each in CLOSED)


@given(st.integers(-2, 5), st.integers(0, 5_000), st.integers(1, 3))
def test_a_booking_never_moves(number: int, known_at_ms: int, later: int) -> None:
    """Days that are closed afterwards move nothing that was booked on an earlier one."""
    day = DAY + timedelta(days=number)
    so_far = [each for each in CLOSED if each.closed_at_ms <= known_at_ms]
    more = CLOSED[: len(so_far) + later]
    assert booked_on(day, known_at_ms, so_far) == booked_on(day, known_at_ms, more)


@given(worlds)
def test_the_sums_have_every_finding_once(names: list[str]) -> None:
    """The total of a report is the total of its findings, to the hundredth."""
    ours, theirs, _ = planted(names)
    found, tally = judge(ours, theirs, COMPLETE), Tally()
    for each in found:
        tally.add(each)
    sums = tally.sums()
    assert sum(each.count for each in sums) == len(found)
    assert sum(each.ours_minor for each in sums) == sum(each.ours_minor or 0 for each in found)
    assert sum(each.theirs_minor for each in sums) == sum(each.theirs_minor or 0 for each in found)
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
    )
    assert sum(map(report.count, DIFFERENCES)) == sum(each.is_difference for each in found)


def test_a_sum_says_what_it_lacks() -> None:
    """A refund of everything has no amount of its own; a sum without it must say so."""
    tally = Tally()
    for each in judge([payment(1, amount_minor=None)], [], COMPLETE):
        tally.add(each)
    [found] = tally.sums()
    assert (found.verdict, found.unknown, found.ours_minor) == (BooksVerdict.ONLY_OURS, 1, 0)


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
