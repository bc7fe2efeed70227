# ruff: noqa: S608 - what is put into the texts are ids that are named here

from typing import Any, Final

import pytest
from tests.digests import digests_of
from tests.store.conftest import Tamper

from payrelay.core.answers import Answer
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.core.payments.operation import CLEARABLE, Event
from payrelay.core.retention import Kept
from payrelay.errors import CallCleared, OperationForged, StoreError
from payrelay.flows.operators.audit import ANCHOR_EVERY_MS, FINAL_AFTER_MS, Audit, anchor
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.audit import Trail
from payrelay.store.retention.clearing import TRIED_AGAIN_MS, Clearing
from payrelay.store.statements.retention import clearing as statements

Book = Any  # conftest.Book; test folders are not packages, so that it can't be imported

SEAL: Final = Seal((b"k" * 32,))
ANSWER: Final = Answer(http_status=200, body=b"{}")
OPERATION_KINDS: Final = (Kept.ANSWERS, Kept.CALLS, Kept.HISTORIES)
LATER_MS: Final = FINAL_AFTER_MS + ANCHOR_EVERY_MS
"""By then everything that the tests write is anchored."""
OLD_MS: Final = 5_000
"""What ended before this time is old; entries are of the times 1000 and 2000."""
NOW_MS: Final = 100_000_000


def trail_of(book: Book) -> Trail:
    """Gives what the audit reads."""
    return Trail(book.database, SEAL, ChainKey(b"c" * 32))


def clearing_of(book: Book) -> Clearing:
    """Gives the clearing of a book."""
    return Clearing(book.database, SEAL, digests_of(book.database), trail_of(book))


async def cleared(book: Book, *kinds: Kept, before_ms: int = OLD_MS, now_ms: int = NOW_MS) -> int:
    """Clears all that is old, as often as there is something left; gives how much that was."""
    clearing, number = clearing_of(book), 0
    for kept in kinds or OPERATION_KINDS:
        is_done = False
        while not is_done:
            batch = await clearing.clear(kept, before_ms, now_ms, limit=2)
            number, is_done = number + batch.cleared, batch.is_done
        number += await clearing.retry(kept, before_ms, now_ms)
    return number


async def findings(book: Book) -> list[str]:
    """Gives all that the audit finds, in words."""
    audit = Audit(trail_of(book), 0, lambda *_: None)
    return [finding.text async for finding in audit.findings()]


async def count(database: Database, table: str, where: str = "true") -> int:
    """Counts rows."""
    rows = await database.read(all_rows(Statement(query(f"SELECT count(*) FROM {table} WHERE {where}"), ())))
    return int(rows[0][0] or 0)


def operation_of(book: Book, number: int) -> Any:  # noqa: ANN401
    """Gives an operation of a book that was made at the time 1000."""
    return book.new(number, created_at_ms=1_000, updated_at_ms=1_000)


@pytest.fixture
async def filled(book: Book) -> Book:
    """Gives a book with five operations that succeeded, of three entries each, all of them anchored."""
    for number in range(1, 6):
        operation = operation_of(book, number)
        await book.accept(operation)
        unknown = await book.advance(operation, Event.UNKNOWN)
        await book.advance(unknown, Event.SUCCEEDED, ANSWER)
    await anchor(trail_of(book), LATER_MS)
    return book


def test_the_statements_know_the_states_that_end() -> None:
    """A state that leads on, such as ``failed``, may need everything again: none of it is cleared."""
    stored = ", ".join(f"'{state}'" for state in ("succeeded", "declined", "refused", "not_sent"))
    assert f"({stored})" in statements.CLEAR_CALL.postgresql
    assert {state.value for state in CLEARABLE} == {"succeeded", "declined", "refused", "not_sent"}


async def test_what_is_old_goes_and_the_row_stays(filled: Book) -> None:
    """Repeats, guards and owners are found by the row: it stays, with its newest journal entry."""
    assert await cleared(filled) == 15

    operation = operation_of(filled, 1)
    assert await filled.journal.answer_of(operation.id) is None
    with pytest.raises(CallCleared):
        await filled.journal.call_of(operation.id)
    assert [entry.version for entry in await filled.journal.history(operation.id)] == [3]
    assert (await filled.journal.get(operation.id)).state == "succeeded"
    held = await filled.journal.find_claim(operation.principal, operation.claim, now_ms=0)
    assert (held.operation.id, held.answer) == (operation.id, None)
    assert await count(filled.database, "history") == 5


