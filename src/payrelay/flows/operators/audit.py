"""The audit: makes anchors, and finds what was changed or removed of operations and their histories.

It reports each finding in one plain sentence, and repairs nothing.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from payrelay.core.moments import rfc3339
from payrelay.core.payments.audit_chain import HASHED, AnchoredSpan, digest_of_values
from payrelay.core.payments.idempotency import claim_of
from payrelay.flows.relay import Relay
from payrelay.store.engine.database import Value
from payrelay.store.payments.audit import Anchor, AuditRecord, ChainedEntry, Trail

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


class Phase(StrEnum):
    """What the audit is checking."""

    ANCHORS = "anchors"
    OPERATIONS = "operations"


Progress = Callable[[Phase, int, int], None]
"""Called with a phase, how many of it were checked, and how many there are."""


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as Payrelay stored it.

    Attributes:
        operation_id: the operation that is concerned; None where the finding is about an anchor.
        version: the version of its journal entry; None where the finding is about the whole operation.
        anchor: the number of the anchor; None where the finding is about an operation.
        text: what is wrong, in plain words.
    """

    text: str
    operation_id: str | None = None
    version: int | None = None
    anchor: int | None = None


class Summary(msgspec.Struct, kw_only=True):
    """What the audit has checked so far.

    Attributes:
        operations, entries, anchors, findings: how many of each.
        entries_before_chain: journal entries that a version of Payrelay without the audit chain wrote.
        entries_unanchored: journal entries that are younger than the newest anchor.
        chain_since_ms: when the chain began.
        anchored_until_ms, newest_anchor: up to when entries are anchored, and the newest anchor's number and digest;
            None without an anchor.
    """

    chain_since_ms: int
    operations: int = 0
    entries: int = 0
    anchors: int = 0
    findings: int = 0
    entries_before_chain: int = 0
    entries_unanchored: int = 0
    anchored_until_ms: int | None = None
    newest_anchor: str | None = None


