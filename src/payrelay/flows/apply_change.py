"""The one way in which an operation changes: decided, stored with all that belongs to it, and announced.

Rules, each with a test that tries to break it:

1. Whoever has news of an operation brings it as a ``Report``: a sender, a look, a recovery, a notification, a person.
   ``core.payments.changes`` decides what follows, and says which news loses; this stores it, and nobody else does.
2. Row, line of history, kept answer and the event that tells of it are one commit (``store.payments.journal``). An
   exception means that nothing was stored; only a StoreDoubtful leaves that open.
3. Where another writer was quicker, first-hand news is decided anew on the row as it then stands: nobody else would
   ever tell it. What was judged from the row that was read is void, and Outdated says so: it is to be judged anew.
4. News that loses is Overruled, and what stands stays. Where the two contradict each other, an error is logged.
5. A guard that the change would take, and that another operation holds by now, is done without.
6. RECORDING is announced before a commit and RECORDED after it, and then, to all who wait or count, the stored row.

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

DECISIONS_MAX: Final = 5
"""How often a row may change under first-hand news before we call it our own fault; a row has at most three writers."""


class OverruledError(IllegalTransition):
    """The news says nothing against what stands; ``operation`` is the row as it does, as far as it could be read."""

    def __init__(self, operation: Operation, report: Report, reason: str) -> None:
        super().__init__(reason)
        self.operation = operation
        self.is_agreed = state_implied_by(report) is operation.state
        """What stands is what the news says."""


async def apply(relay: Relay, operation: Operation, report: Report) -> Change:
    """Changes an operation by what is reported of it; ``operation`` is the row as the reporter knows it.

    Gives the change with the row as it is stored. Raises Outdated where somebody else was quicker, of first-hand news
    only where that happened DECISIONS_MAX times in a row; Overruled where the news loses; and StoreError.
    """
    current, meanwhile = operation, list[JournalEntry]()
    for _ in range(DECISIONS_MAX if report.is_firsthand else 1):
        now_ms = relay.clock.now_ms()
        try:
            change = what_follows(current, report, at_ms=now_ms, retention=relay.retention, meanwhile=meanwhile)
        except IllegalTransition as error:
            raise _overruled(relay, current, report, str(error)) from error
        with suppress(Outdated):
            return await _commit(relay, current, change)
        if report.is_firsthand:
            current, meanwhile = await _as_it_stands(relay, operation, report)
    raise Outdated(f"operation {operation.id} was changed since it was read")


async def _commit(relay: Relay, before: Operation, change: Change) -> Change:
    relay.hooks.reached(OperationPoint.RECORDING, before.id)
    stored = await _stored(relay, before, change)
    relay.hooks.reached(OperationPoint.RECORDED, before.id)
    relay.hooks.operation_changed(stored)
    return msgspec.structs.replace(change, operation=stored)


async def _stored(relay: Relay, before: Operation, change: Change) -> Operation:
    try:
        return await relay.journal.record(change.operation, change.entry, change.answer)
    except Outdated:
        if change.operation.guard in {None, before.guard}:
            raise
        # The row has moved on, or another one holds the guard that this would take: the second try tells which.
        unguarded = msgspec.structs.replace(change.operation, guard=None)
        return await _stored(relay, before, msgspec.structs.replace(change, operation=unguarded))


async def _as_it_stands(relay: Relay, known: Operation, report: Report) -> tuple[Operation, list[JournalEntry]]:
    """Reads the row anew, and the lines that came since the reporter knew it."""
    current = await relay.journal.get(known.id)
    if current is None:
        raise _overruled(relay, known, report, f"operation {known.id} is gone from the store")
    return current, [entry for entry in await relay.journal.history(known.id) if entry.version > known.version]


def _overruled(relay: Relay, operation: Operation, report: Report, reason: str) -> OverruledError:
    """Makes the exception; logs where first-hand news of the outcome contradicts what stands.

    A row that was never known to be stored, for its commit was in doubt, contradicts nothing by not being there.
    """
    overruled = OverruledError(operation, report, reason)
    if report.is_firsthand and state_implied_by(report) is not None and operation.chain and not overruled.is_agreed:
        relay.log.error(
            "reply_after_settling", operation_id=operation.id, state=operation.state, kind=report.event.value
        )
    return overruled
