"""Compares our payments with those of the statements.

Rules:

1. What a statement has in a state that isn't known is never agreed on, and never left out.
2. A hold, or a try that failed, has taken no money. Where our books have nothing for it, it is nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from payrelay.core.money import decimal_text
from payrelay.reconciliation.rules.entries import (
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

_LIKELIEST: Final = (EntryStanding.DONE, EntryStanding.OPEN, EntryStanding.OFFERED, EntryStanding.FAILED)
"""Of the tries of one order, the likeliest to be what was paid comes first."""


def compare_payments(sides: Sides) -> Iterator[BooksFinding]:
    """Gives a finding for each payment of either side.

    But for a failed try that no statement has as paid, and for what no statement has to have: an imported payment, and
    the fee of an approval.
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
    for entry in sorted(without, key=lambda each: (each.is_approval, _LIKELIEST.index(each.standing))):
        line = _paid_by(entry, unmatched, sides)
        if line is None:
            left.append(entry)
        else:
            del unmatched[line.line.identity]
            yield _of_both(entry, line, sides)
    for entry in left:
        if entry.standing not in UNPAID and not entry.is_imported and not entry.is_approval:
            yield _of_ours(entry, sides)
    why = "nobody here made it, as far as our books say"
    yield from (only_theirs(each, why, sides.known.zone) for each in unmatched.values() if each.is_told_alone)


def _paid_by(entry: BooksEntry, unmatched: Mapping[str, MergedLine], sides: Sides) -> MergedLine | None:
    """Finds the payment that an entry without one may have been paid by.

    It is one of its order, best one that is known to be paid, and then one of an equal amount.
    """
    if entry.payment_id is not None or entry.order_id is None:
        return None
    fitting = [
        each
        for each in unmatched.values()
        if each.line.order_id == entry.order_id and each.line.currency == entry.currency and each.is_told_alone
    ]
    fitting.sort(
        key=lambda each: (
            each.unknown is not None,
            Aspect.AMOUNT in _aspects(entry, each, sides),
            each.line.identity,
        )
    )
    return fitting[0] if fitting else None


def _of_both(entry: BooksEntry, found: MergedLine, sides: Sides) -> BooksFinding:
    line, zone = found.line, sides.known.zone
    aspects = tuple(_aspects(entry, found, sides))
    verdict = BooksVerdict.DIFFERENT if aspects else BooksVerdict.AGREED
    both = finding(
        verdict,
        _why(entry, found, aspects) if aspects else _why_agreed(entry, line),
        basis_of(line),
        zone=zone,
        ours=entry,
        theirs=line,
        aspects=aspects,
    )
    if aspects or not entry.is_approval:
        return with_unknown(both, found.unknown)
    # The fee came and went: where no line of its own tells of that, nothing of it is money.
    is_gone = line.state in GIVEN_BACK and not sides.has_line(Movement.REFUND, line.payment_id)
    taken_minor = 0 if is_gone else line.amount_minor
    return msgspec.structs.replace(both, ours_minor=taken_minor, theirs_minor=taken_minor)


def _why_agreed(entry: BooksEntry, line: StatementLine) -> str:
    if entry.is_approval and line.state in GIVEN_BACK:
        return "it is the fee of an approval, which the gateway gave back"
    if entry.is_approval and line.state in MONEY_TAKEN:
        return "it is the fee of an approval, which the gateway gives back by itself"
    if entry.standing in UNPAID:
        return "both sides say that no money was taken"
    return "both sides say the same"


def _aspects(entry: BooksEntry, found: MergedLine, sides: Sides) -> Iterator[Aspect]:
    line, zone = found.line, sides.known.zone
    is_other_amount = (
        not sides.known.is_approval_fee(line)
        if entry.is_approval
        else entry.amount_minor not in {None, line.amount_minor}
    )
    if is_other_amount or entry.currency not in {None, line.currency}:
        yield Aspect.AMOUNT
    if _has_odd_fee(line):
        yield Aspect.FEE
    if found.unknown is not None or not _is_same_state(entry, line, sides):
        yield Aspect.STATE
    if line.source is Source.FILE and not zone.first_day(entry) <= line.day <= zone.last_day(entry):
        yield Aspect.DAY
    if line.order_id is not None and entry.order_id is not None and line.order_id != entry.order_id:
        yield Aspect.ORDER
    if found.is_contradicted:
        yield Aspect.STATEMENTS


def _has_odd_fee(line: StatementLine) -> bool:
    if line.moved_nothing:  # some files write the amount as the net of what failed, and others nothing
        return bool(line.fee_minor) or line.net_minor not in {None, 0, line.amount_minor}
    if line.fee_minor is None:
        return False
    if line.net_minor is not None and line.amount_minor - line.fee_minor != line.net_minor:
        return True
    return line.expected_fee_minor is not None and line.fee_minor != line.expected_fee_minor


def _is_same_state(entry: BooksEntry, line: StatementLine, sides: Sides) -> bool:
    if entry.is_imported:  # what became of it before its import, only the shop knows
        return line.state in MONEY_TAKEN
    if entry.standing in UNPAID:
        return line.state is LineState.NOT_TAKEN
    if entry.standing is EntryStanding.OPEN:
        return False
    if entry.is_approval and line.state in GIVEN_BACK:
        return True
    if line.state in GIVEN_BACK:
        is_ours = sides.has_entry(Movement.REFUND, entry.payment_id)
        return is_ours or sides.has_line(Movement.REFUND, entry.payment_id)
    if line.state is LineState.CHARGED_BACK:
        is_ours = sides.has_entry(Movement.CHARGEBACK, entry.payment_id)
        return is_ours or sides.has_line(Movement.CHARGEBACK, entry.payment_id)
    return line.state is LineState.TAKEN


def _why(entry: BooksEntry, found: MergedLine, aspects: tuple[Aspect, ...]) -> str:
    line = found.line
    if found.unknown is not None:
        return f"our books have it as {entry.standing}; {unknown_state(found.unknown)}"
    if Aspect.STATE in aspects:
        return f"our books have it as {entry.standing}, the statement as {line.state}"
    if Aspect.STATEMENTS in aspects:
        return "two statements say different things of it"
    why = f"the two sides differ in {', '.join(aspects)}"
    if Aspect.AMOUNT in aspects and entry.is_approval:
        return f"{why}: its order asked for an approval that charges nothing, and this is no fee of one"
    if Aspect.FEE in aspects and line.moved_nothing:
        return f"{why}: a fee, or a net, of what took no money"
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
