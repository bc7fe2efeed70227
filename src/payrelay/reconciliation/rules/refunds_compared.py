"""Compares our refunds and chargebacks with those of the statements.

A refund of a whole payment shows in the state of the payment. A refund of a part shows in no search, and so needs a
line in a file. A line says itself whether its refund has happened: one that failed has given nothing back, and one in a
state that isn't known is never agreed on.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import msgspec

from payrelay.core.orders.given_back import shares_of
from payrelay.reconciliation.rules.entries import (
    GIVEN_BACK,
    REFUND_DAYS,
    BooksEntry,
    EntryStanding,
    LineState,
    Movement,
    StatementLine,
)
from payrelay.reconciliation.rules.sides import (
    MergedLine,
    Sides,
    basis_of,
    finding,
    only_theirs,
    unknown_state,
    with_unknown,
)
from payrelay.reconciliation.rules.verdicts import Aspect, Basis, BooksFinding, BooksVerdict

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
    """Joins what has an equal amount first, then what is left on both sides: those differ in the amount.

    Of equal lines, what happened here is joined with what happened there, and what failed with what failed.
    """
    left, rest = [], list(lines)
    for entry in sorted(entries, key=lambda each: (each.standing is not EntryStanding.DONE, each.from_ms, each.id)):
        equal = [each for each in rest if each.line.amount_minor == _amount(entry, sides)]
        if equal:
            best = min(equal, key=lambda each: _is_still(each) is not (entry.standing is EntryStanding.FAILED))
            rest.remove(best)
            yield _of_both(entry, best, sides)
        else:
            left.append(entry)
    rest = [each for each in rest if not _is_still(each)]
    for entry in left:
        if rest and entry.standing is EntryStanding.DONE:
            yield _of_both(entry, rest.pop(0), sides)
        elif entry.standing is not EntryStanding.FAILED:
            yield msgspec.structs.replace(_of_ours(entry, sides), ours_minor=_amount(entry, sides))
    fee = next((each for each in rest if _is_fee_back(each, sides)), None)
    yield from (_of_fee(each, sides) if each is fee else _of_theirs(each, sides) for each in rest)


def _is_still(found: MergedLine) -> bool:
    """Tells whether a line says that nothing was given back."""
    return not found.is_told_alone


def _is_fee_back(found: MergedLine, sides: Sides) -> bool:
    """Tells whether a line says that the gateway gave the fee of an approval back, which it does by itself."""
    line = found.line
    is_clear = found.unknown is None and line.has_happened and not found.is_contradicted
    return is_clear and line.movement is Movement.REFUND and sides.is_of_approval(line)


def _of_fee(found: MergedLine, sides: Sides) -> BooksFinding:
    why = "the gateway gives the fee of an approval back by itself"
    return finding(BooksVerdict.AGREED, why, basis_of(found.line), zone=sides.known.zone, theirs=found.line)


def _of_theirs(found: MergedLine, sides: Sides) -> BooksFinding:
    line, zone = found.line, sides.known.zone
    why = "nobody here asked for it, as far as our books say"
    if found.unknown is None and not line.has_happened:
        why += f"; the statement has it as {line.state}, which says nothing of a {line.movement}"
    return only_theirs(found, why, zone)


def _amount(entry: BooksEntry, sides: Sides) -> int | None:
    """Gives how much an entry gave back, as the balance of its payment counts it.

    A refund of the whole gave back what the others left, and so did a chargeback: banks take no more than that.
    """
    counted = [each for each in _refunds(entry, sides) if each.standing is EntryStanding.DONE or each.id == entry.id]
    paid_minor = _paid_minor(entry, sides)
    shares = shares_of([each.amount_minor for each in counted], paid_minor)
    if entry.movement is Movement.REFUND:
        return next(share for each, share in zip(counted, shares, strict=True) if each.id == entry.id)
    if paid_minor is None:
        return entry.amount_minor
    wanted_minor = paid_minor if entry.amount_minor is None else entry.amount_minor
    left_minor = max(0, paid_minor - sum(each or 0 for each in shares))
    return min(wanted_minor, left_minor) or wanted_minor


def _refunds(entry: BooksEntry, sides: Sides) -> list[BooksEntry]:
    return [each for each in sides.entries(Movement.REFUND) if each.payment_id == entry.payment_id]


def _paid_minor(entry: BooksEntry, sides: Sides) -> int | None:
    """Gives what was paid by the payment that an entry gives back: as our books have it, or else the statement."""
    ours = [each.amount_minor for each in sides.entries(Movement.PAYMENT) if each.payment_id == entry.payment_id]
    paid = _payment(entry, sides)
    theirs = None if paid is None else paid.amount_minor
    return next((each for each in ours if each is not None), theirs)


def _payment(entry: BooksEntry, sides: Sides) -> StatementLine | None:
    found = (each.line for each in sides.lines(Movement.PAYMENT) if each.line.identity == entry.payment_id)
    return next(found, None)


def _of_both(entry: BooksEntry, found: MergedLine, sides: Sides) -> BooksFinding:
    line, zone = found.line, sides.known.zone
    first = zone.first_day(entry)
    wanted = {
        Aspect.AMOUNT: _amount(entry, sides) != line.amount_minor or entry.currency not in {None, line.currency},
        Aspect.STATE: not _is_same_state(entry, found),
        Aspect.DAY: not first <= line.day <= zone.last_day(entry) + timedelta(days=REFUND_DAYS),
        Aspect.STATEMENTS: found.is_contradicted,
    }
    if entry.movement is Movement.CHARGEBACK:
        wanted[Aspect.DAY] = False  # what the bank took back is notified before or after the statement has it
    aspects = tuple(aspect for aspect, is_so in wanted.items() if is_so)
    verdict = BooksVerdict.DIFFERENT if aspects else BooksVerdict.AGREED
    why = f"the two sides differ in {', '.join(aspects)}" if aspects else "both sides say the same"
    if found.unknown is not None:
        why = f"our books have it as {entry.standing}; {unknown_state(found.unknown)}"
    elif Aspect.STATE in aspects:
        why = f"our books have it as {entry.standing}, the statement as {line.state}"
    both = finding(verdict, why, basis_of(line), zone=zone, ours=entry, theirs=line, aspects=aspects)
    return with_unknown(msgspec.structs.replace(both, ours_minor=_amount(entry, sides)), found.unknown)


def _is_same_state(entry: BooksEntry, found: MergedLine) -> bool:
    if found.unknown is not None:
        return False
    if entry.standing is EntryStanding.FAILED:
        return found.line.state is LineState.NOT_TAKEN
    return entry.standing is EntryStanding.DONE and found.line.has_happened


def _of_ours(entry: BooksEntry, sides: Sides) -> BooksFinding:
    known, zone, movement = sides.known, sides.known.zone, entry.movement
    if entry.standing is EntryStanding.OPEN:
        return finding(BooksVerdict.OPEN, "it has no outcome in our books yet", Basis.BOOKS, zone=zone, ours=entry)
    paid = _payment(entry, sides)
    is_whole = movement is Movement.CHARGEBACK or _gives_all_back(entry, sides)
    if paid is not None and is_whole and paid.state in _STATES[movement]:
        why = f"the state of its payment alone says so, {paid.state}: no line has its amount"
        return finding(BooksVerdict.AGREED, why, basis_of(paid), zone=zone, ours=entry)
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
    return entry.amount_minor is None or entry.amount_minor == _paid_minor(entry, sides)
