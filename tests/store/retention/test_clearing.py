# ruff: noqa: S608 - what is put into the texts are ids that are named here

from typing import Any, Final

import pytest
from tests.digests import digests_of
from tests.store.conftest import RETENTION, Tamper

from payrelay.backups.store.copied import NEWEST_ENTRY
from payrelay.console.rules.trends import TrendWindow
from payrelay.console.store.trends import Trends
from payrelay.core.answers import Answer
from payrelay.core.database.marks import Mark, MarkedOperation
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.audit_chain import ChainKey, HistoryCheckpoint, closed_text
from payrelay.core.payments.operation import CLEARABLE, Event, advance
from payrelay.core.retention import Kept
from payrelay.errors import CallCleared, OperationForged, StoreError
from payrelay.flows.audit.audit import ANCHOR_EVERY_MS, FINAL_AFTER_MS, Audit, anchor
from payrelay.reconciliation.store.stores import reconciliation_stores
from payrelay.store.database.marked_rows import MarkedRows
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
    """Repeats, guards and owners are found by the row: it stays, and has its newest journal entry in it."""
    operation = operation_of(filled, 1)
    [*_, newest] = await filled.journal.history(operation.id)
    assert await cleared(filled) == 15

    assert await filled.journal.answer_of(operation.id) is None
    with pytest.raises(CallCleared):
        await filled.journal.call_of(operation.id)
    assert await filled.journal.history(operation.id) == [newest]
    assert (await filled.journal.get(operation.id)).state == "succeeded"
    held = await filled.journal.find_claim(operation.principal, operation.claim, now_ms=0)
    assert (held.operation.id, held.answer) == (operation.id, None)
    assert await count(filled.database, "history") == 0


async def test_the_audit_goes_on_from_what_was_cleared(filled: Book) -> None:
    """It verifies what is left, and tells how much was cleared and up to when."""
    await cleared(filled)
    audit = Audit(trail_of(filled), 0, lambda *_: None)

    assert [finding.text async for finding in audit.findings()] == []
    found = audit.summary
    assert (found.histories_cleared, found.entries_cleared, found.answers_cleared, found.calls_cleared) == (5, 10, 5, 5)
    assert found.cleared_until_ms == 2_000
    assert found.is_verified


async def told_by_the_newest_entries(book: Book) -> list[Any]:
    """Gives what else rests on the newest journal entries: books, marks, the overview, and a backup's manifest."""
    database = book.database
    books = reconciliation_stores(database, digests_of(database), b"c" * 32).books
    operations = [await book.journal.get(operation_of(book, number).id) for number in range(1, 6)]
    marked = (MarkedOperation(each.id, each.version, each.chain, each.updated_at_ms) for each in operations)
    mark = Mark(database="one", incarnation=1, written_at_ms=1_000, operations=tuple(marked))
    changed = [each async for page in books.changed(operations[0].merchant, NOW_MS, 0) for each in page]
    return [
        sorted(changed, key=lambda entry: entry.id),  # a page may give them in any order
        await MarkedRows(database, trail_of(book)).missing(mark),
        await MarkedRows(database, trail_of(book)).newest_entry_ms(NOW_MS),
        (await Trends(database).operations(TrendWindow(0, 4, 1_000))).paces,
        await database.read(all_rows(Statement(query(NEWEST_ENTRY), ()))),
    ]


async def test_what_rests_on_the_newest_entries_is_as_before(filled: Book) -> None:
    """Books must miss no payment, and no commit may look lost, because a history was closed."""
    before = await told_by_the_newest_entries(filled)
    await cleared(filled)

    assert await told_by_the_newest_entries(filled) == before
    assert len(before[0]) == 5
    assert before[1:3] == [(), 2_000]


async def test_an_entry_that_was_cleared_is_not_taken_for_lost(filled: Book) -> None:
    """An old mark names a version of which the checkpoint says that it was here."""
    operation = operation_of(filled, 1)
    first, *_ = await trail_of(filled).entries_of(operation.id)
    mark = Mark(
        database="one",
        incarnation=1,
        written_at_ms=1_000,
        operations=(
            MarkedOperation(operation.id, 1, first.hash, 1_000),
            MarkedOperation(operation.id, 4, "beef", 2_001),
        ),
    )
    await cleared(filled)

    missing = await MarkedRows(filled.database, trail_of(filled)).missing(mark)
    assert [each.name for each in missing] == [f"operation {operation.id} in version 4"]


async def test_an_anchor_over_kept_entries_alone_is_as_it_was(book: Book) -> None:
    """Nothing of its span was cleared, so its digest must still be that of all its entries, wherever they lie."""
    operation = operation_of(book, 1)
    accepted = await book.accept(operation)
    await anchor(trail_of(book), LATER_MS)
    changed, entry = advance(
        accepted.operation, Event.SUCCEEDED, at_ms=LATER_MS, retention=RETENTION, evidence=Evidence()
    )
    await book.journal.record(changed, entry, ANSWER)
    [second] = await anchor(trail_of(book), 3 * LATER_MS)
    assert second.entries == 1

    assert await cleared(book, Kept.HISTORIES, before_ms=NOW_MS) == 1
    assert await findings(book) == []
    assert await trail_of(book).anchor_checkpoint(second.number) is None


