"""Days of the books: what a day comes to, and on which day something is booked that comes after a day was closed.

Rules:

1. A closed day stays as it was closed. What comes later is a correction in the first day that was open then. What is
   later is decided by what the closing had read, and by no clock.
2. Days are closed in their order. So the open days are those after the last closed one.
3. Sums are of one currency and one movement; nothing is converted or set off.
4. What took no money is counted, and is in no sum of the side that says so.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Final

import msgspec

from payrelay.core.money import decimal_text
from payrelay.errors import Code, Refusal
from payrelay.reconciliation.rules.entries import Coverage, Movement
from payrelay.reconciliation.rules.verdicts import BooksFinding, BooksVerdict

NEEDS_FILES: Final = (Movement.PAYMENT, Movement.REFUND, Movement.CHARGEBACK, Movement.PAYOUT, Movement.BANK)
"""Of these only files show what the other side has and we don't."""

LISTED_MAX: Final = 1_000
"""Findings in one report; more are counted, and the differences among them are stored anyway."""


_FINGERPRINTS: Final = 2**256

CLOCKS_MS: Final = 60_000
"""How far the clocks of processes may be apart, with the time that storing takes."""


def month_name(day: date) -> str:
    """Gives the month of a day, such as ``2026-11``."""
    return day.isoformat()[:7]


class Closure(msgspec.Struct, frozen=True):
    """That a day was closed, when, and when the comparison began that it was closed with."""

    day: date
    closed_at_ms: int
    compared_at_ms: int

    @property
    def knew_to_ms(self) -> int:
        """Up to when the closing knew what happened in our books; it was refused where anything of it was newer."""
        return self.compared_at_ms - CLOCKS_MS


def differences_changed(day: date) -> Refusal:
    """Makes the refusal to close a day of which another number of differences is open than was shown."""
    return Refusal(Code.CONFLICT, f"differences of {day} were closed or found meanwhile; look again")


class SeenDay(msgspec.Struct, frozen=True):
    """A day as a person was shown it; it is closed only where all of this is still so."""

    ran_at_ms: int
    open_differences: int
    is_closed: bool


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """How many findings of one verdict there are, and the money that moved by each side's word, in hundredths.

    Attributes:
        unknown: how many have no amount on our side and none on theirs, and so are in no sum.
        booked_minor: what both sides agree on.
        without_fee: how many of it are payments whose statement doesn't say their fee.
        moved_nothing: how many are agreed on, and took no money, or gave it back by themselves.
        by_state: how many are agreed on by the state of their payment alone: no line has their amount.
    """

    currency: str
    movement: Movement
    verdict: BooksVerdict
    count: int
    ours_minor: int
    theirs_minor: int
    fee_minor: int
    unknown: int
    booked_minor: int = 0
    without_fee: int = 0
    moved_nothing: int = 0
    by_state: int = 0

    @property
    def bases(self) -> tuple[str, ...]:
        """Says, in words, of what is agreed on that the sums of both sides can't show."""
        said = []
        if self.by_state:
            amount = decimal_text(self.booked_minor - self.theirs_minor)
            said.append(
                f"{self.by_state} of {self.count} by the state of the payment alone: {amount} is our amount, and no"
                " line of a statement has it"
            )
        if self.moved_nothing:
            said.append(
                f"{self.moved_nothing} of {self.count} took no money, or are the fee of an approval that was given"
                " back: no sum has an amount of them"
            )
        return tuple(said)


_FIGURES: Final = tuple(each.name for each in msgspec.structs.fields(Sum) if each.type is int)


class Unseen(msgspec.Struct, frozen=True):
    """What can't be known of a day: what only the other side has of a movement, as no complete file covers the day."""

    movement: Movement
    why: str


def booked_on(day: date, last: Closure | None) -> date:
    """Gives the day on which something is booked that belongs to a day, and is stored behind the last closing."""
    return day if last is None or day > last.day else last.day + timedelta(days=1)


def unseen(day: date, coverage: Coverage) -> tuple[Unseen, ...]:
    """Tells of which movements what only the other side has can't be known on a day."""
    why = "only theirs can't be known: no file was named as complete for the day"
    return tuple(Unseen(movement, why) for movement in NEEDS_FILES if not coverage.has(movement, day, day))