async def keep_anchors(relay: Relay) -> int:
    """Makes the anchors that are due, and logs them, where no writer of the database can change them; returns how many.

    Raises StoreError.
    """
    made = await anchor(relay.journal.trail, relay.clock.now_ms())
    for each in made:
        relay.log.info("history_anchored", anchor=f"{each.number}:{each.digest}", entries=each.entries)
    return len(made)


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

    ``noted`` are digests of anchors by their numbers, noted where nobody can change them with the database. Only they
    show that the newest anchors, and the entries that these covered, are still there.
    """

    def __init__(
        self, trail: Trail, chain_since_ms: int, progress: Progress, *, noted: Mapping[int, str] = MappingProxyType({})
    ) -> None:
        self._trail = trail
        self._progress = progress
        self._noted = dict(noted)
        self.summary = Summary(chain_since_ms=chain_since_ms)

    async def findings(self) -> AsyncIterator[AuditFinding]:
        """Checks every anchor and every operation, and yields what isn't as Payrelay stored it.

        May run beside servers; what they change meanwhile is no finding. Raises StoreError.
        """
        for check in (self._anchors, self._operations):
            async for finding in check():
                self.summary.findings += 1
                yield finding

    async def _anchors(self) -> AsyncIterator[AuditFinding]:
        last, summary = await self._trail.last_anchor(), self.summary
        before: Anchor | None = None
        async for each in self._trail.anchors():
            self._progress(Phase.ANCHORS, each.number, last.number if last else each.number)
            for text in await self._wrong_with_anchor(before, each):
                yield AuditFinding(anchor=each.number, text=text)
            if self._noted.pop(each.number, each.digest) != each.digest:
                yield AuditFinding(anchor=each.number, text="it is not the one that was noted")
            before = each
            summary.anchors += 1
            summary.anchored_until_ms, summary.newest_anchor = each.until_ms, f"{each.number}:{each.digest}"
        for number in self._noted:
            yield AuditFinding(anchor=number, text="it was noted, and is gone")

    async def _wrong_with_anchor(self, before: Anchor | None, each: Anchor) -> list[str]:
        number, until_ms = (before.number, before.until_ms) if before else (0, 0)
        if each.number != number + 1:
            return [f"anchor {number + 1} is missing before it"]
        if each.from_ms != until_ms:
            return ["it doesn't begin where the anchor before it ends"]
        now = await self._trail.anchor(before.digest if before else "", each.span)
        if now == each:
            return []
        found = f"; there are {now.entries} entries, and it has {each.entries}" if now.entries != each.entries else ""
        between = f"between {rfc3339(each.from_ms, 'seconds')} and {rfc3339(each.until_ms, 'seconds')}"
        return [f"it was changed, or journal entries {between} were changed, removed or added{found}"]

    async def _operations(self) -> AsyncIterator[AuditFinding]:
        total = await self._trail.count_operations()
        async for first_reading in self._trail.records():
            record = first_reading
            if _wrong(record, self._trail, self.summary.chain_since_ms):
                record = await self._trail.record(record.operation_id)  # a server may have changed it in between
            for finding in _wrong(record, self._trail, self.summary.chain_since_ms):
                yield finding
            self._count(record)
            self._progress(Phase.OPERATIONS, self.summary.operations, max(total, self.summary.operations))

    def _count(self, record: AuditRecord) -> None:
        summary = self.summary
        summary.operations += record.row is not None
        summary.entries += len(record.entries)
        summary.entries_before_chain += sum(_is_before_chain(entry, summary.chain_since_ms) for entry in record.entries)
        anchored_until_ms = summary.anchored_until_ms or 0
        summary.entries_unanchored += sum(entry.link.at_ms >= anchored_until_ms for entry in record.entries)


def _is_before_chain(entry: ChainedEntry, since_ms: int) -> bool:
    """True for an entry of a version without the chain. One dated before 1970, where no anchor reaches, is none."""
    return not entry.hash and 0 <= entry.link.at_ms < since_ms


def _wrong(record: AuditRecord, trail: Trail, since_ms: int) -> list[AuditFinding]:
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
            *_wrong_with_entries(record.entries, trail, since_ms),
            *_wrong_with_row(record.row, record.entries[-1]),
            *_wrong_with_sealed(record),
        )
    ]


def _wrong_with_entries(entries: tuple[ChainedEntry, ...], trail: Trail, since_ms: int) -> list[tuple[int | None, str]]:
    wrong: list[tuple[int | None, str]] = []
    previous, next_version = "", 1
    for entry in entries:
        version = entry.link.version
        if version != next_version:
            wrong.append((version, f"it is where entry {next_version} should be; that one is gone"))
        elif not entry.hash:
            if previous or not _is_before_chain(entry, since_ms):
                wrong.append((version, "it has no hash, although it was written after the chain began"))
        elif trail.key.entry(previous, entry.link) != entry.hash:
            wrong.append((version, "it was changed, or the entry before it was: its hash doesn't follow"))
        previous, next_version = entry.hash, version + 1
    return wrong


def _wrong_with_row(row: Mapping[str, Value], newest: ChainedEntry) -> list[tuple[int | None, str]]:
    version = newest.link.version
    if row["version"] != version:
        return [(version, f"it is the newest entry, but the operation has version {row['version']!s}")]
    wrong: list[tuple[int | None, str]] = []
    if row["chain"] != newest.hash:
        wrong.append((version, "the operation is chained to another entry than this, its newest"))
    if newest.hash and digest_of_values(tuple(row[name] for name in HASHED)) != newest.link.row_digest:
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
    elif with_answer and not record.answer_digest:
        wrong.append((with_answer[-1].version, "the answer that came with this entry is gone"))
    elif with_answer and record.answer_digest != with_answer[-1].answer_digest:
        wrong.append((with_answer[-1].version, "the stored answer is not the one that came with this entry"))
    elif record.answer_digest and not with_answer and all(entry.hash for entry in record.entries):
        wrong.append((None, "an answer is stored that came with no journal entry"))
    return wrong
