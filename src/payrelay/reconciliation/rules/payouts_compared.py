"""Compares what the gateway says that it paid out with what it should pay, and with the bank's account.

Here the gateway's payouts are our side, because they are what the bank's account must show. What a payout is made of is
compared where the statements of payments, refunds and chargebacks name their payout.

A payout, or a line of the bank's, that failed has moved nothing. One in a state that isn't known is never agreed on.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta

import msgspec

from payrelay.core.money import decimal_text
from payrelay.reconciliation.rules.entries import BANK_DAYS, Movement, StatementLine
from payrelay.reconciliation.rules.sides import Known, MergedLine, merged, only_theirs, unknown_state, with_unknown
from payrelay.reconciliation.rules.verdicts import Aspect, Basis, BooksFinding, BooksVerdict


class PayoutParts(msgspec.Struct, frozen=True):
    """What the lines that name a payout come to, after fees, refunds and chargebacks; and how many there are."""

    net_minor: int
    lines: int


def compare_payouts(
    lines: Iterable[StatementLine], parts: Mapping[str, PayoutParts], known: Known
) -> list[BooksFinding]:
    """Compares payouts and lines of the bank's account, which are all that there are of some days.

    A line of the bank belongs to the payout that it names; without a name, to the only payout with its amount and
    currency whose money can have come on its day.
    """
    lines = list(lines)
    payouts = merged(each for each in lines if each.movement is Movement.PAYOUT)
    of_bank = merged(each for each in lines if each.movement is Movement.BANK)
    bank = {each.line.identity: each for each in of_bank if each.is_told_alone}
    pairs = _pairs(payouts, bank)
    findings = []
    for payout in payouts:
        found = bank.pop(pairs.get(payout.line.identity, ""), None)
        if payout.is_told_alone or found is not None:
            findings.append(_of_payout(payout, found, parts.get(payout.line.identity), known))
    why = "no payout that was read explains it"
    findings += [only_theirs(each, why, known.zone) for each in bank.values()]
    return sorted(findings, key=lambda each: (each.movement, each.identity))


def _pairs(payouts: list[MergedLine], bank: Mapping[str, MergedLine]) -> dict[str, str]:
    """Joins payouts and lines of the bank: by the payout's name, else where exactly one fits exactly one."""
    named = {each.line.payout_id: identity for identity, each in sorted(bank.items()) if each.line.payout_id}
    pairs = {each.line.identity: named[each.line.identity] for each in payouts if each.line.identity in named}
    free = [each for each in payouts if each.line.identity not in pairs and each.is_told_alone]
    taken = set(pairs.values())
    for payout in free:
        fitting = [identity for identity, each in bank.items() if identity not in taken and _fits(payout, each)]
        if len(fitting) != 1:
            continue
        competing = [each for each in free if _fits(each, bank[fitting[0]])]
        if len(competing) == 1:
            pairs[payout.line.identity] = fitting[0]
    return pairs


def _fits(payout: MergedLine, bank: MergedLine) -> bool:
    ours, theirs = payout.line, bank.line
    return (
        theirs.payout_id is None
        and (ours.currency, ours.amount_minor) == (theirs.currency, theirs.amount_minor)
        and ours.day <= theirs.day <= ours.day + timedelta(days=BANK_DAYS)
    )


def _of_payout(payout: MergedLine, bank: MergedLine | None, parts: PayoutParts | None, known: Known) -> BooksFinding:
    line = payout.line
    aspects: dict[Aspect, str] = {}
    for each in (payout, bank):
        if each is not None and each.unknown is not None:
            aspects[Aspect.STATE] = unknown_state(each.unknown)
        elif each is not None and not each.line.has_happened:
            aspects[Aspect.STATE] = f"a statement has the {each.line.movement} as {each.line.state}"
    if parts is not None and parts.net_minor != line.amount_minor:
        aspects[Aspect.FEE] = f"its {parts.lines} lines come to {decimal_text(parts.net_minor)}"
    if payout.is_contradicted or (bank is not None and bank.is_contradicted):
        aspects[Aspect.STATEMENTS] = "two statements say different things of it"
    verdict, basis, why = BooksVerdict.AGREED, Basis.LINE, "the bank's account has it"
    theirs = None if bank is None else bank.line
    if theirs is not None:
        if (theirs.amount_minor, theirs.currency) != (line.amount_minor, line.currency):
            aspects[Aspect.AMOUNT] = "the bank's account has another amount"
        if not line.day <= theirs.day <= line.day + timedelta(days=BANK_DAYS):
            aspects[Aspect.DAY] = f"it is not on the bank's account within {BANK_DAYS} days"
    elif known.coverage.has(Movement.BANK, line.day, line.day + timedelta(days=BANK_DAYS)):
        verdict, basis = BooksVerdict.ONLY_OURS, Basis.COMPLETE_FILES
        why = f"the bank's complete statements don't have it within {BANK_DAYS} days"
    elif known.coverage.has(Movement.BANK, line.day, line.day):
        verdict, basis, why = (
            BooksVerdict.OPEN,
            Basis.COMPLETE_FILES,
            f"it may take {BANK_DAYS} days to the bank's account",
        )
    else:
        verdict, basis, why = (
            BooksVerdict.UNKNOWABLE,
            Basis.LINE,
            "no complete statement of the bank's account was read",
        )
    if aspects:
        verdict, why = BooksVerdict.DIFFERENT, "; ".join(aspects.values())
    found = BooksFinding(
        movement=Movement.PAYOUT,
        identity=line.identity,
        day=line.day,
        currency=line.currency,
        verdict=verdict,
        basis=basis,
        why=why,
        aspects=tuple(sorted(aspects)),
        theirs=line if theirs is None else theirs,
        ours_minor=line.amount_minor,
        theirs_minor=None if theirs is None else theirs.amount_minor,
    )
    return with_unknown(found, payout.unknown or (None if bank is None else bank.unknown))
