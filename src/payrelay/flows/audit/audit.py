"""The audit: makes anchors, and finds what was changed or removed of operations, their histories, and other rows.

It reports each finding in one plain sentence, and repairs nothing.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from payrelay.core.database.incarnations import Incarnation
from payrelay.core.moments import rfc3339
from payrelay.core.payments.audit_chain import (
    AnchorCheckpoint,
    AnchoredSpan,
    AnchorExplanation,
    sum_text,
)
from payrelay.core.payments.idempotency import claim_of
from payrelay.core.payments.operation import CLEARABLE, is_step
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Value
from payrelay.store.payments.audit import READINGS_MAX, Anchor, AuditRecord, ChainedEntry, Trail
from payrelay.store.tables.digested import DIGESTED, OPERATIONS

WRONG_DIGEST: Final = "its digest is missing or wrong: it was changed, or written by somebody who lacks the key"

ANCHOR_EVERY_MS: Final = 3_600_000
"""Between two anchors. What was removed without a trace since the last one can't be found; an anchor costs one small
row."""
FINAL_AFTER_MS: Final = 600_000
"""How old a journal entry must be to be anchored. An entry is dated before it is stored, and machines' clocks differ: a
late one in a span that is anchored already would look like a forgery. Neither difference is nearly as long as this."""
ENTRIES_MAX: Final = 10_000
"""Journal entries of one anchor, so that a finding is narrowed down, and a call ends soon."""
ANCHORS_MAX: Final = 10
"""Anchors that one call makes; the next call makes the rest."""
OVERDUE_AFTER_MS: Final = ANCHOR_EVERY_MS + FINAL_AFTER_MS + 1_200_000
"""How old a journal entry without an anchor may be while a service runs: the pause between two anchors, what an entry
waits before, and twenty minutes for a busy service."""


class Phase(StrEnum):
    """What the audit is checking."""

    ANCHORS = "anchors"
    OPERATIONS = "operations"
    ROWS = "rows"
    ACTS = "operators' acts"


Progress = Callable[[Phase, int, int], None]
"""Called with a phase, how many of it were checked, and how many there are."""


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as Payrelay stored it.

    Attributes:
        operation_id: the operation that is concerned; None where the finding is about an anchor.
        version: the version of its journal entry; None where the finding is about the whole operation.
        anchor: the number of the anchor; None where the finding is about something else.
        row: the table and id of another row than an operation's.
        text: what is wrong, in plain words.
    """

    text: str
    operation_id: str | None = None
    version: int | None = None
    anchor: int | None = None
    row: str | None = None


class Summary(msgspec.Struct, kw_only=True):
    """What the audit has checked so far.

    Attributes:
        operations, entries, anchors, rows, findings: how many of each; ``rows`` are the rows that have digests.
        acts: lines of the history of what operators did.
        newest_act: the number and the hash of the newest of them; None where there is none.
        entries_unanchored: journal entries that are younger than the newest anchor.
        entries_overdue: those of them that should be anchored by now: of these, removed ones can't be found.
        chain_since_ms: when the chain began.
        anchored_until_ms, newest_anchor: up to when entries are anchored, and the newest anchor's number and digest;
            None without an anchor.
        incarnations: of the database, the oldest first: commits of their lost windows may be gone, with their rows.
        explained: the explanations of anchors into whose spans entries came later.
        histories_cleared, entries_cleared: histories whose beginnings were cleared, and the journal entries that were.
        answers_cleared, calls_cleared: operations whose answers and calls were cleared.
        cleared_until_ms: the time of the newest change of an operation of which anything was cleared; None where
            nothing was.
        anchors_lost: the numbers of noted anchors that aren't here as they were noted, and may be among these commits.
    """

    chain_since_ms: int
    incarnations: tuple[Incarnation, ...] = ()
    anchors_lost: list[int] = []
    explained: list[AnchorExplanation] = []
    operations: int = 0
    entries: int = 0
    anchors: int = 0
    findings: int = 0
    entries_unanchored: int = 0
    entries_overdue: int = 0
    rows: int = 0
    acts: int = 0
    newest_act: str | None = None
    anchored_until_ms: int | None = None
    newest_anchor: str | None = None
    histories_cleared: int = 0
    entries_cleared: int = 0
    answers_cleared: int = 0
    calls_cleared: int = 0
    cleared_until_ms: int | None = None

    @property
    def is_verified(self) -> bool:
        """True where nothing wrong was found, and nothing was left out that could be wrong."""
        return not (self.findings or self.entries_overdue or self.anchors_lost)


