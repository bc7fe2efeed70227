"""Clears old data in small batches: answers, calls, histories, notifications.

Rules:

1. Each batch is one unit of work, with how far the clearing has come. Several processes may clear one database: of two
   that clear one batch, one is undone.
2. An answer and a call are replaced by a sealed mark. So nobody who lacks the key can make it look as if one was
   cleared.
3. A history is cleared only where it is chained, anchored, and fits its row and its anchors. What doesn't fit stays, as
   it is what the audit tells of. Its newest entry goes into the operation's row, together with the checkpoint
   (``core.payments.audit_chain``).
4. What is open, undecided or held, and what a repeat still finds, is passed over, and tried again later.
"""

from collections.abc import Sequence
from enum import Enum, auto
from itertools import takewhile
from typing import Final, NamedTuple

import msgspec

from payrelay.core.payments.audit_chain import (
    AnchorCheckpoint,
    HistoryCheckpoint,
    closed_history,
    closed_text,
    weight,
)
from payrelay.core.payments.operation import CLEARABLE, FINAL, Operation
from payrelay.core.retention import DEFAULT_PERIODS, Kept, Periods
from payrelay.errors import Outdated
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.audit import ChainedEntry, Trail
from payrelay.store.payments.operation_rows import (
    CLEARED,
    answer_context,
    call_context,
)
from payrelay.store.retention.anchored import SPANS_KEPT_MAX, AnchoredSpans
from payrelay.store.statements.payments.operations import OPERATIONS
from payrelay.store.statements.retention import clearing as statements

BATCH: Final = 64
"""Operations of one batch: it holds the embedded database for some milliseconds."""
TRIED_AGAIN_MS: Final = 3_600_000
"""How long what could not be cleared is left alone."""
MARK_BYTES_MAX: Final = 64
"""The length of a sealed mark; a sealed call or answer is longer."""

_encode: Final = msgspec.json.Encoder().encode


class Progress(NamedTuple):
    """How far the clearing of one kind has come; ``reached`` is the id of the last row that it looked at."""

    reached: str = ""
    cleared: int = 0
    ran_at_ms: int = 0


class Batch(NamedTuple):
    """What one batch did: how many were cleared, and whether it came to data that is young enough to be kept."""

    cleared: int
    is_done: bool


class _Fate(Enum):
    """What becomes of an operation in a batch."""

    CLEARED = auto()
    LATER = auto()
    NEEDLESS = auto()
    """It has nothing that may be cleared."""


class _Plan(NamedTuple):
    """What is to be written in one batch."""

    reached: str
    is_done: bool
    cleared: list[Operation]
    later: list[str]
    needless: list[str]
    is_again: bool = False


class _History(NamedTuple):
    """A history that is to be cleared: the entries that go, and what is kept of it."""

    cleared: tuple[ChainedEntry, ...]
    kept: str


