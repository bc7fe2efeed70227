"""A day from the import of its files to its closing, over a store: what is found, what stays, what comes later."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Final

import msgspec
import pytest
from tests.digests import digests_of
from tests.flows.inbox_world import PAYMENT_ID, payment_of
from tests.flows.world import CHARGE, START_MS, World, asked, outcome_of
from tests.relays import relay_over
from tests.samples import IMPORTED

from payrelay.core.calls import Refund
from payrelay.core.operators.roles import Act
from payrelay.core.orders.received_again import SECOND_LOOK_MS
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.payment import PaymentStatus
from payrelay.errors import Refusal
from payrelay.flows.operators.parts import Actor
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund
from payrelay.reconciliation.flows.close import close_day, close_difference
from payrelay.reconciliation.flows.export import journal_days
from payrelay.reconciliation.flows.import_statement import (
    Completeness,
    FileToImport,
    ImportedFile,
    import_file,
    say_complete,
)
from payrelay.reconciliation.flows.read import open_differences, show_day
from payrelay.reconciliation.flows.run_day import run_day
from payrelay.reconciliation.flows.scope import BooksScope, scope_of
from payrelay.reconciliation.rules.days import DayReport
from payrelay.reconciliation.rules.entries import EntryStanding, LineState, Movement
from payrelay.reconciliation.rules.files.profiles import BUILT_IN, Profile
from payrelay.reconciliation.rules.verdicts import BooksVerdict
from payrelay.reconciliation.store.books import Books
from payrelay.reconciliation.store.stores import ReconciliationStores

DAY_MS: Final = 86_400_000
DAY: Final = date(2023, 11, 15)
"""The day of START_MS in Colombo."""
ANN: Final = Actor("ann")
HEADER: Final = "payment_id,order_id,amount,currency,status,date"
PAID: Final = "320025000001,A-1,1000.00,LKR,RECEIVED,2023-11-15 03:43:30"
FOREIGN: Final = "320025000002,B-1,7.00,LKR,RECEIVED,2023-11-15 03:43:30"


def file_of(*rows: str, name: str = "a.csv") -> FileToImport:
    """Makes a file of payments."""
    text = [f"{each}\n" for each in (HEADER, *rows)]

    def opened() -> Iterable[str]:
        return iter(text)

    return FileToImport(name=name, digest=str(hash(tuple(text))), profile=BUILT_IN["payments"], opened=opened)


class Office:
    """Somebody who reconciles the books of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.relay = relay_over(
            world.database,
            world.accounts,
            clock=world.clock,
            log=world.relay.log,
            retention=world.relay.settings.retention,
        )
        self.scope: BooksScope = scope_of(world.relay, None)

    async def pay(self, payment_id: str | None = "320025000001") -> None:
        """Makes the charge, which succeeds as this payment; with None it is declined."""
        kind = OutcomeKind.DECLINED if payment_id is None else OutcomeKind.SUCCEEDED
        self.world.account.script.append(outcome_of(kind, payment_id=payment_id))
        await charge(self.relay, asked(f"k-{payment_id}"), CHARGE)

    async def feed(self, *rows: str, covers: bool = True, name: str = "a.csv") -> ImportedFile:
        """Feeds a file, complete for the day unless told otherwise, which is said once the day is over."""
        imported = await import_file(self.relay, self.scope, file_of(*rows, name=name), ANN)
        if covers:
            await self.vouch([imported], Completeness(first=DAY, last=DAY))
        return imported

    async def vouch(self, imported: list[ImportedFile], said: Completeness) -> None:
        """Says what files have everything of, on the day behind; the clock is put back."""
        clock, passed_ms = self.world.clock, self.world.clock.passed_ms
        clock.passed_ms = max(passed_ms, DAY_MS)
        try:
            await say_complete(self.relay, self.scope, imported, said, ANN)
        finally:
            clock.passed_ms = passed_ms

    async def read(self, profile: Profile, *rows: str) -> None:
        """Feeds a file with its header."""
        text = [f"{each}\n" for each in rows]
        file = FileToImport(name="b.csv", digest=str(hash(rows)), profile=profile, opened=lambda: iter(text))
        await import_file(self.relay, self.scope, file, ANN)

    async def run(self, day: date = DAY) -> DayReport:
        """Compares a day."""
        return await run_day(self.relay, self.scope, day)

    def wait(self, days: int) -> None:
        """Lets days pass."""
        self.world.clock.passed_ms += days * DAY_MS


