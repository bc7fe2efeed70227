"""A day is closed with what is known at its closing: what came since the last comparison is told, and never lost."""

import asyncio
from datetime import timedelta

import pytest
from tests.flows.reconciliation.test_day import ANN, DAY, FOREIGN, PAID, Office, office, told
from tests.flows.world import CHARGE, asked, outcome_of

from payrelay.core.outcomes import OutcomeKind
from payrelay.errors import Refusal
from payrelay.flows.operators.parts import Actor
from payrelay.flows.payments.charge import charge
from payrelay.reconciliation.flows.close import close_day, close_days, close_difference
from payrelay.reconciliation.rules.days import DayReport
from payrelay.reconciliation.rules.verdicts import BooksVerdict
from payrelay.reconciliation.store.stores import ReconciliationStores

__all__ = ["office"]
NEXT = DAY + timedelta(days=1)


async def closed(office: Office) -> DayReport:
    """Closes the day."""
    return await close_day(office.relay, office.scope, DAY, ANN, "month end")


async def test_a_file_that_was_read_after_the_last_comparison_is_not_lost(office: Office) -> None:
    """It is in no report that anybody saw. The closing tells of it, and the day is closed with it."""
    await office.pay()
    await office.feed(PAID)
    await office.run()
    office.wait(1)
    await office.feed(FOREIGN, covers=False, name="late.csv")
    with pytest.raises(Refusal, match="320025000002: not listed, and now only theirs, nobody here made it"):
        await closed(office)
    assert told(await closed(office)) == [("320025000002", BooksVerdict.ONLY_THEIRS)]
    assert (await office.run(NEXT)).corrections == ()


async def test_an_outcome_that_became_known_after_the_last_comparison_is_not_lost(office: Office) -> None:
    """The day was compared while a charge had no outcome."""
    office.world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(office.relay, asked("k-1"), CHARGE)
    await office.feed(covers=True)
    await office.run()
    office.wait(1)
    await office.world.resolve(OutcomeKind.SUCCEEDED)
    office.wait(1)
    with pytest.raises(Refusal, match="LKR payment open: 1"):
        await closed(office)
    assert (await closed(office)).count(BooksVerdict.ONLY_OURS) == 1
    assert (await office.run(NEXT)).corrections == (), "it is in the closed day, and in no other"


async def test_what_changes_at_the_closing_waits_for_a_minute(office: Office) -> None:
    """Another process's clock may be behind: what it stores now may look older than the comparison."""
    office.world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(office.relay, asked("k-1"), CHARGE)
    await office.feed(covers=True)
    office.wait(1)
    await office.world.resolve(OutcomeKind.SUCCEEDED)
    await office.run()
    with pytest.raises(Refusal, match="changed within this minute"):
        await closed(office)
    office.world.clock.passed_ms += 61_000
    assert (await closed(office)).count(BooksVerdict.ONLY_OURS) == 1


async def test_a_change_that_another_clock_dated_before_the_closing_is_a_correction(office: Office) -> None:
    """Its process was half a minute behind, and stored it when the day was closed."""
    office.world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(office.relay, asked("k-1"), CHARGE)
    await office.feed(covers=True)
    await office.run()
    office.wait(1)
    await closed(office)
    office.world.clock.passed_ms -= 30_000
    await office.world.resolve(OutcomeKind.SUCCEEDED)
    office.wait(1)
    [correction] = (await office.run(NEXT)).corrections
    assert (correction.verdict, correction.count) == (BooksVerdict.ONLY_OURS, 1)


async def test_a_file_that_is_read_while_its_day_is_closed_is_a_correction(office: Office) -> None:
    """It was opened before the closing, and its lines are stored behind it."""
    await office.pay()
    await office.feed(covers=True)
    await office.run()
    office.wait(1)
    opened_ms = office.world.clock.passed_ms
    office.wait(1)
    await closed(office)
    office.world.clock.passed_ms = opened_ms
    await office.feed(PAID, FOREIGN, covers=False, name="slow.csv")
    office.wait(2)
    later = await office.run(NEXT)
    assert told(later) == [("320025000001", BooksVerdict.AGREED), ("320025000002", BooksVerdict.ONLY_THEIRS)]
    assert later.taken_back == (), "nothing was agreed on at the closing"


