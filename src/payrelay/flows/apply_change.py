"""The one way in which an operation changes: a report is decided, stored in one commit, and announced.

Rules, each with a test that tries to break it:

1. Each change of an operation begins as a ``Report``: of a sender, a status inquiry, the recovery after a crash, a
   notification or an operator. ``core.payments.changes`` decides what follows, and which reports are overruled. Only
   this module stores the change.
2. The row, the journal entry, the stored answer and the event are one commit (``store.payments.journal``). An
   exception means that nothing was stored; only a StoreDoubtful leaves that open.
3. Where another writer was quicker, a first-hand report is decided anew on the current row, because nobody else will
   ever report it. A conclusion drawn from the row that was read is void: Outdated says that it must be drawn anew.
4. A report that loses raises OverruledError, and the row stays as it is. Where the two contradict each other, an error
   is logged.
5. A change whose guard another operation holds by now is stored without the guard.
6. The crash point RECORDING comes before a commit, and RECORDED after it. Then the hooks get the stored row.

To be changed together: ``core.payments.changes`` (what follows), ``store.payments.journal`` (what is atomic) and this
file.
"""

from contextlib import suppress
from typing import Final

import msgspec

from payrelay.core.payments.changes import Change, Report, state_implied_by, what_follows
from payrelay.core.payments.operation import JournalEntry, Operation
from payrelay.errors import IllegalTransition, Outdated
from payrelay.flows.relay import Relay
from payrelay.runtime.hooks import OperationPoint

ATTEMPTS_MAX: Final = 5
"""Attempts to store a first-hand report on an operation that others change at the same time, before that counts as our
own fault. A row has at most three writers."""


class OverruledError(IllegalTransition):
    """The report loses against the current row; ``operation`` is that row as far as it could be read."""

    def __init__(self, operation: Operation, report: Report, reason: str) -> None:
        super().__init__(reason)
        self.operation = operation
        self.is_agreed = state_implied_by(report) is operation.state
        """True where the row is in the state that the report calls for."""


async def apply(relay: Relay, operation: Operation, report: Report) -> Change:
    """Changes an operation by a report; ``operation`` is the row as the reporter knows it.

    Returns the change with the row as it is stored. Raises Outdated where another writer was quicker; for a first-hand
    report only where that happened ATTEMPTS_MAX times in a row. Raises OverruledError where the report loses, and
    StoreError.
    """
    if relay.hooks.spans is not None:
        evidence = msgspec.structs.replace(report.evidence, traceparent=relay.hooks.spans.traceparent())
        report = msgspec.structs.replace(report, evidence=evidence)
    current, meanwhile = operation, list[JournalEntry]()
    for _ in range(ATTEMPTS_MAX if report.is_firsthand else 1):
        now_ms = relay.clock.now_ms()
        try:
            change = what_follows(
                current, report, at_ms=now_ms, retention=relay.settings.retention, meanwhile=meanwhile
            )
        except IllegalTransition as error:
            raise _overruled(relay, current, report, str(error)) from error
        may_be_paid_again = report.may_be_paid_again or bool(meanwhile)
        with suppress(Outdated):
            return await _commit(relay, current, change, may_be_paid_again=may_be_paid_again)
        if report.is_firsthand:
            current, meanwhile = await _reread(relay, operation, report)
    raise Outdated(f"operation {operation.id} was changed since it was read")


async def _commit(relay: Relay, before: Operation, change: Change, *, may_be_paid_again: bool) -> Change:
    relay.hooks.reached(OperationPoint.RECORDING, before.id)
    stored = await _record(relay, before, change, may_be_paid_again=may_be_paid_again)
    relay.hooks.reached(OperationPoint.RECORDED, before.id)
    relay.hooks.operation_changed(stored)
    return msgspec.structs.replace(change, operation=stored)


async def _record(relay: Relay, before: Operation, change: Change, *, may_be_paid_again: bool) -> Operation:
    try:
        return await relay.journal.record(
            change.operation, change.entry, change.answer, may_be_paid_again=may_be_paid_again
        )
    except Outdated:
        if change.operation.guard in {None, before.guard}:
            raise
        # The row has changed, or another operation holds the guard: the second try shows which of the two.
        unguarded = msgspec.structs.replace(change.operation, guard=None)
        change = msgspec.structs.replace(change, operation=unguarded)
        return await _record(relay, before, change, may_be_paid_again=may_be_paid_again)


async def _reread(relay: Relay, known: Operation, report: Report) -> tuple[Operation, list[JournalEntry]]:
    """Reads the current row, and the journal entries that are newer than the row that the reporter knows."""
    current = await relay.journal.get(known.id)
    if current is None:
        raise _overruled(relay, known, report, f"operation {known.id} is gone from the store")
    return current, [entry for entry in await relay.journal.history(known.id) if entry.version > known.version]


def _overruled(relay: Relay, operation: Operation, report: Report, reason: str) -> OverruledError:
    """Makes the exception, and logs an error where a first-hand report of the outcome contradicts the current row.

    A missing row contradicts nothing where its commit was in doubt.
    """
    overruled = OverruledError(operation, report, reason)
    if report.is_firsthand and state_implied_by(report) is not None and operation.chain and not overruled.is_agreed:
        relay.log.error(
            "reply_after_resolution", operation_id=operation.id, state=operation.state, event_name=report.event
        )
    return overruled
