"""Compares our books of one day with everything that was read of the statements, page by page.

Nothing is changed but the report of the day and the differences that were found. So it may be repeated, and finds the
same again while nothing else was read. A closed day is not compared any more: its report is given as it was closed.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import date
from functools import partial
from typing import Final, NamedTuple

import msgspec

from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay
from payrelay.reconciliation.flows.scope import AROUND, BooksScope, complete_around, coverage_of
from payrelay.reconciliation.rules.days import LISTED_MAX, Closure, DayReport, Tally, unseen
from payrelay.reconciliation.rules.entries import TOLERANCE_MS, BooksEntry, Coverage, Movement, StatementLine
from payrelay.reconciliation.rules.judging import judge
from payrelay.reconciliation.rules.payouts_compared import compare_payouts
from payrelay.reconciliation.rules.sides import Known, is_told_by_line
from payrelay.reconciliation.rules.verdicts import Basis, BooksFinding, BooksVerdict
from payrelay.reconciliation.store.differences import ReconciledDay
from payrelay.reconciliation.store.lines import PAYOUTS_MAX
from payrelay.reconciliation.store.stores import ReconciliationStores

_ROUNDS_MAX: Final = 4
"""How often the other side of what was found is looked up: an order, its payments, and their other orders."""
_UNSETTLED: Final = frozenset({BooksVerdict.OPEN, BooksVerdict.UNKNOWABLE})


class _Judged(NamedTuple):
    """What was found, and what of it both sides agreed on when the last day was closed."""

    found: list[BooksFinding]
    agreed_before: list[BooksFinding]


class _Run:
    """One comparison of one day."""

    def __init__(self, relay: Relay, scope: BooksScope, day: date, closed: Closure | None) -> None:
        self.relay = relay
        self.scope = scope
        self.day = day
        self.now_ms = relay.clock.now_ms()
        self.closed = closed
        self.coverage = Coverage()
        self.all, self.sums, self.corrections, self.taken_back = Tally(), Tally(), Tally(), Tally()
        self.listed: list[BooksFinding] = []
        self.left_out = 0
        self.searched = 0
        self.lines = 0

    def is_closed(self, day: date) -> bool:
        return self.closed is not None and day <= self.closed.day

    def is_told_as_late(self, entry: BooksEntry, verdict: BooksVerdict) -> bool:
        """Tells whether a finding is told with an entry of a closed day that has changed since."""
        if self.closed is None or not entry.is_followed or verdict in _UNSETTLED:
            return False
        is_next = (self.day - self.closed.day).days == 1
        is_of_closed = entry.from_ms < self.scope.zone.ends_ms(self.closed.day) + TOLERANCE_MS
        return is_next and is_of_closed and entry.known_at_ms > self.closed.knew_to_ms

    def chosen(self, judged: _Judged, wanted: Callable[[BooksFinding], bool]) -> list[BooksFinding]:
        """Gives what is wanted of what was found; what a correction replaces is added to what is taken back."""
        kept = [each for each in judged.found if wanted(each)]
        corrected = {key for each in kept if self.is_closed(each.day) for key in _names(each)}
        for each in judged.agreed_before:
            if self.is_closed(each.day) and not corrected.isdisjoint(_names(each)):
                self.taken_back.add(each)
        return kept

    async def take(self, findings: Iterable[BooksFinding]) -> None:
        """Adds what was found to the report, and stores the differences."""
        kept = []
        for each in findings:
            self.searched += each.basis is Basis.SEARCH
            is_correction = self.is_closed(each.day)
            self.all.add(each)
            (self.corrections if is_correction else self.sums).add(each)
            if each.is_difference:
                kept.append(each)
            if each.verdict is not BooksVerdict.AGREED or is_correction:
                if len(self.listed) < LISTED_MAX:
                    self.listed.append(each)
                else:
                    self.left_out += 1
        if kept:
            scope = self.scope
            await self.relay.find(ReconciliationStores).differences.put(
                scope.merchant, scope.account, kept, self.day, self.now_ms
            )


async def run_day(
    relay: Relay, scope: BooksScope, day: date, *, progress: Callable[[int], None] = lambda _: None
) -> DayReport:
    """Compares a day, and stores what it came to; gives the report of a closed day as it was closed.

    ``progress`` is told how many things were compared. Raises Refusal (conflict) for a day that hasn't begun, or that a
    later day was closed behind; StoreError.
    """
    stored = await relay.find(ReconciliationStores).differences.day(scope.merchant, day)
    if stored is not None and stored.closed_at_ms is not None:
        return report_of(stored)
    last = await relay.find(ReconciliationStores).differences.last_closed(scope.merchant)
    report = await compare_day(relay, scope, day, last, progress=progress)
    await relay.find(ReconciliationStores).differences.put_day(stored_of(scope, report))
    return report


async def compare_day(
    relay: Relay,
    scope: BooksScope,
    day: date,
    last: Closure | None,
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> DayReport:
    """Compares a day behind the last closed one, and stores the differences, but not what the day came to.

    Raises Refusal (conflict) for a day that hasn't begun, or isn't behind it; StoreError.
    """
    run = _Run(relay, scope, day, last)
    if run.is_closed(day):
        raise Refusal(Code.CONFLICT, f"{day} is before the last closed day, and was never compared")
    if run.now_ms < scope.zone.begins_ms(day):
        raise Refusal(Code.CONFLICT, f"{day} has not begun in {scope.zone.name}")
    complete = await complete_around(relay, scope, day)
    run.coverage = coverage_of(complete, {})
    compared = 0
    async for findings in _findings(run):
        await run.take(findings)
        compared += len(findings)
        progress(compared)
    said = sorted({f"{each.movement}: {each.rests_on}" for each in complete if each.day == day})
    searched = [f"searches at the gateway, for {run.searched} of what is listed or summed up"] if run.searched else []
    return DayReport(
        account=scope.account,
        day=day,
        timezone=scope.zone.name,
        ran_at_ms=run.now_ms,
        sums=run.sums.sums(),
        corrections=run.corrections.sums(),
        unseen=unseen(day, run.coverage),
        rests_on=(*said, *searched),
        listed=tuple(sorted(run.listed, key=lambda each: (each.day, each.movement, each.identity))),
        left_out=run.left_out,
        taken_back=run.taken_back.sums(),
        lines=run.lines,
        fingerprint=run.all.fingerprint,
    )


async def is_changed_lately(relay: Relay, scope: BooksScope, day: date, last: Closure | None, since_ms: int) -> bool:
    """Tells whether an operation has changed since a moment that is booked on a day, or on a closed one before it.

    Raises StoreError.
    """
    run = _Run(relay, scope, day, last)
    made_before_ms = scope.zone.ends_ms(day) + TOLERANCE_MS
    async for page in relay.find(ReconciliationStores).books.changed(scope.merchant, made_before_ms, since_ms):
        ids = {each.id for each in page}
        for each in (await _judged(run, page, ())).found:
            if each.ours is not None and each.ours.id in ids and each.day <= day:
                return True
    return False


def report_of(stored: ReconciledDay) -> DayReport:
    """Reads a stored report."""
    return msgspec.json.decode(stored.report, type=DayReport)


def stored_of(scope: BooksScope, report: DayReport) -> ReconciledDay:
    """Gives a report as it is stored, of a day that is open."""
    return ReconciledDay(
        merchant=scope.merchant,
        day=report.day,
        account=scope.account,
        report=msgspec.json.encode(report).decode(),
        ran_at_ms=report.ran_at_ms,
        closed_at_ms=None,
        closed_by=None,
        closed_reason=None,
        act=None,
    )


async def _findings(run: _Run) -> AsyncIterator[list[BooksFinding]]:
    """Gives every finding that is booked on the day, once: with an entry when that is read, else with its line."""
    books, scope, zone, day = run.relay.find(ReconciliationStores).books, run.scope, run.scope.zone, run.day
    async for page in books.between(scope.merchant, zone.begins_ms(day), zone.ends_ms(day)):
        ids = {each.id for each in page}
        found = (await _judged(run, page, ())).found
        yield [
            each
            for each in found
            if each.ours and each.ours.id in ids and each.day == day and not is_told_by_line(each, zone)
        ]
    is_next = run.closed is not None and (day - run.closed.day).days == 1
    if run.closed is not None and is_next:
        made_before_ms = zone.ends_ms(run.closed.day) + TOLERANCE_MS
        async for page in books.changed(scope.merchant, made_before_ms, run.closed.knew_to_ms):
            ids = {each.id for each in page}
            yield run.chosen(await _judged(run, page, ()), partial(_is_late, ids=ids, run=run))
    last = ("", "")
    async for lines in run.relay.find(ReconciliationStores).lines.booked_on(scope.merchant, day):
        keys = {(each.movement, each.identity) for each in lines} - {last}
        last = (lines[-1].movement, lines[-1].identity)
        run.lines += len(lines)
        yield run.chosen(await _judged(run, (), lines), partial(_is_of_line, keys=keys, run=run))
    yield await _payouts(run)


def _is_late(finding: BooksFinding, ids: set[str], run: _Run) -> bool:
    """Tells whether a finding is told with an entry of a closed day that has changed since."""
    is_of_page = finding.ours is not None and finding.ours.id in ids
    return is_of_page and run.is_closed(finding.day) and finding.verdict not in _UNSETTLED


def _is_of_line(finding: BooksFinding, keys: set[tuple[Movement, str]], run: _Run) -> bool:
    """Tells whether a finding is told with its line: no entry of ours tells it, or that one's day is closed.

    Of a closed day, what was given back is also told with the line of its payment, whose state shows it.
    """
    line, ours = finding.theirs, finding.ours
    if not run.is_closed(finding.day):
        is_of_line = line is not None and (line.movement, line.identity) in keys
        return is_of_line and is_told_by_line(finding, run.scope.zone) and finding.day == run.day
    if ours is not None and run.is_told_as_late(ours, finding.verdict):
        return False
    if line is not None:
        return (line.movement, line.identity) in keys
    is_given_back = ours is not None and (Movement.PAYMENT, ours.payment_id or "") in keys
    return is_given_back and finding.verdict is BooksVerdict.AGREED


def _names(finding: BooksFinding) -> set[tuple[str, str]]:
    """Gives what a correction replaces: the finding on the same entry, or on the same thing."""
    named = {(str(finding.movement), finding.identity)}
    return named if finding.ours is None else named | {("", finding.ours.id)}


async def _judged(run: _Run, entries: Iterable[BooksEntry], lines: Iterable[StatementLine]) -> _Judged:
    """Judges all there is of the orders and payments of some entries or lines."""
    mine, theirs = list(entries), list(lines)
    payments, orders = _keys(mine, theirs)
    seen: tuple[set[str], set[str]] = (set(), set())
    for _ in range(_ROUNDS_MAX):
        more_payments, more_orders = payments - seen[0], orders - seen[1]
        if not more_payments and not more_orders:
            break
        seen = (payments, orders)
        mine += await run.relay.find(ReconciliationStores).books.of(run.scope.merchant, more_payments, more_orders)
        theirs += await run.relay.find(ReconciliationStores).lines.of(run.scope.merchant, more_payments, more_orders)
        payments, orders = _keys(mine, theirs)
    names = orders | {each.shown_by for each in mine if each.shown_by is not None}
    searched = await run.relay.find(ReconciliationStores).lines.searches(run.scope.merchant, names)
    known = Known(
        coverage=Coverage(days=run.coverage.days, searched=searched),
        zone=run.scope.zone,
        approval_fees=_approval_fees(run, theirs) if any(each.is_approval for each in mine) else frozenset(),
    )
    found = judge(mine, theirs, known)
    if run.closed is None or not any(run.is_closed(each.day) for each in found):
        return _Judged(found, [])
    # What both sides agree on doesn't depend on what was covered.
    closed = run.closed
    before = judge(
        (each for each in mine if each.known_at_ms <= closed.knew_to_ms),
        (each for each in theirs if each.known_at_ms < closed.closed_at_ms),
        known,
    )
    return _Judged(found, _agreed(before))


def _approval_fees(run: _Run, lines: Iterable[StatementLine]) -> frozenset[tuple[str, int]]:
    """Gives the amounts among some lines that the gateway may take for an approval."""
    gateway = run.relay.account(run.scope.account)
    amounts = {(each.currency, each.amount_minor) for each in lines}
    return frozenset(
        (currency, amount_minor)
        for currency, amount_minor in amounts
        if gateway.is_approval_amount(amount_minor, currency)
    )


def _keys(entries: Iterable[BooksEntry], lines: Iterable[StatementLine]) -> tuple[set[str], set[str]]:
    both: list[BooksEntry | StatementLine] = [*entries, *lines]
    return (
        {each.payment_id for each in both if each.payment_id is not None},
        {each.order_id for each in both if each.order_id is not None},
    )


async def _payouts(run: _Run) -> list[BooksFinding]:
    lines = await run.relay.find(ReconciliationStores).lines.payouts(
        run.scope.merchant, run.day - AROUND, run.day + AROUND
    )
    if len(lines) > PAYOUTS_MAX:
        why = "read only the bank's lines that are about payouts, as a profile says with only"
        raise Refusal(
            Code.CONFLICT, f"more than {PAYOUTS_MAX} payouts and lines of the bank's are around {run.day}: {why}"
        )
    names = [each.identity for each in lines if each.movement is Movement.PAYOUT]
    parts = await run.relay.find(ReconciliationStores).lines.parts(run.scope.merchant, names)
    known = Known(coverage=run.coverage, zone=run.scope.zone)
    found, closed = compare_payouts(lines, parts, known), run.closed
    if closed is None or (run.day - closed.day).days != 1:
        return [each for each in found if each.day == run.day]
    late = {(each.movement, each.identity) for each in lines if each.known_at_ms >= closed.closed_at_ms}
    before = compare_payouts([each for each in lines if each.known_at_ms < closed.closed_at_ms], parts, known)
    return run.chosen(
        _Judged(found, _agreed(before)),
        lambda each: each.day == run.day or (each.day <= closed.day and not late.isdisjoint(_keys_of(each))),
    )


def _keys_of(finding: BooksFinding) -> Iterator[tuple[Movement, str]]:
    yield finding.movement, finding.identity
    if finding.theirs is not None:
        yield finding.theirs.movement, finding.theirs.identity


def _agreed(findings: Iterable[BooksFinding]) -> list[BooksFinding]:
    return [each for each in findings if each.verdict is BooksVerdict.AGREED]
