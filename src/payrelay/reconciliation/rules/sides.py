"""The two sides of a comparison, and how a finding is made of them.

All lines that tell of the same thing are one, however many files have it, and in whatever order they came.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from typing import Final

import msgspec

from payrelay.core.text.table_text import folded
from payrelay.reconciliation.rules.entries import (
    LATER_STATES,
    MONEY_TAKEN,
    TOLERANCE_MS,
    UNPAID,
    BooksEntry,
    Coverage,
    EntryStanding,
    LineState,
    Movement,
    Source,
    StatementLine,
    Zone,
)
from payrelay.reconciliation.rules.verdicts import Aspect, Basis, BooksFinding, BooksVerdict, Concern

NO_CURRENCY: Final = "???"
"""Where neither side says a currency."""
_MADE_BY: Final = ("op_", "chk_", "sub/", "import/")
"""Of several entries about one payment, the first that has an amount holds, in this order."""


class MergedLine(msgspec.Struct, frozen=True):
    """All lines of one identity as one.

    Attributes:
        line: what they say together.
        is_contradicted: two of them say different things.
        unknown: the line whose state isn't known; None where each state is.
    """

    line: StatementLine
    is_contradicted: bool
    unknown: StatementLine | None = None

    @property
    def is_told_alone(self) -> bool:
        """True where it is told without an entry of ours: it has happened, or nobody knows whether it has."""
        return self.unknown is not None or not self.line.moved_nothing


def merged(lines: Iterable[StatementLine]) -> list[MergedLine]:
    """Merges the lines that have one identity, which are of one movement; gives them by their identities.

    The latest state that is known holds, and what a file says holds over what a search shows. A word that one profile
    doesn't know is known where another line has it with a state: the file was read again, by a better profile.
    """
    same: dict[str, list[StatementLine]] = defaultdict(list)
    for each in lines:
        same[each.identity].append(each)
    return [_one_of(same[identity]) for identity in sorted(same)]


def _one_of(lines: list[StatementLine]) -> MergedLine:
    unknown = _unknown(lines)
    if len(lines) == 1:
        return MergedLine(lines[0], is_contradicted=False, unknown=unknown)
    best = max(lines, key=_weight)
    state = max((each.state for each in lines), key=LATER_STATES.index)
    return MergedLine(
        msgspec.structs.replace(
            best,
            state=state,
            order_id=next((each.order_id for each in sorted(lines, key=_weight) if each.order_id is not None), None),
            word=min((each.word for each in lines if each.state is state and each.word is not None), default=None),
            known_at_ms=min(each.known_at_ms for each in lines if each.state is state),
        ),
        any(map(_has_several, zip(*map(_said, lines), strict=True))),
        unknown,
    )


def _unknown(lines: list[StatementLine]) -> StatementLine | None:
    unknown = [each for each in lines if each.state is LineState.OTHER]
    if not unknown:
        return None
    known = {folded(each.word) for each in lines if each.state is not LineState.OTHER and each.word is not None}
    left = [each for each in unknown if each.word is None or folded(each.word) not in known]
    return max(left, key=_weight, default=None)


def _weight(line: StatementLine) -> tuple[bool, int, bool, str]:
    content = msgspec.structs.replace(line, known_at_ms=0)
    return line.source is Source.FILE, LATER_STATES.index(line.state), line.fee_minor is not None, repr(content)


def _said(line: StatementLine) -> tuple[object, ...]:
    """Gives what other lines of the same may not contradict; the day of a search is only near the statement's."""
    day = line.day if line.source is Source.FILE else None
    return line.currency, line.amount_minor, line.order_id, line.payment_id, line.fee_minor, line.net_minor, day