@pytest.fixture
def office(world: World) -> Office:
    """Gives an office with one account."""
    return Office(world)


OF_DAY: Final = msgspec.structs.replace(IMPORTED, imported_at_ms=2_000_000_000_000)
"""A payment from before Payrelay: that of PAID."""


def told(report: DayReport) -> list[tuple[str, BooksVerdict]]:
    """Gives what a report lists."""
    return [(each.identity, each.verdict) for each in report.listed]


async def test_a_day_without_files_cant_be_known(office: Office) -> None:
    """A report that nothing was compared for must not look like one in which all agrees."""
    await office.pay()
    report = await office.run()
    assert told(report) == [("320025000001", BooksVerdict.UNKNOWABLE)]
    assert {each.movement for each in report.unseen} >= {"payment", "refund", "payout"}


async def test_a_file_that_has_everything_makes_the_day_agree(office: Office) -> None:
    """The report says whose word that rests on."""
    await office.pay()
    await office.feed(PAID)
    report = await office.run()
    assert told(report) == []
    [agreed] = report.sums
    assert (agreed.verdict, agreed.count) == (BooksVerdict.AGREED, 1)
    assert (agreed.ours_minor, agreed.theirs_minor) == (100_000, 100_000)
    assert report.rests_on == ("payment: ann said so; 1 lines, no sum was compared",)


async def test_a_file_is_read_once_however_often_it_is_fed(office: Office) -> None:
    """Whoever isn't sure feeds the file again; the report stays the same."""
    await office.pay()
    first = await office.feed(PAID, FOREIGN)
    report = await office.run()
    second = await office.feed(PAID, FOREIGN)
    part = await office.feed(PAID, covers=False, name="b.csv")
    assert (first.new, second.new, part.new) == (2, 0, 0)
    assert (first.was_known, second.was_known) == (False, True)
    assert await office.run() == report


async def test_what_nobody_here_made_is_found_again_until_a_person_closes_it(office: Office) -> None:
    """No difference closes by itself; the next comparison finds the same one, under the same name."""
    await office.feed(FOREIGN)
    [found] = (await office.run()).listed
    [again] = (await office.run()).listed
    assert found.id == again.id
    assert found.concern == "not_made_here"
    [stored] = await open_differences(office.relay, office.scope, limit=10)
    await close_difference(office.relay, office.scope, stored.difference.id, ANN, "sold at the counter")
    assert await open_differences(office.relay, office.scope, limit=10) == []
    await office.run()
    assert await open_differences(office.relay, office.scope, limit=10) == [], "it says the same, and stays closed"
    view = await show_day(office.relay, office.scope, DAY)
    assert view is not None
    assert [each.difference.closed_reason for each in view.differences] == ["sold at the counter"]
    [*_, act] = reversed(await office.relay.find(ReconciliationStores).differences.acts.before(None, 10))
    assert (act.act, act.name, act.reason) == (Act.CLOSE_DIFFERENCE, "ann", "sold at the counter")
    with pytest.raises(Refusal, match="was closed by ann: sold at the counter"):
        await close_difference(office.relay, office.scope, stored.difference.id, ANN, "again")


async def test_a_closed_difference_that_says_another_thing_is_open_again(office: Office) -> None:
    """What a person closed was another amount."""
    await office.feed(FOREIGN)
    [found] = (await office.run()).listed
    await close_difference(office.relay, office.scope, found.id, ANN, "sold at the counter")
    await office.feed(FOREIGN.replace("7.00", "8.00"), name="b.csv")
    await office.run()
    [stored] = await open_differences(office.relay, office.scope, limit=10)
    assert stored.difference.id == found.id