async def test_a_batch_may_have_more_anchors_than_are_remembered(book: Book) -> None:
    """An operation that was open for days has entries under many. What comes behind it would never be cleared."""
    for number in (1, 2):
        accepted = await book.accept(operation_of(book, number))
        operation = accepted.operation
        for hour, event in enumerate((Event.UNKNOWN, Event.INQUIRED_ABOUT, Event.PROVED), 1):
            changed, entry = advance(
                operation, event, at_ms=hour * ANCHOR_EVERY_MS, retention=RETENTION, evidence=Evidence()
            )
            operation = await book.journal.record(changed, entry, ANSWER)
    await anchor(trail_of(book), 4 * LATER_MS)
    clearing = Clearing(book.database, SEAL, digests_of(book.database), trail_of(book), spans_kept_max=1)

    assert (await clearing.clear(Kept.HISTORIES, NOW_MS, NOW_MS, limit=2)).cleared == 2
    assert await findings(book) == []


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


def closed_as(value: str) -> str:
    """Gives SQL that puts a value in the place of what is kept of a history."""
    return f"UPDATE operations SET closed_history = {value} WHERE id = '{{id}}'"


TAMPERINGS: Final = {
    "a kept entry is changed": closed_as("replace(closed_history, 'Successfully', 'Hardly')"),
    "the event of a kept entry is changed": closed_as("replace(closed_history, 'succeeded', 'proved')"),
    "a kept entry is redated": "UPDATE operations SET updated_at_ms = 1999 WHERE id = '{id}'",
    "a kept entry is gone": closed_as("NULL"),
    "a kept entry is nonsense": closed_as("'[3,'"),
    "a kept entry is of other types": closed_as("'[3,1,2,3,4,5,6]'"),
    "a kept entry has a digest of another form": closed_as("replace(closed_history, ',\"unknown\",', '!')"),
    "a kept entry is another operation's": closed_as(
        "(SELECT other.closed_history FROM operations AS other WHERE other.id > '{id}' ORDER BY other.id LIMIT 1)"
    ),
    "an operation is gone altogether": "DELETE FROM operations WHERE id = '{id}'",
    "the state before a kept entry is changed": closed_as("replace(closed_history, 'unknown', 'pending')"),
    "the version of a kept entry is changed": closed_as("replace(closed_history, '[3,', '[2,')"),
    "an entry is added behind a closed history": (
        "INSERT INTO history (operation_id, version, at_ms, event, state, evidence, hash)"
        " SELECT id, 4, 2001, 'succeeded', 'succeeded', '{}', chain FROM operations WHERE id = '{id}'"
    ),
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


async def test_a_history_that_another_closed_is_found(filled: Book, tamper: Tamper) -> None:
    """Whoever lacks the key can move the entry into the row, and can't sign that the others were cleared."""
    victim = operation_of(filled, 2).id
    [second, third] = (await trail_of(filled).entries_of(victim))[1:]
    checkpoint = HistoryCheckpoint(victim, 3, second.hash, second.link.state)
    kept = closed_text(checkpoint, third.link, ChainKey(b"x" * 32))
    await tamper(
        f"UPDATE operations SET closed_history = '{kept}' WHERE id = '{victim}';"
        f" DELETE FROM history WHERE operation_id = '{victim}'"
    )

    assert any("not written by Payrelay" in text for text in await findings(filled))
    with pytest.raises(OperationForged):
        await filled.journal.history(victim)


async def test_a_row_that_is_put_back_beside_its_closed_history_counts_as_forged(book: Book, tamper: Tamper) -> None:
    """Whoever has a copy of an earlier row must not make a payment that succeeded open again."""
    operation = operation_of(book, 1)
    await book.accept(operation)
    unknown = await book.advance(operation, Event.UNKNOWN)
    await tamper("CREATE TABLE copied AS SELECT * FROM operations")
    await book.advance(unknown, Event.SUCCEEDED, ANSWER)
    await anchor(trail_of(book), LATER_MS)
    await cleared(book)
    await tamper(
        "UPDATE copied SET closed_history = (SELECT closed_history FROM operations);"
        " DELETE FROM operations; INSERT INTO operations SELECT * FROM copied; DROP TABLE copied"
    )

    with pytest.raises(OperationForged):
        await book.journal.get(operation.id)


async def test_a_closed_history_is_no_cover_for_one_that_is_there(filled: Book, tamper: Tamper) -> None:
    """The hash of the newest entry counts, as long as there is one, whatever the row says of itself."""
    victim = operation_of(filled, 2).id
    await tamper(f"UPDATE operations SET chain = 'beef', closed_history = '[3,' WHERE id = '{victim}'")

    with pytest.raises(OperationForged):
        await filled.journal.get(victim)


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


async def test_entries_are_removed_only_where_a_history_is_closed(filled: Book) -> None:
    """The database itself keeps the journal append-only but for what the operation's row stands for."""
    removing = query("DELETE FROM history WHERE operation_id = $1 RETURNING version")

    with pytest.raises(StoreError, match="append-only"):
        await filled.database.write(all_rows(Statement(removing, (operation_of(filled, 1).id,))))
    open_one = operation_of(filled, 9)
    await filled.accept(open_one)
    await cleared(filled, Kept.HISTORIES)
    with pytest.raises(StoreError, match="append-only"):
        await filled.database.write(all_rows(Statement(removing, (open_one.id,))))


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
