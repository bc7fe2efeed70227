"""The journal of compared days: Beancount reads it, its balances hold, and nothing in it is invented."""

from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from beancount.core.data import Balance, Transaction
from beancount.loader import load_string
from hypothesis import given
from tests.core.reconciliation.worlds import COMPLETE, DAY, PLANTS, ZONE, line, payment, planted, refund, worlds

from payrelay.reconciliation.rules.days import DayReport, Tally, Unseen
from payrelay.reconciliation.rules.entries import EntryStanding, LineState, Movement
from payrelay.reconciliation.rules.journal import COLUMNS, BooksJournal, JournalDay, table_rows
from payrelay.reconciliation.rules.judging import judge
from payrelay.reconciliation.rules.verdicts import Basis, BooksFinding, BooksVerdict

NEXT = DAY + timedelta(days=1)


def report_on(found: list[BooksFinding], **members: object) -> DayReport:
    """Makes the report of a day with these findings."""
    tally = Tally()
    for each in found:
        tally.add(each)
    report = DayReport(
        account="shop_lk",
        day=DAY,
        timezone=ZONE.name,
        ran_at_ms=1,
        sums=tally.sums(),
        corrections=(),
        unseen=(),
        rests_on=(),
        listed=tuple(each for each in found if each.verdict is not BooksVerdict.AGREED),
        left_out=0,
        taken_back=(),
        lines=0,
        fingerprint=tally.fingerprint,
    )
    return msgspec.structs.replace(report, **members)


def written(*days: JournalDay, continues: bool = False) -> str:
    """Writes a journal."""
    journal = BooksJournal("shop_lk", continues=continues)
    lines = [*journal.begin(), *(text for each in days for text in journal.day(each)), *journal.end()]
    return "".join(f"{text}\n" for text in lines)


def closed(report: DayReport) -> JournalDay:
    """Makes a closed day."""
    return JournalDay(day=report.day, report=report, is_closed=True)


def clearing(text: str, currency: str = "LKR") -> Decimal:
    """Lets Beancount read a journal, which must be right; gives what its clearing account comes to."""
    entries, errors, _ = load_string(text)
    assert errors == []
    account = f"Assets:Clearing:Shop-lk:{currency}"
    postings = [post for each in entries if isinstance(each, Transaction) for post in each.postings]
    amounts = (post.units for post in postings if post.account == account)
    return sum((each.number for each in amounts if each and each.number), Decimal(0))


def payout(amount_minor: int) -> BooksFinding:
    """Makes the finding on a payout that the bank has."""
    return BooksFinding(
        movement=Movement.PAYOUT,
        identity="P1",
        day=DAY,
        currency="LKR",
        verdict=BooksVerdict.AGREED,
        basis=Basis.LINE,
        why="the bank's account has it",
        ours_minor=amount_minor,
        theirs_minor=amount_minor,
    )


@given(worlds)
def test_beancount_finds_every_journal_right(names: list[str]) -> None:
    """Whatever a day has in it, transactions balance and the clearing account has what both sides agree on."""
    ours, theirs, _ = planted(names)
    found = judge(ours, theirs, COMPLETE)
    agreed = [each for each in found if each.verdict is BooksVerdict.AGREED]
    signs = {Movement.PAYMENT: 1, Movement.REFUND: -1, Movement.CHARGEBACK: -1}
    money = [each for each in agreed if not each.moved_nothing]
    amounts = [signs[each.movement] * (each.theirs_minor or each.ours_minor or 0) for each in money]
    fees = [signs[each.movement] * (each.theirs.fee_minor or 0) for each in agreed if each.theirs]
    text = written(closed(report_on(found)))
    assert clearing(text) == Decimal(sum(amounts) - sum(fees)) / 100
    assert text.count("dif_") == sum(each.is_difference for each in found)


@pytest.mark.parametrize("name", sorted(PLANTS))
def test_what_is_not_agreed_is_a_comment(name: str) -> None:
    """A sum that one side alone has would be an invention in the books."""
    ours, theirs, wanted = planted([name])
    text = written(closed(report_on(judge(ours, theirs, COMPLETE))))
    kept = sum(verdict is not BooksVerdict.AGREED for verdict, _ in wanted)
    assert text.count("; not booked: 1 ") >= min(kept, 1)
    transactions = [each for each in load_string(text)[0] if isinstance(each, Transaction)]
    assert len(transactions) <= len(wanted) - kept


def test_a_payout_of_everything_empties_the_clearing_account() -> None:
    """That is what the account is for: what stays on it has to be explained."""
    paid = judge([payment(1, amount_minor=1_000)], [line(1, amount_minor=1_000, fee_minor=33)], COMPLETE)
    text = written(closed(report_on([*paid, payout(967)])))
    assert clearing(text) == 0
    assert "  Expenses:Fees:Shop-lk:LKR  0.33 LKR" in text
    assert f"{NEXT} balance Assets:Clearing:Shop-lk:LKR 0.00 LKR" in text
    assert any(isinstance(each, Balance) for each in load_string(text)[0])


def test_a_fee_that_no_statement_names_is_said_to_be_missing() -> None:
    """A journal without it looks as if the gateway worked for nothing."""
    text = written(closed(report_on(judge([payment(1)], [line(1)], COMPLETE))))
    assert "; not booked: the fees of 1 payments, which no statement names" in text
    assert "Expenses:Fees" not in text