async def test_a_closed_day_stays_closed_and_what_comes_later_is_a_correction(office: Office) -> None:
    """The books of a month that was handed in don't change."""
    await office.pay()
    await office.feed(covers=True)
    assert told(await office.run()) == [("320025000001", BooksVerdict.ONLY_OURS)]
    office.wait(1)
    closed = await close_day(office.relay, office.scope, DAY, ANN, "month end")
    office.wait(1)
    await office.feed(PAID, FOREIGN, covers=False, name="late.csv")
    assert await office.run() == closed
    later = await office.run(DAY + timedelta(days=1))
    assert told(later) == [("320025000001", BooksVerdict.AGREED), ("320025000002", BooksVerdict.ONLY_THEIRS)]
    assert [(each.verdict, each.count) for each in later.corrections] == [
        (BooksVerdict.AGREED, 1),
        (BooksVerdict.ONLY_THEIRS, 1),
    ]
    assert later.sums == ()
    assert (await office.run(DAY + timedelta(days=2))).listed == (), "a correction is booked on one day"


async def test_what_a_closed_day_had_open_is_a_correction_once_it_ends(office: Office) -> None:
    """The file was complete and lacks it: had the outcome been known then, it had been a difference of that day."""
    office.world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(office.relay, asked("k-1"), CHARGE)
    [unsettled] = await office.world.operations()
    await office.feed(covers=True)
    assert (await office.run()).count(BooksVerdict.OPEN) == 1
    office.wait(1)
    await close_day(office.relay, office.scope, DAY, ANN, "month end")
    office.wait(1)
    await office.world.resolve(OutcomeKind.SUCCEEDED)
    later = await office.run(DAY + timedelta(days=1))
    [correction] = later.corrections
    assert (correction.verdict, correction.count, later.sums) == (BooksVerdict.ONLY_OURS, 1, ())
    assert [each.ours.id for each in later.listed if each.ours] == [unsettled.id]


async def test_a_correction_is_told_once_though_both_sides_came_late(office: Office) -> None:
    """It is in the history of our books and in a new line, and the money moved once."""
    office.world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(office.relay, asked("k-1"), CHARGE)
    await office.run()
    office.wait(1)
    await close_day(office.relay, office.scope, DAY, ANN, "month end")
    office.wait(1)
    await office.world.resolve(OutcomeKind.SUCCEEDED)
    await office.feed(PAID, covers=False)
    [correction] = (await office.run(DAY + timedelta(days=1))).corrections
    assert (correction.verdict, correction.count, correction.booked_minor) == (BooksVerdict.AGREED, 1, 100_000)


async def test_a_correction_says_what_it_replaces(office: Office) -> None:
    """The payment was agreed on when its day was closed; a journal that added the correction would have it twice."""
    await office.pay()
    await office.feed(PAID)
    office.wait(1)
    await office.run()
    await close_day(office.relay, office.scope, DAY, ANN, "month end")
    office.wait(1)
    await office.feed(PAID.replace("RECEIVED", "REFUNDED"), covers=False, name="late.csv")
    later = await office.run(DAY + timedelta(days=1))
    [taken_back], [correction] = later.taken_back, later.corrections
    assert (taken_back.verdict, taken_back.booked_minor) == (BooksVerdict.AGREED, 100_000)
    assert (correction.verdict, correction.booked_minor) == (BooksVerdict.DIFFERENT, 0)
    days = [
        each
        async for each in journal_days(office.relay, office.scope, DAY - timedelta(days=1), DAY + timedelta(days=1))
    ]
    assert [(each.report, each.is_closed) for each in days] == [(None, False), (days[1].report, True), (later, False)]
    with pytest.raises(Refusal, match="must be 1 to 400 days"):
        await anext(journal_days(office.relay, office.scope, DAY, DAY - timedelta(days=1)))