FurtherCheck = Callable[[Summary, Progress], AsyncIterator[AuditFinding]]
"""Checks something else, counts it in the summary, and yields what isn't as Payrelay stored it. Raises StoreError."""


async def keep_anchors(relay: Relay) -> int:
    """Makes the anchors that are due, and puts them where no writer of the database can change them.

    All go to the log, and the newest once a day to the file and the alert channels, as the settings say. Returns how
    many were made. Makes none, and alerts the operators, where an anchor is gone or was changed that this process has
    seen, or that the file's last line names: new anchors over what is left would hide what was removed with it. One
    that may have been lost with commits, in a lost window that an operator has named, is left out. Makes none either
    while commits are missing or come back: their journal entries have the times that they had. Raises StoreError.
    """
    trail, outside, now_ms = relay.journal.trail, relay.alerting.anchors, relay.clock.now_ms()
    identity = await relay.database.lost_commits.refresh()
    if relay.database.lost_commits.must_wait:
        return 0
    lost = await _lost_anchors(trail, identity.incarnations)
    for known in await outside.known():
        if not await trail.has_anchor(known) and known.partition(":")[0] not in map(str, lost):
            relay.log.error("anchor_gone", anchor=known)
            await trail.report(f"anchors/{known.partition(':')[0]}", now_ms)
            return 0
    made = await anchor(trail, now_ms)
    for each in made:
        relay.log.info("history_anchored", anchor=each.text, entries=each.entries)
    newest = await trail.last_anchor()
    if newest is not None:
        await _keep_outside(relay, newest, now_ms)
        outside.seen = newest.text
        relay.database.marks.note_anchor(newest.text, newest.made_at_ms)
    return len(made)


