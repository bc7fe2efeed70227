"""Compares our payments with those of the statements."""

from collections.abc import Iterator
from typing import Final

from payrelay.core.money import decimal_text
from payrelay.core.reconciliation.entries import (
    GIVEN_BACK,
    MONEY_TAKEN,
    TOLERANCE_MS,
    UNPAID,
    BooksEntry,
    EntryStanding,
    LineState,
    Movement,
    Source,
    StatementLine,
)
from payrelay.core.reconciliation.sides import MergedLine, Sides, basis_of, finding
from payrelay.core.reconciliation.verdicts import Aspect, Basis, BooksFinding, BooksVerdict

_LIKELIEST: Final = (EntryStanding.DONE, EntryStanding.OPEN, EntryStanding.OFFERED, EntryStanding.FAILED)
"""Of the tries of one order, the likeliest to be what was paid comes first."""


def compare_payments(sides: Sides) -> Iterator[BooksFinding]:
    """Gives a finding for each payment of either side.

    But for a failed try that no statement has as paid, and for an imported payment that none has at all.
    """
    unmatched = {each.line.identity: each for each in sides.lines(Movement.PAYMENT)}
    without = []
    for entry in sides.entries(Movement.PAYMENT):
        line = None if entry.payment_id is None else unmatched.pop(entry.payment_id, None)
        if line is None:
            without.append(entry)
        else:
            yield _of_both(entry, line, sides)
    left = []
    for entry in sorted(without, key=lambda each: _LIKELIEST.index(each.standing)):
        line = _paid_by(entry, unmatched)
        if line is None:
            left.append(entry)
        else:
            del unmatched[line.line.identity]
            yield _of_both(entry, line, sides)
    for entry in left:
        if entry.standing not in UNPAID and not entry.is_imported:
            yield _of_ours(entry, sides)
    yield from (_of_theirs(each, sides) for each in unmatched.values() if each.line.state in MONEY_TAKEN)


def _paid_by(entry: BooksEntry, unmatched: dict[str, MergedLine]) -> MergedLine | None:
    """Finds the payment that an entry without one may have been paid by: one of its order, best of an equal amount."""
    if entry.payment_id is not None or entry.order_id is None:
        return None
    fitting = [
        each
        for each in unmatched.values()
        if each.line.order_id == entry.order_id
        and each.line.currency == entry.currency
        and each.line.state in MONEY_TAKEN
    ]
    fitting.sort(key=lambda each: (each.line.amount_minor != entry.amount_minor, each.line.identity))
    return fitting[0] if fitting else None


def _of_both(entry: BooksEntry, found: MergedLine, sides: Sides) -> BooksFinding:
    line, zone = found.line, sides.known.zone
    aspects = tuple(_aspects(entry, found, sides))
    if not aspects:
        return finding(
            BooksVerdict.AGREED, "both sides say the same", basis_of(line), zone=zone, ours=entry, theirs=line
        )
    return finding(
        BooksVerdict.DIFFERENT,
        _why(entry, line, aspects),
        basis_of(line),
        zone=zone,
        ours=entry,
        theirs=line,
        aspects=aspects,
    )


def _aspects(entry: BooksEntry, found: MergedLine, sides: Sides) -> Iterator[Aspect]:
    line, zone = found.line, sides.known.zone
    if entry.amount_minor not in {None, line.amount_minor} or entry.currency not in {None, line.currency}:
        yield Aspect.AMOUNT
    if _has_odd_fee(line):
        yield Aspect.FEE
    if not _is_same_state(entry, line, sides):
        yield Aspect.STATE
    if line.source is Source.FILE and not zone.first_day(entry) <= line.day <= zone.last_day(entry):
        yield Aspect.DAY
    if line.order_id is not None and entry.order_id is not None and line.order_id != entry.order_id:
        yield Aspect.ORDER
    if found.is_contradicted:
        yield Aspect.STATEMENTS


def _has_odd_fee(line: StatementLine) -> bool:
    if line.fee_minor is None:
        return False
    if line.net_minor is not None and line.amount_minor - line.fee_minor != line.net_minor:
        return True
    return line.expected_fee_minor is not None and line.fee_minor != line.expected_fee_minor


def _is_same_state(entry: BooksEntry, line: StatementLine, sides: Sides) -> bool:
    if entry.is_imported:  # what became of it before its import, only the shop knows
        return line.state in MONEY_TAKEN
    if entry.standing in UNPAID:
        return line.state not in MONEY_TAKEN
    if entry.standing is EntryStanding.OPEN:
        return False
    if line.state in GIVEN_BACK:
        is_ours = sides.has_entry(Movement.REFUND, entry.payment_id)
        return is_ours or sides.has_line(Movement.REFUND, entry.payment_id)
    if line.state is LineState.CHARGED_BACK:
        is_ours = sides.has_entry(Movement.CHARGEBACK, entry.payment_id)
        return is_ours or sides.has_line(Movement.CHARGEBACK, entry.payment_id)
    return line.state is LineState.TAKEN


def _why(entry: BooksEntry, line: StatementLine, aspects: tuple[Aspect, ...]) -> str:
    if Aspect.STATE in aspects:
        return f"our books have it as {entry.standing}, the statement as {line.state}"
    if Aspect.STATEMENTS in aspects:
        return "two statements say different things of it"
    why = f"the two sides differ in {', '.join(aspects)}"
    if Aspect.FEE not in aspects or line.fee_minor is None:
        return why
    rest = line.amount_minor - line.fee_minor
    if line.net_minor not in {None, rest}:
        return (
            f"{why}: without the fee of {decimal_text(line.fee_minor)} it leaves {decimal_text(rest)}, and not the net"
        )
    return f"{why}: it is {decimal_text(line.fee_minor)}, and {decimal_text(line.expected_fee_minor or 0)} is agreed on"


def _of_ours(entry: BooksEntry, sides: Sides) -> BooksFinding:
    known, zone = sides.known, sides.known.zone
    if entry.standing is EntryStanding.OPEN:
        return finding(BooksVerdict.OPEN, "it has no outcome in our books yet", Basis.BOOKS, zone=zone, ours=entry)
    if entry.payment_id is None and entry.order_id is None:
        why = "our books name neither its payment nor its order, by which a statement could have it"
        return finding(BooksVerdict.UNKNOWABLE, why, Basis.BOOKS, zone=zone, ours=entry)
    if known.coverage.has(Movement.PAYMENT, zone.first_day(entry), zone.last_day(entry)):
        why = "the complete statement of its day doesn't have it"
        return finding(BooksVerdict.ONLY_OURS, why, Basis.COMPLETE_FILES, zone=zone, ours=entry)
    if known.coverage.is_searched(entry.shown_by, entry.until_ms + TOLERANCE_MS):
        asked = "order" if entry.subscription_id is None else "subscription"
        why = f"the gateway was asked for its {asked}, and doesn't show it"
        return finding(BooksVerdict.ONLY_OURS, why, Basis.SEARCH, zone=zone, ours=entry)
    why = "no complete statement of its day was read, and no search that is known to work has shown that it isn't there"
    return finding(BooksVerdict.UNKNOWABLE, why, Basis.BOOKS, zone=zone, ours=entry)


def _of_theirs(found: MergedLine, sides: Sides) -> BooksFinding:
    return finding(
        BooksVerdict.ONLY_THEIRS,
        "nobody here made it, as far as our books say",
        basis_of(found.line),
        zone=sides.known.zone,
        theirs=found.line,
        aspects=(Aspect.STATEMENTS,) if found.is_contradicted else (),
    )
