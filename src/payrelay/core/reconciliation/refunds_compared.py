"""Compares our refunds and chargebacks with those of the statements.

A refund of a whole payment shows in the state of the payment. A refund of a part shows in no search, and so needs a
line in a file.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import msgspec

from payrelay.core.reconciliation.entries import (
    GIVEN_BACK,
    REFUND_DAYS,
    BooksEntry,
    EntryStanding,
    LineState,
    Movement,
    StatementLine,
)
from payrelay.core.reconciliation.sides import MergedLine, Sides, basis_of, finding
from payrelay.core.reconciliation.verdicts import Aspect, Basis, BooksFinding, BooksVerdict

_STATES: Final = {Movement.REFUND: GIVEN_BACK, Movement.CHARGEBACK: frozenset({LineState.CHARGED_BACK})}


def compare_returns(sides: Sides, movement: Movement) -> Iterator[BooksFinding]:
    """Gives a finding for each refund, or each chargeback, of either side, but for a failed one that no line has."""
    lines, entries = defaultdict(list), defaultdict(list)
    for found in sides.lines(movement):
        lines[found.line.payment_id].append(found)
    for entry in sides.entries(movement):
        entries[entry.payment_id].append(entry)
    for payment_id in sorted(lines.keys() | entries.keys(), key=str):
        yield from _of_payment(entries[payment_id], lines[payment_id], sides)


def _of_payment(entries: list[BooksEntry], lines: list[MergedLine], sides: Sides) -> Iterator[BooksFinding]:
    """Joins what has an equal amount first, then what is left on both sides: those differ in the amount."""
    left, rest = [], list(lines)
    for entry in sorted(entries, key=lambda each: (each.standing is not EntryStanding.DONE, each.from_ms, each.id)):
        equal = [each for each in rest if each.line.amount_minor == _amount(entry, sides)]
        if equal:
            rest.remove(equal[0])
            yield _of_both(entry, equal[0], sides)
        else:
            left.append(entry)
    for entry in left:
        if rest and entry.standing is EntryStanding.DONE:
            yield _of_both(entry, rest.pop(0), sides)
        elif entry.standing is not EntryStanding.FAILED:
            yield _of_ours(entry, sides)
    for found in rest:
        yield finding(
            BooksVerdict.ONLY_THEIRS,
            "nobody here asked for it, as far as our books say",
            basis_of(found.line),
            zone=sides.known.zone,
            theirs=found.line,
            aspects=(Aspect.STATEMENTS,) if found.is_contradicted else (),
        )


def _amount(entry: BooksEntry, sides: Sides) -> int | None:
    """Gives the amount of an entry; of one that gives all back, what was paid."""
    if entry.amount_minor is not None:
        return entry.amount_minor
    paid = _payment(entry, sides)
    if paid is not None:
        return paid.amount_minor
    ours = (each.amount_minor for each in sides.entries(Movement.PAYMENT) if each.payment_id == entry.payment_id)
    return next(ours, None)


def _payment(entry: BooksEntry, sides: Sides) -> StatementLine | None:
    found = (each.line for each in sides.lines(Movement.PAYMENT) if each.line.identity == entry.payment_id)
    return next(found, None)


def _of_both(entry: BooksEntry, found: MergedLine, sides: Sides) -> BooksFinding:
    line, zone = found.line, sides.known.zone
    first = zone.first_day(entry)
    wanted = {
        Aspect.AMOUNT: _amount(entry, sides) != line.amount_minor or entry.currency not in {None, line.currency},
        Aspect.STATE: entry.standing is not EntryStanding.DONE,
        Aspect.DAY: not first <= line.day <= zone.last_day(entry) + timedelta(days=REFUND_DAYS),
        Aspect.STATEMENTS: found.is_contradicted,
    }
    if entry.movement is Movement.CHARGEBACK:
        wanted[Aspect.DAY] = False  # what the bank took back is notified before or after the statement has it
    aspects = tuple(aspect for aspect, is_so in wanted.items() if is_so)
    verdict = BooksVerdict.DIFFERENT if aspects else BooksVerdict.AGREED
    why = f"the two sides differ in {', '.join(aspects)}" if aspects else "both sides say the same"
    both = finding(verdict, why, basis_of(line), zone=zone, ours=entry, theirs=line, aspects=aspects)
    return msgspec.structs.replace(both, ours_minor=_amount(entry, sides))


def _of_ours(entry: BooksEntry, sides: Sides) -> BooksFinding:
    known, zone, movement = sides.known, sides.known.zone, entry.movement
    if entry.standing is EntryStanding.OPEN:
        return finding(BooksVerdict.OPEN, "it has no outcome in our books yet", Basis.BOOKS, zone=zone, ours=entry)
    paid = _payment(entry, sides)
    is_whole = movement is Movement.CHARGEBACK or _gives_all_back(entry, sides)
    if paid is not None and is_whole and paid.state in _STATES[movement]:
        why = f"the statement has its payment as {paid.state}"
        agreed = finding(BooksVerdict.AGREED, why, basis_of(paid), zone=zone, ours=entry)
        return msgspec.structs.replace(agreed, ours_minor=_amount(entry, sides))
    first, last = zone.first_day(entry), zone.last_day(entry) + timedelta(days=REFUND_DAYS)
    if known.coverage.has(movement, first, last):
        why = f"no complete statement has it, from its day to {REFUND_DAYS} days later"
        return finding(BooksVerdict.ONLY_OURS, why, Basis.COMPLETE_FILES, zone=zone, ours=entry)
    if known.coverage.has(movement, first, first):
        why = f"it may take {REFUND_DAYS} days, and not all of them are covered yet"
        return finding(BooksVerdict.OPEN, why, Basis.COMPLETE_FILES, zone=zone, ours=entry)
    if is_whole and known.coverage.is_searched(entry.order_id, zone.ends_ms(last)):
        why = f"the gateway was asked {REFUND_DAYS} days later, and shows its payment as not given back"
        return finding(BooksVerdict.ONLY_OURS, why, Basis.SEARCH, zone=zone, ours=entry)
    if is_whole and known.coverage.is_searched(entry.order_id, entry.until_ms):
        why = f"the gateway doesn't show it yet, and it may take {REFUND_DAYS} days"
        return finding(BooksVerdict.OPEN, why, Basis.SEARCH, zone=zone, ours=entry)
    why = "no complete statement of its day was read"
    if movement is Movement.REFUND and not is_whole:
        why += ", and a refund of a part shows in no search"
    return finding(BooksVerdict.UNKNOWABLE, why, Basis.BOOKS, zone=zone, ours=entry)


def _gives_all_back(entry: BooksEntry, sides: Sides) -> bool:
    if entry.amount_minor is None:
        return True
    paid = _payment(entry, sides)
    if paid is not None:
        return entry.amount_minor == paid.amount_minor
    ours = [each.amount_minor for each in sides.entries(Movement.PAYMENT) if each.payment_id == entry.payment_id]
    return entry.amount_minor in ours