async def _lost_anchors(trail: Trail, incarnations: Sequence[Incarnation]) -> set[int]:
    """Gives the numbers of the anchors that may have been made in lost windows: one an hour, and one at each end.

    Raises StoreError.
    """
    numbers: set[int] = set()
    for lost in (each.lost for each in incarnations if each.lost is not None):
        kept = await trail.last_anchor_before(lost.since_ms)
        hours = -((lost.since_ms - lost.until_ms) // ANCHOR_EVERY_MS)
        numbers.update(range(kept + 1, kept + 1 + hours + 1))
    return numbers


async def _keep_outside(relay: Relay, newest: Anchor, now_ms: int) -> None:
    trail, outside = relay.journal.trail, relay.alerting.anchors
    if not outside.is_due(now_ms):
        return
    if outside.is_told:
        told = await trail.tell(newest, now_ms)
        if not await trail.has_anchor(told):
            # Somebody wrote it there, so that the alert channels are told nothing on this day.
            relay.log.error("anchor_not_told", anchor=newest.text, in_its_place=told)
            await trail.report(f"anchor_alerts/{told}", now_ms)
    try:
        await outside.write(newest.text, now_ms)
    except OSError as error:
        relay.log.error("anchor_not_kept", anchor=newest.text, reason=error.strerror)


async def anchor(trail: Trail, now_ms: int) -> list[Anchor]:
    """Anchors the journal entries since the last anchor, an hour of them at least; returns the anchors that it made.

    Of several processes only one makes each anchor. Raises StoreError.
    """
    until_ms = now_ms - FINAL_AFTER_MS
    last = await trail.last_anchor()
    made: list[Anchor] = []
    while len(made) < ANCHORS_MAX:
        from_ms = last.until_ms if last else 0
        if until_ms - from_ms < ANCHOR_EVERY_MS and not made:
            break
        end_ms = await _end_of_span(trail, from_ms, until_ms)
        if end_ms is None:
            break
        span = AnchoredSpan(last.number + 1 if last else 1, from_ms, end_ms, now_ms)
        last = await trail.anchor(last.digest if last else "", span)
        if not await trail.add(last):
            break
        made.append(last)
    return made


async def _end_of_span(trail: Trail, from_ms: int, until_ms: int) -> int | None:
    """Returns where the span of the next anchor ends; None where there is nothing to anchor."""
    first_ms = await trail.time_of_entry(0, from_ms, until_ms)
    if first_ms is None:
        return None
    next_ms = await trail.time_of_entry(ENTRIES_MAX, from_ms, until_ms)
    # Entries of one millisecond come into one anchor, even if there are more than ENTRIES_MAX.
    return until_ms if next_ms is None else max(next_ms, first_ms + 1)


class Audit:
    """One run of the audit; ``summary`` counts what it has checked so far.

    ``rows`` checks the rows that have digests; None leaves them out.
    ``noted`` are digests of anchors by their numbers, noted where nobody can change them with the database. Only they
    show that the newest anchors, and the entries that these covered, are still there. ``now_ms`` tells which entries
    should be anchored by now; 0 for none. ``incarnations`` are the database's: a noted anchor that may have been made
    in one of their lost windows is counted, and no finding.
    """

    def __init__(
        self,
        trail: Trail,
        chain_since_ms: int,
        progress: Progress,
        *,
        rows: RowDigests | None = None,
        noted: Mapping[int, str] = MappingProxyType({}),
        now_ms: int = 0,
        incarnations: tuple[Incarnation, ...] = (),
    ) -> None:
        self._trail = trail
        self._progress = progress
        self._rows = rows
        self._noted = dict(noted)
        self._now_ms = now_ms
        self._explained: dict[tuple[int, str, str], AnchorExplanation] = {}
        self._wrong_operations: set[str] = set()
        self._further: list[FurtherCheck] = []
        self.summary = Summary(chain_since_ms=chain_since_ms, incarnations=incarnations)

    def also(self, check: "FurtherCheck") -> None:
        """Has a further check made, after all others."""
        self._further.append(check)

    async def findings(self) -> AsyncIterator[AuditFinding]:
        """Checks every anchor, operation and row, and yields what isn't as Payrelay stored it.

        May run beside servers; what they change meanwhile is no finding. Raises StoreError.
        """
        explanations, forged = await self._trail.explanations()
        self._explained = {(each.number, each.anchor, each.present): each for each in explanations}
        for name in forged:
            self.summary.findings += 1
            yield AuditFinding(row=f"meta/{name}", text=WRONG_DIGEST)
        for check in (self._anchors, self._operations, self._other_rows):
            async for finding in check():
                self.summary.findings += 1
                yield finding
        for further in self._further:
            async for finding in further(self.summary, self._progress):
                self.summary.findings += 1
                yield finding

    async def _anchors(self) -> AsyncIterator[AuditFinding]:
        last, summary = await self._trail.last_anchor(), self.summary
        lost = await _lost_anchors(self._trail, summary.incarnations)
        before: Anchor | None = None
        async for each in self._trail.anchors():
            self._progress(Phase.ANCHORS, each.number, last.number if last else each.number)
            for text in await self._wrong_with_anchor(before, each):
                yield AuditFinding(anchor=each.number, text=text)
            if self._noted.pop(each.number, each.digest) != each.digest:
                if each.number in lost:
                    summary.anchors_lost.append(each.number)
                else:
                    yield AuditFinding(anchor=each.number, text="it is not the one that was noted")
            before = each
            summary.anchors += 1
            summary.anchored_until_ms, summary.newest_anchor = each.until_ms, each.text
        summary.anchors_lost += sorted(self._noted.keys() & lost)
        for number in self._noted.keys() - lost:
            yield AuditFinding(anchor=number, text="it was noted, and is gone")

    async def _wrong_with_anchor(self, before: Anchor | None, each: Anchor) -> list[str]:
        number, until_ms = (before.number, before.until_ms) if before else (0, 0)
        if each.number != number + 1:
            return [f"anchor {number + 1} is missing before it"]
        if each.from_ms != until_ms:
            return ["it doesn't begin where the anchor before it ends"]
        checkpoint = await self._trail.anchor_checkpoint(each.number)
        if checkpoint is not None:
            return await self._wrong_with_rest(each, checkpoint)
        now = await self._trail.anchor(before.digest if before else "", each.span)
        if now == each:
            return []
        explanation = self._explained.get((each.number, each.digest, now.digest))
        if explanation is not None and explanation.entries == each.entries:
            self.summary.explained.append(explanation)
            return []
        found = f"; there are {now.entries} entries, and it has {each.entries}" if now.entries != each.entries else ""
        between = f"between {rfc3339(each.from_ms, 'seconds')} and {rfc3339(each.until_ms, 'seconds')}"
        return [f"it was changed, or journal entries {between} were changed, removed or added{found}"]

    async def _wrong_with_rest(self, each: Anchor, checkpoint: AnchorCheckpoint) -> list[str]:
        """Compares what is left of an anchor's span with its checkpoint; a server may clear more of it meanwhile."""
        entries = total = 0
        for _ in range(READINGS_MAX):
            entries, total = await self._trail.sum_of(each.span)
            again = await self._trail.anchor_checkpoint(each.number)
            if again == checkpoint or again is None:
                break
            checkpoint = again
        self.summary.entries_cleared += checkpoint.cleared
        if (checkpoint.anchor, checkpoint.entries, checkpoint.total) == (each.digest, entries, sum_text(total)):
            return []
        between = f"between {rfc3339(each.from_ms, 'seconds')} and {rfc3339(each.until_ms, 'seconds')}"
        changed = f"it was changed, or journal entries {between} were changed, removed or added since some were cleared"
        return [f"{changed}; there are {entries} entries, and {checkpoint.entries} should be left"]

    async def _operations(self) -> AsyncIterator[AuditFinding]:
        total = await self._trail.count_operations()
        async for first_reading in self._trail.records():
            record = first_reading
            if _wrong(record, self._trail):
                record = await self._trail.record(record.operation_id)  # a server may have changed it in between
            for finding in _wrong(record, self._trail):
                self._wrong_operations.add(record.operation_id)
                yield finding
            self._count(record)
            self._progress(Phase.OPERATIONS, self.summary.operations, max(total, self.summary.operations))

    async def _other_rows(self) -> AsyncIterator[AuditFinding]:
        if self._rows is None:
            return
        for table in DIGESTED:
            async for row in self._rows.check(table):
                if table is OPERATIONS:  # counted already, with what else is wrong with it
                    operation_id = row.name.partition("/")[2]
                    if not row.is_right and operation_id not in self._wrong_operations:
                        yield AuditFinding(operation_id=operation_id, text=WRONG_DIGEST)
                    continue
                self.summary.rows += 1
                self._progress(Phase.ROWS, self.summary.rows, self.summary.rows)
                if not row.is_right:
                    yield AuditFinding(row=row.name, text=WRONG_DIGEST)
        async for checkout_id in self._trail.unguarded_checkouts():
            yield AuditFinding(row=f"checkouts/{checkout_id}", text="it doesn't hold its order as it should")
        for subject in await self._trail.miscounted_texts():
            yield AuditFinding(row=f"signed_texts/{subject}", text="its signed texts are not as many as there were")

    def _count(self, record: AuditRecord) -> None:
        summary = self.summary
        summary.operations += record.row is not None
        summary.entries += len(record.entries)
        self._count_cleared(record)
        for entry in record.entries:
            if entry.link.at_ms >= (summary.anchored_until_ms or 0):
                summary.entries_unanchored += 1
                summary.entries_overdue += entry.link.at_ms < self._now_ms - OVERDUE_AFTER_MS

    def _count_cleared(self, record: AuditRecord) -> None:
        summary = self.summary
        summary.histories_cleared += record.checkpoint is not None
        summary.answers_cleared += record.is_answer_cleared
        summary.calls_cleared += record.is_call_cleared
        if (record.checkpoint or record.is_answer_cleared or record.is_call_cleared) and record.entries:
            summary.cleared_until_ms = max(summary.cleared_until_ms or 0, record.entries[-1].link.at_ms)


def _wrong(record: AuditRecord, trail: Trail) -> list[AuditFinding]:
    """Returns what is wrong with one operation."""
    operation_id = record.operation_id
    if record.row is None and not record.entries:
        return []  # it was removed during the check, or never there
    if record.row is None:
        return [AuditFinding(operation_id=operation_id, text="there is a history, but its operation is gone")]
    if not record.entries:
        return [AuditFinding(operation_id=operation_id, text="its history is gone")]
    return [
        AuditFinding(operation_id=operation_id, version=version, text=text)
        for version, text in (
            *_wrong_with_checkpoint(record),
            *_wrong_with_entries(record, trail),
            *_wrong_with_row(record.row, record.entries[-1], record.row_digest),
            *_wrong_with_sealed(record),
        )
    ]


def _wrong_with_checkpoint(record: AuditRecord) -> list[tuple[int | None, str]]:
    """Finds what was cleared that the service would not have cleared: its own marks and lines are signed."""
    wrong: list[tuple[int | None, str]] = []
    if not record.is_checkpoint_signed:
        wrong.append((None, "the line that stands for its cleared journal entries was not written by Payrelay"))
    is_cleared = record.checkpoint is not None or record.is_answer_cleared or record.is_call_cleared
    if is_cleared and record.row is not None and record.row["state"] not in CLEARABLE:
        wrong.append((None, f"something of it was cleared, although it is {record.row['state']!s}"))
    return wrong


def _wrong_with_entries(record: AuditRecord, trail: Trail) -> list[tuple[int | None, str]]:
    wrong: list[tuple[int | None, str]] = []
    previous, next_version = "", 1
    state: str | None = None
    if record.checkpoint is not None:
        _, next_version, previous, state = record.checkpoint
    for entry in record.entries:
        version = entry.link.version
        if version == next_version and not is_step(state, entry.link.event, entry.link.state):
            before = "before everything" if state is None else f"of an operation that is {state}"
            wrong.append((version, f"no operation does this: {entry.link.event} {before} leads to {entry.link.state}"))
        if version != next_version:
            wrong.append((version, f"it is where entry {next_version} should be; that one is gone"))
        elif trail.key.entry(previous, entry.link) != entry.hash:
            wrong.append((version, "it was changed, or the entry before it was: its hash doesn't follow"))
        previous, next_version, state = entry.hash, version + 1, entry.link.state
    return wrong


def _wrong_with_row(row: Mapping[str, Value], newest: ChainedEntry, row_digest: str) -> list[tuple[int | None, str]]:
    version = newest.link.version
    if row["version"] != version:
        return [(version, f"it is the newest entry, but the operation has version {row['version']!s}")]
    wrong: list[tuple[int | None, str]] = []
    if row["chain"] != newest.hash:
        wrong.append((version, "the operation is chained to another entry than this, its newest"))
    if row_digest != newest.link.row_digest:
        wrong.append((version, "the operation is not as this entry, its newest, left it"))
    elif row["state"] != newest.link.state:
        wrong.append((version, f"this entry says {newest.link.state}, and the operation {row['state']!s}"))
    if row["claim"] is not None and row["claim"] != _claim(row):
        wrong.append((None, "its claim is not the one of its request: repeats would find another operation"))
    return wrong


def _claim(row: Mapping[str, Value]) -> str | None:
    key = row["idempotency_key"]
    return claim_of(None if key is None else str(key), str(row["fingerprint"]), is_unkeyed_claimed=True)


def _wrong_with_sealed(record: AuditRecord) -> list[tuple[int | None, str]]:
    wrong: list[tuple[int | None, str]] = []
    if not record.can_open_call:
        wrong.append((None, "its sealed call can't be opened: it was changed, or is another operation's"))
    with_answer = [entry.link for entry in record.entries if entry.link.answer_digest]
    if record.answer_digest is None:
        wrong.append((None, "its sealed answer can't be opened: it was changed, or is another operation's"))
    elif record.is_answer_cleared:
        pass
    elif with_answer and not record.answer_digest:
        wrong.append((with_answer[-1].version, "the answer that came with this entry is gone"))
    elif with_answer and record.answer_digest != with_answer[-1].answer_digest:
        wrong.append((with_answer[-1].version, "the stored answer is not the one that came with this entry"))
    elif record.answer_digest and not with_answer and record.checkpoint is None:
        wrong.append((None, "an answer is stored that came with no journal entry"))
    return wrong


async def find_explainable(
    audit: Audit, trail: Trail, *, from_ms: int, until_ms: int, operator: str, reason: str, at_ms: int
) -> list[AnchorExplanation]:
    """Audits everything, and makes the explanations of the anchors that are wrong by added entries; stores nothing.

    ``from_ms`` and ``until_ms`` are the first and the last wrong time that the clock may have given to an entry. Raises
    Refusal where the audit finds anything else, StoreError.

    Only added entries are explained: a span with as many entries as its anchor, or fewer, was changed or lost some.
    Every other finding comes first, so that a changed entry is never explained. An explanation holds for what the span
    has now; what changes there later is found again.
    """
    findings = [finding async for finding in audit.findings()]
    numbers = {finding.anchor for finding in findings}
    _require(all(finding.anchor is not None for finding in findings), _first_other(findings))
    explanations: list[AnchorExplanation] = []
    previous = ""
    async for each in trail.anchors():
        if each.number in numbers:
            now = await trail.anchor(previous, each.span)
            _require_added(each, now, from_ms, until_ms)
            explanations.append(
                AnchorExplanation(
                    number=each.number,
                    anchor=each.digest,
                    entries=each.entries,
                    present=now.digest,
                    present_entries=now.entries,
                    at_ms=at_ms,
                    operator=operator,
                    reason=reason,
                )
            )
        previous = each.digest
    _require(len(explanations) == len(findings), "an anchor is missing, or is not the one that was noted")
    return explanations


def _first_other(findings: Sequence[AuditFinding]) -> str:
    other = next((finding for finding in findings if finding.anchor is None), None)
    return "" if other is None else f"the audit finds more: {other.operation_id or other.row}: {other.text}"


def _require_added(each: Anchor, now: Anchor, from_ms: int, until_ms: int) -> None:
    span = f"{rfc3339(each.from_ms, 'seconds')} to {rfc3339(each.until_ms, 'seconds')}"
    is_named = each.from_ms < until_ms and each.until_ms > from_ms
    _require(is_named, f"anchor {each.number} covers {span}, which is outside of the time that was named")
    _require(
        now.entries > each.entries,
        f"anchor {each.number} has {each.entries} entries, its span has {now.entries}: some were changed or removed",
    )


def _require(is_right: bool, text: str) -> None:  # noqa: FBT001 - an assertion reads so
    if not is_right:
        raise Refusal(Code.CONFLICT, text)