async def test_a_payout_that_the_bank_shows_late_is_a_correction(office: Office) -> None:
    """The bank's file of the next week explains a payout of a closed day, and the journal books it then."""
    payouts, bank = BUILT_IN["payouts"], BUILT_IN["bank"]
    await office.read(payouts, "payout_id,amount,currency,date", "P1,10.00,LKR,2023-11-15")
    assert told(await office.run()) == [("P1", BooksVerdict.UNKNOWABLE)]
    office.wait(1)
    await close_day(office.relay, office.scope, DAY, ANN, "month end")
    office.wait(1)
    head = "date,amount,currency,reference,text,payout_id"
    await office.read(bank, head, "2023-11-15,10.00,LKR,R1,payhere,P1")
    [correction] = (await office.run(DAY + timedelta(days=1))).corrections
    assert (correction.movement, correction.verdict, correction.booked_minor) == ("payout", BooksVerdict.AGREED, 1_000)
    office.wait(1)
    await close_day(office.relay, office.scope, DAY + timedelta(days=1), ANN, "month end")
    office.wait(1)
    await office.read(bank, head, "2023-11-15,9.00,LKR,R1,payhere,P1")
    later = await office.run(DAY + timedelta(days=2))
    assert [(each.movement, each.booked_minor) for each in later.taken_back] == [("payout", 1_000)]
    assert [each.verdict for each in later.corrections] == [BooksVerdict.DIFFERENT]


async def test_what_changed_is_read_in_pages_past_what_is_not_asked_for(office: Office) -> None:
    """A page of history in which nothing belongs to the closed days is not the end."""
    office.world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(office.relay, asked("k-1"), CHARGE)
    [unsettled] = await office.world.operations()
    closed_ms = office.world.clock.now_ms()
    office.wait(1)
    made_before_ms = office.world.clock.now_ms()
    for number in (2, 3):
        await charge(office.relay, asked(f"k-{number}"), World.charge_of(number))
    await office.world.resolve(OutcomeKind.SUCCEEDED, unsettled)
    books = Books(office.world.database, digests_of(office.world.database), page=1)
    changed = [each async for page in books.changed(office.scope.merchant, made_before_ms, closed_ms) for each in page]
    assert [(each.id, each.standing) for each in changed] == [(unsettled.id, EntryStanding.DONE)]


async def test_a_refund_that_failed_later_is_told_then_and_counts_as_failed(office: Office) -> None:
    """The statement of its day may have it as done. A later one takes it back, which must not be a riddle."""
    world, merchant = office.world, office.scope.merchant
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID))
    await charge(office.relay, asked("k-1"), CHARGE)
    await refund(office.relay, asked("k-2"), Refund(payment_id=PAYMENT_ID, description="late"))
    office.wait(1)
    closed_ms = world.clock.now_ms()
    for status in (PaymentStatus.REFUNDED, PaymentStatus.RECEIVED, PaymentStatus.RECEIVED):
        world.clock.passed_ms += SECOND_LOOK_MS
        shown = (payment_of(status=status),)
        await office.relay.read_cache.note_payments(merchant, shown, seen_at_ms=world.clock.now_ms())
    books = Books(world.database, digests_of(world.database), page=1)
    changed = [each async for page in books.changed(merchant, closed_ms, closed_ms) for each in page]
    known = await books.of(merchant, [PAYMENT_ID], [])

    assert [(each.movement, each.standing, each.known_at_ms) for each in changed] == [
        (Movement.REFUND, EntryStanding.FAILED, world.clock.now_ms())
    ]
    assert {each.movement: each.standing for each in known} == {
        Movement.PAYMENT: EntryStanding.DONE,
        Movement.REFUND: EntryStanding.FAILED,
    }


