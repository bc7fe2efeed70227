"""What a closing names where a day comes to something else: everything that is otherwise, and nothing that isn't."""

from collections.abc import Sequence

import msgspec
from hypothesis import given
from tests.core.reconciliation.worlds import COMPLETE, DAY, NOTHING, ZONE, line, payment, planted, worlds

from payrelay.reconciliation.rules.changes import NAMED_MAX, changes_between
from payrelay.reconciliation.rules.days import DayReport, Tally, unseen
from payrelay.reconciliation.rules.entries import BooksEntry, StatementLine
from payrelay.reconciliation.rules.judging import judge
from payrelay.reconciliation.rules.sides import Known
from payrelay.reconciliation.rules.verdicts import BooksVerdict


def report_on(ours: Sequence[BooksEntry], theirs: Sequence[StatementLine], known: Known = COMPLETE) -> DayReport:
    """Compares both sides, as a run does."""
    found, tally = judge(ours, theirs, known), Tally()
    for each in found:
        tally.add(each)
    return DayReport(
        account="shop",
        day=DAY,
        timezone=ZONE.name,
        ran_at_ms=1,
        sums=tally.sums(),
        corrections=(),
        unseen=unseen(DAY, known.coverage),
        rests_on=("her word",) if known is COMPLETE else (),
        listed=tuple(each for each in found if each.verdict is not BooksVerdict.AGREED),
        left_out=0,
        taken_back=(),
        lines=0,
        fingerprint=tally.fingerprint,
    )


@given(worlds)
def test_a_day_that_was_compared_again_says_the_same(names: list[str]) -> None:
    """When it was compared is no change."""
    ours, theirs, _ = planted(names)
    seen = report_on(ours, theirs)
    again = msgspec.structs.replace(report_on(ours[::-1], theirs[::-1]), ran_at_ms=2, lines=9)
    assert changes_between(seen, again) == []


@given(worlds)
def test_a_payment_more_is_a_change_whatever_else_there_is(names: list[str]) -> None:
    """The one that would be lost with the day."""
    ours, theirs, _ = planted(names)
    assert changes_between(report_on(ours, theirs), report_on(ours, [*theirs, line(990)])) != []


def test_what_changed_is_named_from_both_sides() -> None:
    """A person decides by it whether to close the day all the same."""
    seen, now = report_on([payment(1)], [line(1)]), report_on([payment(1)], [line(1, amount_minor=5), line(2)])
    assert changes_between(seen, now) == [
        "LKR payment agreed: 1 (ours 1000.01, theirs 1000.01, fees 0.00), and now none",
        "LKR payment different: none, and now 1 (ours 1000.01, theirs 0.05, fees 0.00)",
        "LKR payment only theirs: none, and now 1 (ours 0.00, theirs 1000.02, fees 0.00)",
        *sorted(
            (
                "payment 1: not listed, and now different (amount), the two sides differ in amount",
                "payment 2: not listed, and now only theirs, nobody here made it, as far as our books say",
            ),
            key=lambda told: next(each.id for each in now.listed if f" {each.identity}:" in told),
        ),
    ]
    back = changes_between(now, seen)
    assert "payment 1: different (amount), the two sides differ in amount, and now not listed" in back


def test_what_it_rests_on_is_a_change() -> None:
    """The figures may stay, and somebody's word that they are complete be new."""
    seen, now = report_on([], [], NOTHING), report_on([], [])
    assert changes_between(seen, now)[:2] == ["rests on now: her word", "known now: each payment"]
    assert changes_between(now, seen)[:2] == ["no longer rests on: her word", "not known now: each payment"]


def test_corrections_are_named_as_such() -> None:
    """They are of another day than the one that is closed."""
    seen = report_on([], [])
    now = msgspec.structs.replace(seen, corrections=report_on([payment(1)], [line(1)]).sums)
    assert changes_between(seen, now)[0].startswith("corrections, LKR payment agreed: none, and now 1")


def test_equal_sums_of_other_payments_are_a_change() -> None:
    """Two payments of one amount changed places, and neither is listed, as both agree."""
    seen = report_on([payment(1, amount_minor=5)], [line(1, amount_minor=5)])
    now = report_on([payment(2, amount_minor=5)], [line(2, amount_minor=5)])
    assert changes_between(seen, now) == ["the sums are equal, and they are of other things"]


def test_many_changes_are_counted() -> None:
    """A refusal is read by a person, in a line."""
    changes = changes_between(report_on([], []), report_on([], [line(number) for number in range(20)]))
    assert (len(changes), changes[-1]) == (NAMED_MAX + 1, "and 13 more")
