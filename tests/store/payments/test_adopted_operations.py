"""Operations that are stored together with the proof of their effect, after the database lost commits."""

import asyncio

import msgspec
import pytest
from tests.digests import digests_of
from tests.store.conftest import CHARGE, EVIDENCE, RETENTION, Book

from payrelay.core.answers import Answer
from payrelay.core.outcomes import Facts
from payrelay.core.payments.changes import Report, what_follows
from payrelay.core.payments.operation import Event, JournalEntry, Operation, State
from payrelay.errors import Refusal
from payrelay.recovery.flows.unchanged import unchanged_since
from payrelay.store.engine.database import Database
from payrelay.store.payments.journal import Acceptance, AcceptedOperation
from payrelay.store.payments.resolution import ResolutionStore, Standing

ANSWER = Answer(http_status=200, body=b"{}")


async def adopt(book: Book, operation: Operation, standing: Standing) -> Acceptance:
    """Adopts a payment for an operation, where nothing changed since it stood so."""
    first = JournalEntry(version=1, at_ms=1_000, event=None, state=operation.state, evidence=EVIDENCE)
    report = Report(event=Event.PROVED, evidence=EVIDENCE, answer=ANSWER, facts=Facts(payment_id="320"))
    change = what_follows(operation, report, at_ms=2_000, retention=RETENTION)
    return await book.journal.adopt(
        operation,
        first,
        CHARGE,
        changed=change.operation,
        change=change.entry,
        answer=ANSWER,
        condition=unchanged_since(operation, standing, None),
    )


async def test_of_many_that_adopt_at_once_one_does(book: Book, database: Database) -> None:
    """Whole or not at all: the operation, its two entries and its answer, and nothing of the others."""
    resolution = ResolutionStore(database, digests_of(database))
    order = {"order_id": "A-1", "subject": "order/A-1", "guard": "order/A-1", "state": State.ACCEPTED}
    operations = [book.new(number, **order) for number in range(1, 6)]
    standing = await resolution.standing(operations[0])
    assert standing == Standing(operations=0, changes=0)
    found = await asyncio.gather(*(adopt(book, each, standing) for each in operations), return_exceptions=True)
    adopted = [each.operation for each in found if isinstance(each, AcceptedOperation)]
    assert (len(adopted), sum(isinstance(each, Refusal) for each in found)) == (1, 4)
    stored = await book.journal.get(adopted[0].id)
    assert stored == adopted[0]
    assert (stored.state, stored.payment_id, stored.guard, stored.version) == (State.SUCCEEDED, "320", None, 2)
    assert [entry.event for entry in await book.journal.history(stored.id)] == [None, Event.PROVED]
    assert await book.journal.answer_of(stored.id) == ANSWER
    assert await resolution.standing(book.new(9, **order)) == Standing(operations=1, changes=2)


async def test_a_payment_was_anothers_only_if_that_was_stored_before(book: Book, database: Database) -> None:
    """What was attributed since the recovery began may be a lost operation's."""
    resolution = ResolutionStore(database, digests_of(database))
    owner = msgspec.structs.replace(book.new(1), payment_id="320")
    await book.accept(owner)
    asking = book.new(2)
    assert await resolution.owned_before(asking, ("320", "321"), owner.updated_at_ms + 1) == {"320"}
    assert await resolution.owned_before(asking, ("320", "321"), owner.updated_at_ms) == frozenset()
    with pytest.raises(Refusal):
        await adopt(book, msgspec.structs.replace(asking, state=State.ACCEPTED), Standing(operations=7, changes=7))