async def test_days_are_closed_in_their_order_and_only_once_they_are_over(office: Office) -> None:
    """A hole between closed days would take a correction that nobody sees."""
    with pytest.raises(Refusal, match="is not over"):
        await close_day(office.relay, office.scope, DAY, ANN, "early")
    office.wait(3)
    with pytest.raises(Refusal, match="was not compared yet"):
        await close_day(office.relay, office.scope, DAY, ANN, "blind")
    await office.run()
    await close_day(office.relay, office.scope, DAY, ANN, "right")
    with pytest.raises(Refusal, match="was closed by ann: right"):
        await close_day(office.relay, office.scope, DAY, ANN, "twice")
    with pytest.raises(Refusal, match="one after the other"):
        await close_day(office.relay, office.scope, DAY + timedelta(days=2), ANN, "a hole")
    with pytest.raises(Refusal, match="before the last closed day"):
        await office.run(DAY - timedelta(days=1))


async def test_money_for_what_was_declined_is_told(office: Office) -> None:
    """The client heard that nothing was charged."""
    await office.pay(None)
    await office.feed(PAID)
    [found] = (await office.run()).listed
    assert (found.verdict, found.concern) == (BooksVerdict.DIFFERENT, "taken_though_failed")


async def test_what_was_declined_on_both_sides_is_booked_with_nothing(office: Office) -> None:
    """A portal lists what failed, too: its amount was income in the journal, though no money ever moved."""
    await office.pay(None)
    await office.feed(PAID.replace("RECEIVED", "FAILED"))
    [alone] = (await office.run()).sums or [None]
    assert alone is None, "our charge has no number, and no money was taken: there is nothing to tell"
    await declined_with_a_number(office)
    await office.feed(FOREIGN.replace("RECEIVED", "FAILED"), name="b.csv")
    [agreed] = (await office.run()).sums
    assert (agreed.verdict, agreed.count, agreed.moved_nothing) == (BooksVerdict.AGREED, 1, 1)
    assert (agreed.ours_minor, agreed.theirs_minor, agreed.booked_minor) == (0, 0, 0)


async def declined_with_a_number(office: Office) -> None:
    """Makes a charge that the gateway declines as the payment of FOREIGN."""
    office.world.account.script.append(outcome_of(OutcomeKind.DECLINED, payment_id="320025000002"))
    await charge(office.relay, asked("k-declined"), msgspec.structs.replace(CHARGE, order_id="B-1", amount_minor=700))


@pytest.mark.parametrize("word", ["SETTLED", ""])
async def test_a_word_that_nobody_knows_is_told_and_named(office: Office, word: str) -> None:
    """Beside a payment of ours, a declined one, and a stranger's: none of them is agreed on, and none is left out."""
    await office.pay()
    await declined_with_a_number(office)
    rows = (PAID, FOREIGN, FOREIGN.replace("0002", "0003").replace("B-1", "C-1"))
    imported = await office.feed(*(each.replace("RECEIVED", word) for each in rows))
    assert imported.summary.unknown_words == {word: 3}
    report = await office.run()
    assert told(report) == [
        ("320025000001", BooksVerdict.DIFFERENT),
        ("320025000002", BooksVerdict.DIFFERENT),
        ("320025000003", BooksVerdict.ONLY_THEIRS),
    ]
    assert all((f'"{word}"' if word else "says no state") in each.why for each in report.listed)
    assert all(each.booked_minor == 0 for each in report.sums)


async def test_a_file_that_is_read_again_by_a_better_profile_explains_its_words(office: Office) -> None:
    """Whoever adds the word to the profile must not be left with the difference of before."""
    await office.pay()
    await office.feed(PAID.replace("RECEIVED", "Settled"))
    assert told(await office.run()) == [("320025000001", BooksVerdict.DIFFERENT)]
    better = msgspec.structs.replace(BUILT_IN["payments"], states={"settled": LineState.TAKEN})
    await office.read(better, HEADER, PAID.replace("RECEIVED", "SETTLED"))
    report = await office.run()
    assert told(report) == []
    assert [each.booked_minor for each in report.sums] == [100_000]


async def test_a_total_says_which_lines_it_was_compared_with(office: Office) -> None:
    """On these words rests that a file is complete; the history keeps them."""
    await office.pay()
    imported = await office.feed(PAID, FOREIGN.replace("RECEIVED", "FAILED"), covers=False)
    await office.vouch([imported], Completeness(first=DAY, last=DAY, total_minor=100_000))
    assert (await office.run()).rests_on == (
        "payment: ann said so; 2 lines, the sum 1000.00 agrees, of the 1 lines that took money",
    )