class Tally:
    """Adds findings up, in any order; holds a few numbers, however many findings it is given."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Movement, BooksVerdict], list[int]] = defaultdict(lambda: [0] * 9)
        self._fingerprint = 0

    def add(self, finding: BooksFinding) -> None:
        """Adds one finding."""
        told = f"{finding.id}/{finding.day}/{finding.content}".encode()
        self._fingerprint = (self._fingerprint + int.from_bytes(hashlib.sha256(told).digest())) % _FINGERPRINTS
        counts = self._counts[finding.currency, finding.movement, finding.verdict]
        counts[0] += 1
        counts[1] += finding.ours_moved_minor or 0
        counts[2] += finding.theirs_moved_minor or 0
        counts[3] += 0 if finding.theirs is None else finding.theirs.fee_minor or 0
        counts[4] += finding.ours_minor is None and finding.theirs_minor is None
        if finding.verdict is BooksVerdict.AGREED:
            is_by_state = finding.theirs_minor is None and finding.ours_minor is not None
            counts[5] += (finding.ours_moved_minor if is_by_state else finding.theirs_moved_minor) or 0
            counts[6] += _lacks_fee(finding)
            counts[7] += finding.moved_nothing
            counts[8] += is_by_state

    @property
    def fingerprint(self) -> str:
        """A digest over all findings, in whatever order they came: equal sums may be of other things."""
        return f"{self._fingerprint:064x}"

    def sums(self) -> tuple[Sum, ...]:
        """Gives the sums by currency, movement and verdict."""
        return tuple(
            Sum(
                currency=currency,
                movement=movement,
                verdict=verdict,
                count=count,
                ours_minor=ours,
                theirs_minor=theirs,
                fee_minor=fee,
                unknown=unknown,
                booked_minor=booked,
                without_fee=without_fee,
                moved_nothing=moved_nothing,
                by_state=by_state,
            )
            for (currency, movement, verdict), (
                count,
                ours,
                theirs,
                fee,
                unknown,
                booked,
                without_fee,
                moved_nothing,
                by_state,
            ) in sorted(self._counts.items())
        )


def added(sums: Iterable[Sum]) -> tuple[Sum, ...]:
    """Adds up the sums of several days, by currency, movement and verdict."""
    found: dict[tuple[str, Movement, BooksVerdict], Sum] = {}
    for each in sums:
        key = (each.currency, each.movement, each.verdict)
        other = found.get(key)
        figures = {} if other is None else {name: getattr(each, name) + getattr(other, name) for name in _FIGURES}
        found[key] = msgspec.structs.replace(each, **figures)
    return tuple(found[key] for key in sorted(found))


def _lacks_fee(finding: BooksFinding) -> bool:
    is_payment = finding.movement is Movement.PAYMENT
    return is_payment and not finding.moved_nothing and (finding.theirs is None or finding.theirs.fee_minor is None)


class DayReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a day came to.

    Attributes:
        account, day, timezone: of which account, which day, and the zone in which it ends.
        ran_at_ms: when it was compared.
        sums: of the day, by currency, movement and verdict.
        corrections: sums of what belongs to days that were closed before it became known.
        taken_back: sums of what those corrections replace: what both sides agreed on when the last day was closed.
        unseen: what can't be known.
        rests_on: whose word, and what searches, the report rests on; a sentence each.
        listed: the findings that aren't agreed, and all corrections, at most LISTED_MAX.
        left_out: how many more there are.
        lines: how many lines of statements are booked on the day.
        fingerprint: a digest over all findings, also those that aren't listed.
    """

    account: str
    day: date
    timezone: str
    ran_at_ms: int
    sums: tuple[Sum, ...]
    corrections: tuple[Sum, ...]
    unseen: tuple[Unseen, ...]
    rests_on: tuple[str, ...]
    listed: tuple[BooksFinding, ...]
    left_out: int
    taken_back: tuple[Sum, ...]
    lines: int
    fingerprint: str

    def count(self, verdict: BooksVerdict) -> int:
        """Counts the findings of a verdict, corrections included."""
        return sum(each.count for each in (*self.sums, *self.corrections) if each.verdict is verdict)