def _has_several(values: tuple[object, ...]) -> bool:
    return len({each for each in values if each is not None}) > 1


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison knows beside the two sides.

    Attributes:
        coverage: what would have been seen if it were there.
        zone: where a day ends.
        approval_fees: the currencies and amounts that the gateway may take for an approval, and gives back by itself.
    """

    coverage: Coverage
    zone: Zone
    approval_fees: frozenset[tuple[str, int]] = frozenset()

    def is_approval_fee(self, line: StatementLine) -> bool:
        """Tells whether a line has such an amount."""
        return (line.currency, line.amount_minor) in self.approval_fees


class Sides(msgspec.Struct, frozen=True, kw_only=True):
    """The entries and the merged lines of some orders and payments, by movement."""

    ours: dict[Movement, list[BooksEntry]]
    theirs: dict[Movement, list[MergedLine]]
    known: Known

    @classmethod
    def of(cls, entries: Iterable[BooksEntry], lines: Iterable[StatementLine], known: Known) -> "Sides":
        """Sorts entries and lines, each known once, however often it is given; each payment of ours is one entry."""
        ours: dict[Movement, dict[str, BooksEntry]] = defaultdict(dict)
        theirs: dict[Movement, list[StatementLine]] = defaultdict(list)
        for entry in _each_payment_once(entries):
            ours[entry.movement][entry.id] = entry
        for line in lines:
            theirs[line.movement].append(line)
        return cls(
            ours={movement: sorted(each.values(), key=_order) for movement, each in ours.items()},
            theirs={movement: merged(each) for movement, each in theirs.items()},
            known=known,
        )

    def entries(self, movement: Movement) -> list[BooksEntry]:
        """Gives our entries of a movement, the oldest first."""
        return self.ours.get(movement, [])

    def lines(self, movement: Movement) -> list[MergedLine]:
        """Gives the lines of a movement, by their identities."""
        return self.theirs.get(movement, [])

    def has_entry(self, movement: Movement, payment_id: str | None) -> bool:
        """Tells whether our books have a movement of a payment that took effect, or still may."""
        return any(each.payment_id == payment_id and each.standing not in UNPAID for each in self.entries(movement))

    def has_line(self, movement: Movement, payment_id: str | None) -> bool:
        """Tells whether a statement has a movement of a payment that has happened."""
        return any(each.line.payment_id == payment_id and each.line.has_happened for each in self.lines(movement))

    def is_of_approval(self, line: StatementLine) -> bool:
        """Tells whether a line is of the fee of an approval.

        It is of the approval's order, of an amount that is such a fee, and of no payment that our books have.
        """
        if self.has_entry(Movement.PAYMENT, line.payment_id):
            return False
        paid = next((each.line for each in self.lines(Movement.PAYMENT) if each.line.identity == line.payment_id), line)
        order_id = line.order_id or paid.order_id
        return self.known.is_approval_fee(line) and any(
            each.is_approval and each.order_id == order_id and each.currency == line.currency
            for each in self.entries(Movement.PAYMENT)
        )


def _order(entry: BooksEntry) -> tuple[int, str]:
    return entry.from_ms, entry.id


def _each_payment_once(entries: Iterable[BooksEntry]) -> list[BooksEntry]:
    """Leaves one entry for each payment that an operation, a page and an installment may all have."""
    found: dict[tuple[str, str], BooksEntry] = {}
    for entry in entries:
        is_of_payment = entry.movement is Movement.PAYMENT and entry.payment_id is not None
        key = ("payment", entry.payment_id or "") if is_of_payment else (entry.movement, entry.id)
        other = found.get(key)
        if other is None or _rank(entry) < _rank(other):
            found[key] = entry
    return list(found.values())


def _rank(entry: BooksEntry) -> tuple[bool, bool, int, str]:
    made_by = next((number for number, prefix in enumerate(_MADE_BY) if entry.id.startswith(prefix)), len(_MADE_BY))
    return entry.standing is not EntryStanding.DONE, entry.amount_minor is None, made_by, entry.id


def finding(
    verdict: BooksVerdict,
    why: str,
    basis: Basis,
    *,
    zone: Zone,
    ours: BooksEntry | None = None,
    theirs: StatementLine | None = None,
    aspects: tuple[Aspect, ...] = (),
) -> BooksFinding:
    """Makes the finding on an entry, a line, or both.

    The day is the line's where it fits the entry, and the entry's where it doesn't.
    """
    one = ours or theirs
    assert one is not None  # noqa: S101  a finding is on something
    currency = (ours.currency if ours is not None else None) or (theirs.currency if theirs is not None else None)
    return BooksFinding(
        movement=one.movement,
        identity=_identity(ours, theirs),
        day=_day(ours, theirs, zone),
        currency=currency or NO_CURRENCY,
        verdict=verdict,
        basis=basis,
        why=why,
        aspects=aspects,
        ours=ours,
        theirs=theirs,
        ours_minor=None if ours is None else ours.amount_minor,
        theirs_minor=None if theirs is None else theirs.amount_minor,
        concern=_concern(verdict, ours, theirs),
    )


def with_unknown(found: BooksFinding, line: StatementLine | None) -> BooksFinding:
    """Adds to a finding the word of the line whose state isn't known; None where each is."""
    return found if line is None else msgspec.structs.replace(found, unknown_word=line.word or "")