async def test_the_audit_goes_on_from_what_was_cleared(filled: Book) -> None:
    """It verifies what is left, and tells how much was cleared and up to when."""
    await cleared(filled)
    audit = Audit(trail_of(filled), 0, lambda *_: None)

    assert [finding.text async for finding in audit.findings()] == []
    found = audit.summary
    assert (found.histories_cleared, found.entries_cleared, found.answers_cleared, found.calls_cleared) == (5, 10, 5, 5)
    assert found.cleared_until_ms == 2_000
    assert found.is_verified


async def test_nothing_is_cleared_twice(filled: Book) -> None:
    """The audit would miss an entry that was taken off its anchor twice."""
    await cleared(filled)

    assert await cleared(filled) == 0
    assert await findings(filled) == []


@pytest.mark.parametrize("event", [None, Event.UNKNOWN, Event.DIFFERED])
async def test_what_is_open_is_never_cleared(book: Book, event: Event | None) -> None:
    """Its outcome is found with its call, and its history is what a person decides by."""
    operation = operation_of(book, 1)
    await book.accept(operation)
    if event is not None:
        await book.advance(operation, event)
    await anchor(trail_of(book), LATER_MS)

    assert await cleared(book, before_ms=NOW_MS) == 0


async def test_what_failed_is_never_cleared(book: Book) -> None:
    """The gateway may show its effect after all, and then a person needs all of it."""
    operation = operation_of(book, 1)
    await book.accept(operation)
    unknown = await book.advance(operation, Event.UNKNOWN)
    await book.advance(unknown, Event.DISPROVED, ANSWER)
    await anchor(trail_of(book), LATER_MS)

    assert await cleared(book, before_ms=NOW_MS) == 0


async def test_what_was_open_is_cleared_once_it_is_final(book: Book) -> None:
    """The clearing goes through the operations once; what it had to pass over it comes back to."""
    operation = operation_of(book, 1)
    await book.accept(operation)
    assert await cleared(book) == 0
    await book.advance(operation, Event.SUCCEEDED, ANSWER)
    await anchor(trail_of(book), LATER_MS)

    assert await cleared(book, now_ms=NOW_MS + TRIED_AGAIN_MS + 1) == 3
    assert await findings(book) == []
    assert await count(book.database, "clearing_skipped") == 0


async def test_an_answer_that_a_repeat_still_gets_stays(filled: Book) -> None:
    """The claim of the tests' operations ends at 32000: until then a repeat gets the answer byte for byte."""
    assert await cleared(filled, Kept.ANSWERS, now_ms=31_999) == 0
    assert await cleared(filled, Kept.ANSWERS, now_ms=NOW_MS) == 5


async def test_a_history_that_is_not_anchored_stays(book: Book) -> None:
    """Without an anchor nothing would show that more was removed than was cleared."""
    operation = operation_of(book, 1)
    await book.accept(operation)
    await book.advance(operation, Event.SUCCEEDED, ANSWER)

    assert await cleared(book, Kept.HISTORIES) == 0


async def test_young_data_stays(filled: Book) -> None:
    """What ended at 2000 is not older than that."""
    assert await cleared(filled, before_ms=2_000) == 0


TAMPERINGS: Final = {
    "a kept entry is changed": "UPDATE history SET evidence = '{}x' WHERE operation_id = '{id}'",
    "a kept entry is redated": "UPDATE history SET at_ms = 1999 WHERE operation_id = '{id}'",
    "a kept entry is gone": "DELETE FROM history WHERE operation_id = '{id}'",
    "an operation is gone altogether": (
        "DELETE FROM history WHERE operation_id = '{id}'; DELETE FROM history_checkpoints WHERE operation_id = '{id}';"
        " DELETE FROM operations WHERE id = '{id}'"
    ),
    "a checkpoint is gone": "DELETE FROM history_checkpoints WHERE operation_id = '{id}'",
    "a checkpoint is changed": "UPDATE history_checkpoints SET state = 'held' WHERE operation_id = '{id}'",
    "an anchor's checkpoint is gone": "DELETE FROM anchor_checkpoints",
    "an anchor's checkpoint is changed": "UPDATE anchor_checkpoints SET entries = entries - 1",
    "an anchor is changed": "UPDATE anchors SET digest = replace(digest, substr(digest, 1, 4), 'beef')",
    "the amount is changed": "UPDATE operations SET amount_minor = 1 WHERE id = '{id}'",
    "a call is replaced": "UPDATE operations SET sealed_call = sealed_answer WHERE id = '{id}'",
    "an answer is taken away": "UPDATE operations SET sealed_answer = NULL WHERE id = '{id}'",
}