class Clearing:
    """Clears old data of a database; ``trail`` is the audit's view of its journal.

    Attributes:
        periods: how long each kind of data is kept.
        idle_until_s: until when no old data of a kind is looked for, because there was none; seconds since the boot.
    """

    def __init__(
        self,
        database: Database,
        seal: Seal,
        rows: RowDigests,
        trail: Trail,
        *,
        periods: Periods = DEFAULT_PERIODS,
        spans_kept_max: int = SPANS_KEPT_MAX,
    ) -> None:
        self.periods = periods
        self.idle_until_s: dict[Kept, float] = {}
        self._database = database
        self._seal = seal
        self._rows = rows
        self._trail = trail
        self._spans = AnchoredSpans(database, trail, kept_max=spans_kept_max)

    async def progress(self) -> dict[Kept, Progress]:
        """Reads how far the clearing of each kind has come. Raises StoreUnavailable."""
        rows = await self._database.read(all_rows(Statement(statements.GET_CLEARING, ())))
        known = {
            str(kind): Progress(str(reached), int(cleared or 0), int(at or 0)) for kind, reached, cleared, at in rows
        }
        return {kept: known.get(kept, Progress()) for kept in Kept}

    async def skipped(self) -> dict[Kept, int]:
        """Counts what could not be cleared and is tried again, by kind. Raises StoreUnavailable."""
        rows = await self._database.read(all_rows(Statement(statements.COUNT_SKIPPED, ())))
        known = {str(kind): int(number or 0) for kind, number in rows}
        return {kept: known.get(kept, 0) for kept in Kept}

    async def oldest_ms(self, kept: Kept, reached: str) -> int | None:
        """Reads the time of the oldest data of a kind that the clearing has not come to; None where there is none.

        Raises StoreUnavailable.
        """
        statement = Statement(statements.FIRST_LEFT, (reached,))
        if kept is Kept.EVENTS:
            statement = Statement(statements.FIRST_EVENT, ())
        elif kept is Kept.NOTIFICATIONS:
            statement = Statement(statements.FIRST_NOTIFICATION_LEFT, (reached,))
        rows = await self._database.read(all_rows(statement))
        return int(rows[0][0] or 0) if rows else None

    async def clear(self, kept: Kept, before_ms: int, now_ms: int, *, limit: int = BATCH) -> Batch:
        """Clears one batch of a kind other than events: what ended before a time; may be repeated.

        Where another process clears the same at this moment, nothing is cleared. Raises StoreError.
        """
        progress = (await self.progress())[kept]
        if not progress.ran_at_ms:
            await self._database.write(
                all_rows(Statement(statements.BEGIN_CLEARING, (kept.value, now_ms), is_whole=True))
            )
        try:
            if kept is Kept.NOTIFICATIONS:
                return await self._clear_notifications(progress.reached, before_ms, now_ms, limit)
            return await self._clear_operations(kept, progress.reached, before_ms, now_ms, limit)
        except Outdated:
            return Batch(0, is_done=False)

    async def retry(self, kept: Kept, before_ms: int, now_ms: int, *, limit: int = BATCH) -> int:
        """Clears what could not be cleared an hour ago; gives how many were cleared. Raises StoreError."""
        parameters = (kept.value, now_ms - TRIED_AGAIN_MS, limit)
        rows = await self._database.read(all_rows(Statement(statements.SKIPPED_OPERATIONS, parameters)))
        if not rows:
            return 0
        reached = (await self.progress())[kept].reached
        plan = await self._planned(kept, rows, before_ms, now_ms)
        try:
            return await self._carry_out(kept, plan._replace(reached=reached, is_again=True), reached, now_ms)
        except Outdated:
            return 0

    async def release_pages(self) -> None:
        """Gives some free pages of an embedded database's file back to the disk. Raises StoreUnavailable."""
        await self._database.write(all_rows(Statement(statements.RELEASE_PAGES, ())))

    async def _clear_operations(self, kept: Kept, reached: str, before_ms: int, now_ms: int, limit: int) -> Batch:
        rows = await self._database.read(all_rows(Statement(statements.PAGE_OF_OPERATIONS, (reached, limit))))
        created = OPERATIONS.columns.index("created_at_ms")
        old = list(takewhile(lambda row: int(row[created] or 0) < before_ms, rows))
        if not old:
            return Batch(0, is_done=True)
        plan = await self._planned(kept, old, before_ms, now_ms)
        cleared = await self._carry_out(kept, plan, reached, now_ms)
        return Batch(cleared, is_done=len(old) < limit)

    async def _planned(self, kept: Kept, rows: Sequence[Row], before_ms: int, now_ms: int) -> _Plan:
        plan = _Plan(str(rows[-1][0]), is_done=False, cleared=[], later=[], needless=[])
        for *columns, call, answer in rows:
            if not await self._rows.is_right(OPERATIONS, columns):
                plan.needless.append(str(columns[0]))
                continue
            operation = OPERATIONS.value(columns[:-1])
            length = {Kept.CALLS: call, Kept.ANSWERS: answer}.get(kept, MARK_BYTES_MAX + 1)
            is_stored = isinstance(length, int) and length > MARK_BYTES_MAX
            fate = _fate(operation, before_ms, now_ms)
            if fate is _Fate.CLEARED and is_stored:
                plan.cleared.append(operation)
            else:
                (plan.later if fate is _Fate.LATER else plan.needless).append(operation.id)
        return plan

    async def _carry_out(self, kept: Kept, plan: _Plan, before: str, now_ms: int) -> int:
        if kept is Kept.HISTORIES:
            plan, histories = await self._with_histories(plan)
            return await self._database.write(self._cleared_histories(plan, histories, before, now_ms))
        marks = [self._mark(kept, operation, now_ms) for operation in plan.cleared]
        return await self._database.write(_cleared_values(kept, plan, marks, (before, now_ms)))

    def _mark(self, kept: Kept, operation: Operation, now_ms: int) -> Statement:
        if kept is Kept.CALLS:
            return Statement(
                statements.CLEAR_CALL, (operation.id, self._seal.seal(CLEARED, call_context(operation.id)))
            )
        mark = self._seal.seal(CLEARED, answer_context(operation.id))
        return Statement(statements.CLEAR_ANSWER, (operation.id, mark, now_ms))

    async def _with_histories(self, plan: _Plan) -> tuple[_Plan, dict[str, _History]]:
        """Reads the histories that are to be cleared; those that can't be now go to ``later`` or ``needless``."""
        cleared, later, needless = list[Operation](), [*plan.later], [*plan.needless]
        histories = {}
        self._spans.begin_batch()
        anchored_ms = await self._spans.anchored_until_ms()
        for operation in plan.cleared:
            entries = await self._trail.entries_of(operation.id)
            kept = _kept_of(entries, operation, self._trail) if len(entries) > 1 else None
            if kept is None:
                needless.append(operation.id)
                continue
            times = [entry.link.at_ms for entry in entries]
            if max(times) < anchored_ms and await self._spans.are_right(times[:-1]):
                cleared.append(operation)
                histories[operation.id] = _History(entries[:-1], kept)
            else:
                later.append(operation.id)
        return plan._replace(cleared=cleared, later=later, needless=needless), histories

    def _cleared_histories(self, plan: _Plan, histories: dict[str, _History], before: str, now_ms: int) -> Unit[int]:
        kept = Kept.HISTORIES
        yield from _advanced(kept, before, plan, len(plan.cleared), now_ms)
        if plan.cleared:
            for operation in plan.cleared:
                values = (operation.id, operation.chain, histories[operation.id].kept)
                if not (yield Statement(statements.CLOSE_HISTORY, values)):
                    raise Outdated("another process has closed the history, or the operation was changed")
            ids = _encode([operation.id for operation in plan.cleared]).decode()
            removed = {(str(id_), version) for id_, version in (yield Statement(statements.CLEAR_ENTRIES, (ids,)))}
            weights: dict[int, list[int]] = {}
            for history in histories.values():
                for entry in history.cleared:
                    if (entry.link.operation_id, entry.link.version) in removed:
                        number = self._spans.number_at(entry.link.at_ms)
                        weights.setdefault(number, []).append(weight(self._trail.key, *entry.link[:2], entry.hash))
            for number in sorted(weights):
                yield from self._taken_off(number, weights[number])
        yield from _noted(kept, plan, now_ms)
        return len(plan.cleared)

    def _taken_off(self, number: int, weights: list[int]) -> Unit[None]:
        """Takes cleared entries off the checkpoint of their anchor."""
        found = yield Statement(statements.GET_ANCHOR_CHECKPOINT, (number,))
        present = self._spans.first_checkpoint(number)
        if found:
            *members, signature = found[0]
            present = AnchorCheckpoint(*members)  # type: ignore[arg-type] # columns have their types by the schema
            if present.signature(self._trail.key) != signature:
                raise Outdated(f"the checkpoint of anchor {number} is not as it was stored")
        left = present.without(weights)
        yield Statement(statements.PUT_ANCHOR_CHECKPOINT, (*left, left.signature(self._trail.key)))

    async def _clear_notifications(self, reached: str, before_ms: int, now_ms: int, limit: int) -> Batch:
        rows = await self._database.read(all_rows(Statement(statements.PAGE_OF_NOTIFICATIONS, (reached, limit))))
        old = [str(id_) for id_, _ in takewhile(lambda row: int(row[1] or 0) < before_ms, rows)]
        if not old:
            return Batch(0, is_done=True)
        cleared = await self._database.write(_cleared_notifications(reached, old[-1], now_ms))
        return Batch(cleared, is_done=len(old) < limit)