def only_theirs(found: MergedLine, why: str, zone: Zone) -> BooksFinding:
    """Makes the finding on a line that our books have nothing for."""
    alone = finding(
        BooksVerdict.ONLY_THEIRS,
        why if found.unknown is None else f"{why}; {unknown_state(found.unknown)}",
        basis_of(found.line),
        zone=zone,
        theirs=found.line,
        aspects=(Aspect.STATEMENTS,) if found.is_contradicted else (),
    )
    return with_unknown(alone, found.unknown)


def unknown_state(line: StatementLine) -> str:
    """Names a state that isn't known."""
    if line.source is Source.SEARCH:
        return "the gateway's record has it in a state that isn't known here"
    if not line.word:
        return "the statement says no state of it"
    return f'the statement has it as "{line.word}", a word that the profile doesn\'t know'


def _concern(verdict: BooksVerdict, ours: BooksEntry | None, theirs: StatementLine | None) -> Concern | None:
    """Tells whether somebody must hear of it at once: a payment that nobody here made, or that was called failed."""
    if theirs is None or theirs.movement is not Movement.PAYMENT or theirs.state not in MONEY_TAKEN:
        return None
    if verdict is BooksVerdict.ONLY_THEIRS:
        return Concern.NOT_MADE_HERE
    is_failed = ours is not None and ours.standing is EntryStanding.FAILED
    return Concern.TAKEN_THOUGH_FAILED if is_failed else None


def is_told_by_line(found: BooksFinding, zone: Zone) -> bool:
    """Tells whether a finding is met with its line alone: our books of its day don't have its entry.

    That is so where there is no entry, where it is a page that counts as unpaid here or an imported payment, and where
    an operation was sent long after it was made.
    """
    ours = found.ours
    return ours is None or ours.is_offer or ours.is_imported or found.day > zone.day(ours.own_ms + TOLERANCE_MS)


def basis_of(line: StatementLine) -> Basis:
    """Tells what a line that is there rests on."""
    return Basis.LINE if line.source is Source.FILE else Basis.SEARCH


def _identity(ours: BooksEntry | None, theirs: StatementLine | None) -> str:
    """A payment is known by its number, everything else by our entry where there is one."""
    if theirs is not None and (ours is None or theirs.movement is Movement.PAYMENT):
        return theirs.identity
    assert ours is not None  # noqa: S101  a finding is on something
    return ours.payment_id if ours.movement is Movement.PAYMENT and ours.payment_id is not None else ours.id


def _day(ours: BooksEntry | None, theirs: StatementLine | None, zone: Zone) -> date:
    if ours is None:
        assert theirs is not None  # noqa: S101  a finding is on something
        return theirs.day
    own = zone.day(ours.own_ms)
    if theirs is None or theirs.movement is not Movement.PAYMENT:
        return own
    if ours.is_offer:
        return theirs.day
    return theirs.day if zone.first_day(ours) <= theirs.day <= zone.last_day(ours) else own