async def test_a_day_that_still_says_the_same_is_closed_though_something_was_read(office: Office) -> None:
    """A file that is fed again says nothing new."""
    await office.pay()
    await office.feed(PAID)
    await office.run()
    office.wait(1)
    await office.feed(PAID, covers=False, name="again.csv")
    report = await closed(office)
    assert (report.count(BooksVerdict.AGREED), report.listed) == (1, ())


async def test_a_statement_that_is_read_during_the_closing_makes_it_compare_again(office: Office) -> None:
    """Whoever comes first: the line is in the closed day, where the closing tells of it, or in the next one."""
    await office.pay()
    await office.feed(PAID)
    await office.run()
    office.wait(1)
    report, _ = await asyncio.gather(
        closed(office), office.feed(FOREIGN, covers=False, name="b.csv"), return_exceptions=True
    )
    if isinstance(report, Refusal):
        report = await closed(office)
    assert isinstance(report, DayReport)
    office.wait(1)
    found = [*told(report), *told(await office.run(NEXT))]
    assert found == [("320025000002", BooksVerdict.ONLY_THEIRS)], "once, and neither lost nor twice"


@pytest.mark.parametrize(
    ("change", "why"),
    [("compared", "was compared anew"), ("difference", "were closed or found meanwhile"), ("closed", "was closed by")],
)
async def test_a_day_that_changes_while_days_before_it_are_closed_stays_open(
    office: Office, change: str, why: str
) -> None:
    """Whoever closes several days was shown each of them at the beginning; a day's comparison takes its time."""
    await office.feed(FOREIGN.replace("11-15", "11-16"), covers=False)
    office.wait(2)
    for day in (DAY, NEXT):
        await office.run(day)
    closing = close_days(office.relay, office.scope, (DAY, NEXT), ANN, "month end")
    assert (await anext(closing))[0] == DAY
    office.world.clock.passed_ms += 1_000
    if change == "compared":
        await office.feed(
            "320029999999,late,5000000.00,LKR,RECEIVED,2023-11-16 03:43:30", covers=False, name="late.csv"
        )
        await office.run(NEXT)
    elif change == "difference":
        [found] = await office.relay.find(ReconciliationStores).differences.of_day(office.scope.merchant, NEXT)
        await close_difference(office.relay, office.scope, found.id, Actor("bob"), "sold at the counter")
    else:
        await close_day(office.relay, office.scope, NEXT, Actor("bob"), "of my own")
    with pytest.raises(Refusal, match=f"{NEXT} {why}|of {NEXT} {why}"):
        await anext(closing)
    last = await office.relay.find(ReconciliationStores).differences.last_closed(office.scope.merchant)
    assert last is not None
    assert last.day == (NEXT if change == "closed" else DAY)


async def test_two_who_close_at_once_close_once(office: Office) -> None:
    """The other one is told by whom; the history has one line."""
    await office.run()
    office.wait(1)
    done = await asyncio.gather(closed(office), closed(office), return_exceptions=True)
    assert len([each for each in done if isinstance(each, DayReport)]) == 1
    [refused] = [each for each in done if isinstance(each, Refusal)]
    assert "was closed by ann" in refused.msg
    assert len(await office.relay.find(ReconciliationStores).differences.acts.before(None, 10)) == 1


async def test_a_closing_gives_up_where_statements_are_read_without_end(office: Office) -> None:
    """It says why, and nothing is closed."""
    await office.run()
    office.wait(1)
    lines, is_over = office.relay.find(ReconciliationStores).lines, asyncio.Event()

    async def read_on() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            await lines.put_search(office.scope.merchant, "A-1", number)

    reading = asyncio.create_task(read_on())
    with pytest.raises(Refusal, match="statements are being read"):
        await closed(office)
    is_over.set()
    await reading
    assert await office.relay.find(ReconciliationStores).differences.last_closed(office.scope.merchant) is None