async def test_a_file_with_a_refused_line_is_not_complete(office: Office) -> None:
    """Its other lines are stored all the same, so that what they show is not lost."""
    imported = await import_file(office.relay, office.scope, file_of(PAID, "x,,,,,"), ANN)
    assert (imported.new, imported.summary.refused_count) == (1, 1)
    with pytest.raises(Refusal, match=r"refused lines: 1; so the files aren't complete$"):
        await office.vouch([imported], Completeness(first=DAY, last=DAY))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Completeness(first=DAY, last=DAY, total_minor=1), "the lines come to 1000.00, and 0.01 was said"),
        (Completeness(first=DAY, last=DAY, count=2), "1 lines were read, and 2 were said"),
        (Completeness(first=DAY, last=DAY - timedelta(days=1)), "the last day is before the first"),
        (Completeness(first=DAY, last=DAY + timedelta(days=500)), "more than 400 days"),
        (Completeness(first=DAY - timedelta(days=1), last=DAY - timedelta(days=1)), "lines of 2023-11-15"),
    ],
)
async def test_a_word_that_the_file_contradicts_is_not_taken(office: Office, said: Completeness, reason: str) -> None:
    """On the word that a file is complete rests that something is missing."""
    imported = await import_file(office.relay, office.scope, file_of(PAID), ANN)
    with pytest.raises(Refusal, match=reason):
        await office.vouch([imported], said)
    assert (await office.run()).unseen[0].movement == "payment"


async def test_no_file_has_everything_of_a_day_that_is_not_over(office: Office) -> None:
    """Whoever names the whole month on its tenth would have the rest of it agree with nothing."""
    imported = await office.feed(PAID, covers=False)
    with pytest.raises(Refusal, match="2023-11-15 is not over in Asia/Colombo"):
        await say_complete(office.relay, office.scope, [imported], Completeness(first=DAY, last=DAY), ANN)
    assert told(await office.run()) == [("320025000001", BooksVerdict.ONLY_THEIRS)]
    assert (await office.run()).unseen


async def test_a_day_ends_in_the_zone_of_the_books(office: Office) -> None:
    """22:13 UTC is the next day in Colombo, and the same day in Lisbon."""
    assert office.scope.zone.day(START_MS) == DAY
    await office.pay()
    assert told(await office.run()) != []
    assert told(await office.run(DAY - timedelta(days=1))) == []
    scope = msgspec.structs.replace(office.scope, zone=type(office.scope.zone)("Europe/Lisbon"))
    report = await run_day(office.relay, scope, DAY - timedelta(days=1))
    assert told(report) == [("320025000001", BooksVerdict.UNKNOWABLE)]


@pytest.mark.parametrize("state", ["RECEIVED", "REFUNDED"])
async def test_an_imported_payment_explains_its_line(office: Office, state: str) -> None:
    """Whatever became of it: the shop knows what it gave back before, and nobody here made a mistake."""
    await office.relay.money.imported_payments.take([OF_DAY], is_dry=False)
    await office.feed(PAID.replace("RECEIVED", state))

    report = await office.run()

    assert told(report) == []
    assert [(each.verdict, each.count) for each in report.sums] == [(BooksVerdict.AGREED, 1)]


async def test_no_statement_lacks_an_imported_payment(office: Office) -> None:
    """The days from before Payrelay are nobody's books."""
    await office.relay.money.imported_payments.take([OF_DAY], is_dry=False)
    await office.feed()

    assert told(await office.run()) == []


async def test_an_imported_payment_of_another_amount_differs(office: Office) -> None:
    """One of the two is wrong, and somebody must look."""
    await office.relay.money.imported_payments.take([msgspec.structs.replace(OF_DAY, amount_minor=7)], is_dry=False)
    await office.feed(PAID)

    assert told(await office.run()) == [("320025000001", BooksVerdict.DIFFERENT)]