def test_what_took_no_money_is_in_no_transaction() -> None:
    """A portal lists failed payments too. Booked, a declined charge would be income that never came."""
    failed = judge([payment(1, standing=EntryStanding.FAILED)], [line(1, state=LineState.NOT_TAKEN)], COMPLETE)
    text = written(closed(report_on(failed)))
    assert not any(isinstance(each, Transaction) for each in load_string(text)[0])
    assert "; payments, agreed: 1 of 1 took no money" in text
    both = written(closed(report_on([*failed, *judge([payment(2)], [line(2)], COMPLETE)])))
    assert '"1 payments"' in both
    assert clearing(both) == Decimal("1000.02")
    [row] = table_rows(closed(report_on(failed)))
    told = dict(zip(COLUMNS, row, strict=True))
    assert (told["count"], told["ours"], told["theirs"], told["booked"], told["took_no_money"]) == (
        *("1", "0.00", "0.00", "0.00", "1"),
    )


def test_what_the_state_of_a_payment_proves_is_booked_and_said_to_be_so() -> None:
    """The statement names no amount for it, so ours is booked: whoever checks the journal must read that."""
    found = judge([payment(1), refund("1a", None, 1)], [line(1, state=LineState.REFUNDED)], COMPLETE)
    text = written(closed(report_on(found)))
    assert clearing(text) == 0
    assert "; refunds, agreed: 1 of 1 by the state of the payment alone: 1000.01 is our amount" in text


def test_a_refund_of_everything_is_booked_with_what_was_paid() -> None:
    """Our books name no amount for it, and the payment's line does."""
    both = [payment(1), refund("1a", None, 1)]
    found = judge(both, [line(1, state=LineState.REFUNDED)], COMPLETE)
    assert clearing(written(closed(report_on(found)))) == 0


def test_an_amount_or_a_currency_that_nobody_knows_is_said_to_be_missing() -> None:
    """Agreed is that it happened, and not what it comes to."""
    [found] = judge([payment(1)], [line(1)], COMPLETE)
    without = msgspec.structs.replace(found, ours_minor=None, theirs_minor=None)
    text = written(closed(report_on([without, msgspec.structs.replace(found, currency="???")])))
    assert "; not booked: 1 payments, whose amount is not known" in text
    assert "; not booked: 1 payments whose currency is not known" in text
    assert clearing(text) == 0


def test_a_correction_takes_back_what_was_booked_before() -> None:
    """The payment was booked without its fee; now it is booked once, with it."""
    before = judge([payment(1, amount_minor=1_000)], [line(1, amount_minor=1_000)], COMPLETE)
    now = judge([payment(1, amount_minor=1_000)], [line(1, amount_minor=1_000, fee_minor=40)], COMPLETE)
    later = msgspec.structs.replace(
        report_on([]), day=NEXT, corrections=report_on(now).sums, taken_back=report_on(before).sums
    )
    text = written(closed(report_on(before)), closed(later))
    assert clearing(text) == Decimal("9.60")
    assert '* "correction, taken back: 1 payments"' in text


def test_an_open_day_is_marked_and_one_that_was_not_compared_is_named() -> None:
    """Whoever hands a journal in must see which days may still change."""
    report = report_on(
        judge([payment(1)], [line(1)], COMPLETE),
        unseen=(Unseen(Movement.BANK, "nobody\nread it"),),
        rests_on=("ann said so",),
        left_out=4,
    )
    text = written(
        JournalDay(day=DAY, report=report, is_closed=False), JournalDay(day=NEXT, report=None, is_closed=False)
    )
    assert f'{DAY} ! "1 payments"' in text
    assert f"; {DAY} in Asia/Colombo: not closed yet, and may change." in text
    assert f"; {NEXT} was not compared" in text
    assert "; Not known: bank: nobody?read it" in text
    assert "; Rests on: ann said so" in text
    assert "; 4 more are not listed" in text
    assert clearing(text) == Decimal("1000.01")


def test_a_journal_that_goes_on_from_another_fits_behind_it() -> None:
    """A ledger grows by a month; an account that is opened twice is an error there."""
    found = judge([payment(1)], [line(1)], COMPLETE)
    first = closed(report_on(found))
    second = closed(msgspec.structs.replace(report_on(found), day=NEXT))
    assert clearing(written(first) + written(second, continues=True)) == Decimal("2000.02")
    assert load_string(written(first) + written(second))[1] != []


def test_a_table_has_every_sum() -> None:
    """A spreadsheet can do with it what the journal doesn't."""
    found = judge([payment(1), payment(2)], [line(1, fee_minor=3)], COMPLETE)
    rows = [
        dict(zip(COLUMNS, each, strict=True))
        for day in (closed(report_on(found)), JournalDay(day=NEXT, report=None, is_closed=False))
        for each in table_rows(day)
    ]
    assert [(each["day"], each["closed"], each["verdict"], each["booked"]) for each in rows] == [
        (str(DAY), "yes", "agreed", "1000.01"),
        (str(DAY), "yes", "only_ours", "0.00"),
        (str(NEXT), "no", "not_compared", ""),
    ]
    assert (rows[0]["fees"], rows[0]["without_fee"]) == ("0.03", "0")