def _fate(operation: Operation, before_ms: int, now_ms: int) -> _Fate:
    """Decides what becomes of one operation in this batch."""
    if operation.state not in FINAL or operation.updated_at_ms >= before_ms:
        return _Fate.LATER
    if operation.state not in CLEARABLE:
        return _Fate.NEEDLESS
    if (operation.claim_ends_at_ms or 0) > now_ms:
        return _Fate.LATER
    return _Fate.CLEARED


def _kept_of(entries: tuple[ChainedEntry, ...], operation: Operation, trail: Trail) -> str | None:
    """Gives what is to be kept of a history; None where it isn't chained, or the row is not as its end left it."""
    if not _is_chained(entries, operation, trail):
        return None
    *_, last, newest = entries
    checkpoint = HistoryCheckpoint(operation.id, newest.link.version, last.hash, last.link.state)
    kept = closed_text(checkpoint, newest.link, trail.key)
    closed = closed_history(kept, OPERATIONS.row(operation), trail.key)
    return kept if closed is not None and closed.is_right(trail.key) else None


def _is_chained(entries: tuple[ChainedEntry, ...], operation: Operation, trail: Trail) -> bool:
    previous = ""
    for version, entry in enumerate(entries, start=1):
        if entry.link.version != version or not entry.hash or trail.key.entry(previous, entry.link) != entry.hash:
            return False
        previous = entry.hash
    return previous == operation.chain


def _cleared_values(kept: Kept, plan: _Plan, marks: list[Statement], moment: tuple[str, int]) -> Unit[int]:
    before, now_ms = moment
    yield from _advanced(kept, before, plan, len(marks), now_ms)
    for mark in marks:
        if not (yield mark):
            raise Outdated("an operation was changed since it was read")
    yield from _noted(kept, plan, now_ms)
    return len(marks)


def _advanced(kept: Kept, before: str, plan: _Plan, cleared: int, now_ms: int) -> Unit[None]:
    if not (yield Statement(statements.ADVANCE, (kept.value, before, plan.reached, cleared, now_ms))):
        raise Outdated("another process clears the same")


def _noted(kept: Kept, plan: _Plan, now_ms: int) -> Unit[None]:
    for operation_id in plan.later:
        yield Statement(statements.SKIP, (kept.value, operation_id, now_ms))
    if plan.is_again:
        for operation_id in (*(each.id for each in plan.cleared), *plan.needless):
            yield Statement(statements.FORGET_SKIPPED, (kept.value, operation_id))


def _cleared_notifications(reached: str, until: str, now_ms: int) -> Unit[int]:
    cleared = len((yield Statement(statements.CLEAR_NOTIFICATIONS, (reached, until))))
    if not (yield Statement(statements.ADVANCE, (Kept.NOTIFICATIONS.value, reached, until, cleared, now_ms))):
        raise Outdated("another process clears the same")
    return cleared
