"""Any sequence of accepts and changes, beside a model that fits in a few lines."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.draws import examples
from tests.samples import CANCEL

from payrelay.clock import Clock
from payrelay.core.calls import CancelSubscription
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import (
    TRANSITIONS,
    Event,
    JournalEntry,
    Operation,
    OperationFilter,
    Retention,
    advance,
)
from payrelay.errors import Outdated
from payrelay.store import open_database
from payrelay.store.engine.sealing import Seal
from payrelay.store.engine.sqlite import InlineExecutor
from payrelay.store.payments.journal import AcceptedOperation, ClaimedOperation, GuardedOperation, Journal

RETENTION: Final = Retention(keyed_ms=3, unkeyed_ms=1)
CALL: Final = CancelSubscription(subscription_id=1)


class Accept(msgspec.Struct, frozen=True):
    """Somebody asks for an operation."""

    claim: str | None
    guard: str


class Change(msgspec.Struct, frozen=True):
    """News come of one of the operations, which may have been read some versions ago."""

    number: int
    event: Event
    is_outdated: bool


STEPS: Final = st.lists(
    st.one_of(
        st.builds(
            Accept, claim=st.sampled_from(["key/1", "key/2", None]), guard=st.sampled_from(["order/1", "order/2"])
        ),
        st.builds(Change, number=st.integers(0, 5), event=st.sampled_from(Event), is_outdated=st.booleans()),
    ),
    max_size=25,
)


class Model:
    """What the journal must hold: the operations in the order of their ids."""

    def __init__(self) -> None:
        self.rows: dict[str, Operation] = {}

    def expected(self, new: Operation, now_ms: int) -> type[AcceptedOperation | ClaimedOperation | GuardedOperation]:
        """Tells what an accept gives; a lapsed claim in its way is gone."""
        holder = next((row for row in self.rows.values() if new.claim and row.claim == new.claim), None)
        if holder is not None and (holder.claim_ends_at_ms is None or holder.claim_ends_at_ms > now_ms):
            return ClaimedOperation
        if any(row.guard == new.guard for row in self.rows.values()):
            self._release(holder)
            return GuardedOperation
        self._release(holder)
        return AcceptedOperation

    def _release(self, holder: Operation | None) -> None:
        if holder is not None:
            self.rows[holder.id] = msgspec.structs.replace(holder, claim=None, claim_ends_at_ms=None)


def _new(number: int, step: Accept, now_ms: int) -> Operation:
    return msgspec.structs.replace(
        CANCEL,
        id=f"op_{number:026d}",
        subject=step.guard,
        guard=step.guard,
        claim=step.claim,
        idempotency_key=step.claim,
        created_at_ms=now_ms,
        updated_at_ms=now_ms,
        send_by_ms=now_ms,
    )


async def _change(journal: Journal, model: Model, step: Change, now_ms: int) -> None:
    rows = list(model.rows.values())
    if step.number >= len(rows) or (rows[step.number].state, step.event) not in TRANSITIONS:
        return
    row = rows[step.number]
    read = msgspec.structs.replace(row, version=row.version - 1) if step.is_outdated else row
    changed, entry = advance(read, step.event, at_ms=now_ms, retention=RETENTION, evidence=Evidence())
    try:
        stored = await journal.record(changed, entry, None)
    except Outdated:
        assert step.is_outdated
    else:
        assert not step.is_outdated
        model.rows[row.id] = stored


async def _run(steps: Sequence[Accept | Change], folder: Path) -> None:
    executor = InlineExecutor()
    database = await open_database(sqlite_url(folder / "db"), clock=Clock(), owner=True, executor=executor)
    journal, model = Journal(database, Seal((b"k" * 32,)), digests_of(database), chain_key=b"c" * 32), Model()
    for now_ms, step in enumerate(steps):
        if isinstance(step, Change):
            await _change(journal, model, step, now_ms)
            continue
        new = _new(now_ms, step, now_ms)
        entry = JournalEntry(version=1, at_ms=now_ms, event=None, state=new.state, evidence=Evidence())
        result = await journal.accept(new, entry, CALL, conflicts_with=None, now_ms=now_ms)
        assert type(result) is model.expected(new, now_ms)
        if isinstance(result, AcceptedOperation):
            model.rows[new.id] = result.operation
    held = await journal.list(OperationFilter(), before=None, limit=100)
    assert held == sorted(model.rows.values(), key=lambda row: row.id, reverse=True)
    for row in held:
        assert [entry.version for entry in await journal.history(row.id)] == list(range(1, row.version + 1))
    await database.close()


@settings(max_examples=examples(60))
@given(STEPS)
def test_the_journal_does_what_the_model_does(steps: list[Accept | Change]) -> None:
    """Claims, guards, versions and histories hold together in any order of events, not only in those we thought of."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_run(steps, Path(folder)))
