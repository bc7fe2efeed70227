"""Writes compared days as a journal for the plain-text accounting tool Beancount, and as a table.

Rules:

1. Only what both sides agree on is booked. Everything else is a note beside it, with its sum, and no transaction. So
   what stays on the clearing account is what the notes explain.
2. A day is booked as its report says. A closed day has one report for good, and so it is booked alike in every journal.
3. A correction is booked on its day: what was agreed before is taken back, and what both sides agree on now is booked.
4. A fee that no statement names is not booked, and a note says of how many payments that is so.
5. What took no money is in no transaction. What is agreed on by the state of a payment alone is booked with our amount,
   and a note says so.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Final

import msgspec

from payrelay.core.money import decimal_text, is_currency
from payrelay.reconciliation.rules.days import DayReport, Sum
from payrelay.reconciliation.rules.entries import Movement
from payrelay.reconciliation.rules.verdicts import BooksFinding, BooksVerdict

COLUMNS: Final = (
    "day",
    "closed",
    "part",
    "currency",
    "movement",
    "verdict",
    "count",
    "ours",
    "theirs",
    "fees",
    "booked",
    "without_amount",
    "without_fee",
    "took_no_money",
    "by_state",
)
"""The columns of the table."""
NOT_COMPARED: Final = "not_compared"
"""Stands for the verdict on a day that was never compared."""

_ODD: Final = re.compile(r"[^A-Za-z0-9-]+")
_CONTRA: Final = {
    Movement.PAYMENT: "Income:Payments",
    Movement.REFUND: "Income:Refunds",
    Movement.CHARGEBACK: "Expenses:Chargebacks",
    Movement.PAYOUT: "Assets:Bank",
}
_CLEARING: Final = "Assets:Clearing"
_FEES: Final = "Expenses:Fees"


class JournalDay(msgspec.Struct, frozen=True, kw_only=True):
    """One day for the journal; ``report`` is None where it was never compared."""

    day: date
    report: DayReport | None
    is_closed: bool


class BooksJournal:
    """Writes a journal of days, which must be given in their order.

    One that ``continues`` an earlier journal opens no account, and asserts no balance, because it knows neither.
    """

    def __init__(self, account: str, *, continues: bool = False) -> None:
        self._account = account
        named = _ODD.sub("-", account).strip("-") or "Account"
        self._name = named[0].upper() + named[1:]
        self._continues = continues
        self._opened: set[str] = set()
        self._clearing: defaultdict[str, int] = defaultdict(int)
        self._last: date | None = None

    def begin(self) -> Iterator[str]:
        """Gives the first lines."""
        yield f"; {_plain(self._account)}: compared days, for Beancount. What both sides agree on is booked."

    def day(self, each: JournalDay) -> Iterator[str]:
        """Gives the lines of a day."""
        self._last = each.day
        yield ""
        if each.report is None:
            yield f"; {each.day} was not compared; nothing of it is known, and nothing is booked."
            return
        report = each.report
        state = "closed" if each.is_closed else "not closed yet, and may change"
        yield f"; {report.day} in {report.timezone}: {state}."
        yield from (f"; Rests on: {_plain(said)}" for said in report.rests_on)
        yield from (f"; Not known: {unseen.movement}: {_plain(unseen.why)}" for unseen in report.unseen)
        flag = "*" if each.is_closed else "!"
        yield from self._booked(report.day, report.sums, (flag, "", 1))
        yield from self._booked(report.day, report.taken_back, (flag, "correction, taken back: ", -1))
        yield from self._booked(report.day, report.corrections, (flag, "correction: ", 1))
        yield from (_listed(found) for found in report.listed if found.is_difference)
        if report.left_out:
            yield f"; {report.left_out} more are not listed"

    def end(self) -> Iterator[str]:
        """Gives the last lines: what the clearing accounts must come to."""
        if self._last is None or self._continues:
            return
        yield ""
        for currency, minor in sorted(self._clearing.items()):
            account = self._named(_CLEARING, currency)
            yield f"{self._last + timedelta(days=1)} balance {account} {decimal_text(minor)} {currency}"

    def _booked(self, day: date, sums: Iterable[Sum], how: tuple[str, str, int]) -> Iterator[str]:
        flag, words, sign = how
        for each in sums:
            if each.verdict is not BooksVerdict.AGREED:
                yield _unbooked(each, words)
            elif is_currency(each.currency):
                yield from self._transaction(day, each, f'{flag} "{words}', sign)
                yield from _lacking(each)
            else:
                yield f"; not booked: {words}{each.count} {each.movement}s whose currency is not known"

    def _transaction(self, day: date, each: Sum, begins: str, sign: int) -> Iterator[str]:
        """Books what both sides agree on: fees of payments stay with the gateway, those of what goes back return."""
        amount, fee = sign * each.booked_minor, sign * each.fee_minor
        moved = each.count - each.moved_nothing
        if not moved and not fee:
            return
        contra, currency = _CONTRA[each.movement], each.currency
        is_paid = each.movement is Movement.PAYMENT
        fee = 0 if each.movement is Movement.PAYOUT else fee if is_paid else -fee
        postings = {contra: -amount if is_paid else amount, _FEES: fee}
        postings[_CLEARING] = -sum(postings.values())
        self._clearing[currency] += postings[_CLEARING]
        used = [head for head in postings if postings[head] or head == _CLEARING]
        yield from self._open(day, currency, used)
        yield f'{day} {begins}{moved} {each.movement}s"'
        for head in used:
            yield f"  {self._named(head, currency)}  {decimal_text(postings[head])} {currency}"

    def _open(self, day: date, currency: str, heads: Iterable[str]) -> Iterator[str]:
        """Opens accounts, each before its first use."""
        for head in heads:
            account = self._named(head, currency)
            if account not in self._opened and not self._continues:
                self._opened.add(account)
                yield f"{day} open {account} {currency}"

    def _named(self, head: str, currency: str) -> str:
        return f"{head}:{self._name}:{currency}"


def table_rows(each: JournalDay) -> Iterator[tuple[str, ...]]:
    """Gives the rows of a day in the table: one for each sum, or one that says that the day was not compared."""
    begins = (each.day.isoformat(), "yes" if each.is_closed else "no")
    if each.report is None:
        yield (*begins, "day", "", "", NOT_COMPARED, *[""] * 9)
        return
    report = each.report
    for part, sums in (("day", report.sums), ("correction", report.corrections), ("taken_back", report.taken_back)):
        yield from ((*begins, part, *_fields(one)) for one in sums)


def _fields(one: Sum) -> tuple[str, ...]:
    money = (one.ours_minor, one.theirs_minor, one.fee_minor, one.booked_minor)
    return (
        one.currency,
        one.movement,
        one.verdict,
        str(one.count),
        *map(decimal_text, money),
        str(one.unknown),
        str(one.without_fee),
        str(one.moved_nothing),
        str(one.by_state),
    )


def _unbooked(each: Sum, words: str) -> str:
    ours, theirs = decimal_text(each.ours_minor), decimal_text(each.theirs_minor)
    unknown = f", {each.unknown} of them without a known amount" if each.unknown else ""
    verdict = each.verdict.replace("_", " ")
    return (
        f"; not booked: {words}{each.count} {each.movement}s, {verdict}: ours {ours}, theirs {theirs}"
        f" {_plain(each.currency)}{unknown}"
    )


def _lacking(each: Sum) -> Iterator[str]:
    if each.without_fee:
        yield f"; not booked: the fees of {each.without_fee} {each.movement}s, which no statement names"
    if each.unknown:
        yield f"; not booked: {each.unknown} {each.movement}s, whose amount is not known"
    yield from (f"; {each.movement}s, agreed: {said}" for said in each.bases)


def _listed(each: BooksFinding) -> str:
    return f"; {each.id}: {each.movement} {_plain(each.identity)} of {each.day}: {_plain(each.why)}"


def _plain(text: str) -> str:
    """Keeps what others wrote within its comment."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