@pytest.mark.parametrize("what", TAMPERINGS)
async def test_tampering_with_what_is_left_is_found(filled: Book, tamper: Tamper, what: str) -> None:
    """The clearing must be no cover for whoever wants something to be gone."""
    await cleared(filled)
    await tamper(TAMPERINGS[what].replace("{id}", operation_of(filled, 2).id))

    assert await findings(filled) != []


async def test_a_removed_beginning_that_was_not_cleared_is_found(filled: Book, tamper: Tamper) -> None:
    """Whoever lacks the key can't write the line that would stand for it."""
    victim = operation_of(filled, 2).id
    await tamper(
        "INSERT INTO history_checkpoints (operation_id, version, previous, state, signature)"
        f" SELECT operation_id, 3, hash, state, '' FROM history WHERE operation_id = '{victim}' AND version = 2;"
        f" DELETE FROM history WHERE operation_id = '{victim}' AND version < 3"
    )

    assert any("not written by Payrelay" in text for text in await findings(filled))
    with pytest.raises(OperationForged):
        await filled.journal.history(victim)


async def test_a_forged_history_is_not_cleared(filled: Book, tamper: Tamper) -> None:
    """What the audit tells of must still be there for whoever looks into it."""
    await tamper(
        f"UPDATE history SET evidence = '[]' WHERE operation_id = '{operation_of(filled, 2).id}' AND version = 1"
    )

    await cleared(filled)
    assert await count(filled.database, "history", f"operation_id = '{operation_of(filled, 2).id}'") == 3
    assert await findings(filled) != []


async def test_a_span_that_lost_an_operation_is_not_cleared(filled: Book, tamper: Tamper) -> None:
    """A checkpoint over what is left would hide what was removed before."""
    victim = operation_of(filled, 2).id
    await tamper(f"DELETE FROM history WHERE operation_id = '{victim}'; DELETE FROM operations WHERE id = '{victim}'")

    assert await cleared(filled, Kept.HISTORIES) == 0
    assert await findings(filled) != []


async def test_two_processes_clear_one_database(filled: Book) -> None:
    """Of two that clear one batch, one is undone: the sum over what is left counts each entry once."""
    first, second = clearing_of(filled), clearing_of(filled)
    plan_of_second = await second._planned(Kept.HISTORIES, await page(filled), OLD_MS, NOW_MS)
    await first.clear(Kept.HISTORIES, OLD_MS, NOW_MS)

    with pytest.raises(StoreError):
        await second._carry_out(Kept.HISTORIES, plan_of_second, "", NOW_MS)
    assert await findings(filled) == []


async def page(book: Book) -> list[Any]:
    """Reads the first page of operations, as the clearing does."""
    return list(await book.database.read(all_rows(Statement(statements.PAGE_OF_OPERATIONS, ("", 64)))))


async def test_entries_are_removed_only_behind_a_checkpoint(filled: Book) -> None:
    """The database itself keeps the journal append-only but for what a checkpoint stands for."""
    removing = query("DELETE FROM history WHERE operation_id = $1 RETURNING version")

    with pytest.raises(StoreError, match="append-only"):
        await filled.database.write(all_rows(Statement(removing, (operation_of(filled, 1).id,))))
    await cleared(filled, Kept.HISTORIES)
    with pytest.raises(StoreError, match="append-only"):
        await filled.database.write(all_rows(Statement(removing, (operation_of(filled, 1).id,))))


async def test_the_progress_is_told(book: Book) -> None:
    """An operator sees how far it has come, what waits, and since when data is there."""
    for number in range(1, 7):
        await book.accept(operation_of(book, number))
    for number in range(1, 6):
        await book.advance(operation_of(book, number), Event.SUCCEEDED, ANSWER)
    await anchor(trail_of(book), LATER_MS)
    clearing = clearing_of(book)
    assert await clearing.oldest_ms(Kept.CALLS, "") == 1_000
    await cleared(book)

    progress = await clearing.progress()
    assert {kept: each.cleared for kept, each in progress.items()} == {
        **dict.fromkeys(OPERATION_KINDS, 5),
        Kept.NOTIFICATIONS: 0,
        Kept.EVENTS: 0,
    }
    assert (await clearing.skipped())[Kept.CALLS] == 1
    assert await clearing.oldest_ms(Kept.CALLS, progress[Kept.CALLS].reached) is None
