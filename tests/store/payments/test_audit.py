# ruff: noqa: S608 - what is put into the texts are the columns and ids that are named here

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.draws import examples
from tests.samples import CANCEL
from tests.store.conftest import Tamper

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.calls import CancelSubscription
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.core.payments.operation import TRANSITIONS, Event, JournalEntry, Operation, Retention, State, advance
from payrelay.flows.audit.audit import (
    ANCHOR_EVERY_MS,
    FINAL_AFTER_MS,
    OVERDUE_AFTER_MS,
    Audit,
    AuditFinding,
    anchor,
)
from payrelay.store import open_database
from payrelay.store.engine import migrations
from payrelay.store.engine.database import Row
from payrelay.store.engine.sealing import Seal
from payrelay.store.engine.sqlite import InlineExecutor
from payrelay.store.payments.audit import PAGE, AuditRecord, Trail, _reading
from payrelay.store.payments.journal import AcceptedOperation, Journal

pytestmark = pytest.mark.deep

Book = Any  # conftest.Book; test folders are not packages, so that it can't be imported

CHAIN_KEY: Final = b"c" * 32
SEAL: Final = Seal((b"k" * 32,))
ANSWER: Final = Answer(http_status=200, body=b"{}")
VICTIM: Final = "op_00000000000000000000000002"
OTHER: Final = "op_00000000000000000000000001"
LATER_MS: Final = FINAL_AFTER_MS + ANCHOR_EVERY_MS

NOT_FOUND: Final = {
    "probe_at_ms": "the time of the next status inquiry changes with every inquiry, and proves nothing",
    "claim_ends_at_ms": "it changes without a journal entry when a lapsed claim is taken back",
}
"""Columns of operations that may be changed unnoticed."""
FORGED: Final = {"TEXT": "'forged'", "INTEGER": "77", "BLOB": "X'00'"}


def columns(table: str) -> list[tuple[str, str]]:
    """Gives the names and types of a table's columns, as the migrations leave it."""
    connection = sqlite3.connect(":memory:")
    for migration in migrations.shipped("sqlite"):
        connection.executescript(migration.text)
    found = [(row[1], row[2]) for row in connection.execute(f"PRAGMA table_info({table})")]
    connection.close()
    return found


@pytest.fixture
async def filled(book: Book) -> Book:
    """Gives a journal with three operations of three entries each, the last with an answer; an entry every second."""
    for number in (1, 2, 3):
        await book.accept(book.new(number))
        unknown = await book.advance(book.new(number), Event.UNKNOWN)
        await book.advance(unknown, Event.SUCCEEDED, ANSWER)
    return book


def trail_of(book: Book) -> Trail:
    """Gives what the audit reads."""
    return Trail(book.database, SEAL, ChainKey(CHAIN_KEY))


async def audited(book: Book) -> list[AuditFinding]:
    """Gives all that the audit finds."""
    audit = Audit(trail_of(book), 0, lambda *_: None)
    return [finding async for finding in audit.findings()]


async def test_nothing_is_found_where_nothing_was_changed(filled: Book) -> None:
    """An alarm that rings by itself is soon not heard any more."""
    await anchor(trail_of(filled), LATER_MS)

    assert await audited(filled) == []


WATCHED: Final = [each for each in columns("operations") if each[0] not in {*NOT_FOUND, "row_digest"}]
"""The digest of the row is watched with those of all other rows."""


@pytest.mark.parametrize(("column", "kind"), WATCHED)
async def test_every_column_of_an_operation_is_watched(filled: Book, tamper: Tamper, column: str, kind: str) -> None:
    """Whoever changes what an operation was, or came to, is found out, and the operation is named."""
    await tamper(f"UPDATE operations SET {column} = {FORGED[kind]} WHERE id = '{VICTIM}'")

    assert VICTIM in {finding.operation_id for finding in await audited(filled)}


@pytest.mark.parametrize("forgery", ["row_digest = ''", "amount_minor = 1"])
async def test_an_operation_with_a_wrong_digest_is_named_once(filled: Book, tamper: Tamper, forgery: str) -> None:
    """By what its history tells of it, or else by its digest, without which the service believes nothing of it."""
    await tamper(f"UPDATE operations SET {forgery} WHERE id = '{VICTIM}'")
    audit = Audit(trail_of(filled), 0, lambda *_: None, rows=digests_of(filled.database))

    assert [finding.operation_id async for finding in audit.findings()] == [VICTIM]
    assert audit.summary.rows == 6  # the events, and no operation


@pytest.mark.parametrize("column", NOT_FOUND)
async def test_what_is_not_watched_is_known(filled: Book, tamper: Tamper, column: str) -> None:
    """The docs name what the audit doesn't see; this list is not to grow unnoticed."""
    await tamper(f"UPDATE operations SET {column} = 77 WHERE id = '{VICTIM}'")

    assert await audited(filled) == []


@pytest.mark.parametrize(("column", "kind"), columns("history"))
async def test_every_column_of_an_entry_is_watched(filled: Book, tamper: Tamper, column: str, kind: str) -> None:
    """Whoever rewrites history is found out, and the entry is named; one that moved is missed where it was."""
    await tamper(f"UPDATE history SET {column} = {FORGED[kind]} WHERE operation_id = '{VICTIM}' AND version = 2")

    found = {(finding.operation_id, finding.version) for finding in await audited(filled)}
    assert (VICTIM, 3 if column in {"operation_id", "version"} else 2) in found


@pytest.mark.parametrize(("column", "kind"), columns("anchors"))
async def test_every_column_of_an_anchor_is_watched(filled: Book, tamper: Tamper, column: str, kind: str) -> None:
    """An anchor holds only as long as it can't be changed to fit."""
    await anchor(trail_of(filled), LATER_MS)
    await tamper(f"UPDATE anchors SET {column} = {FORGED[kind]}")

    assert [finding.anchor is not None for finding in await audited(filled)] == [True]


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_removed_entry_is_missed(filled: Book, tamper: Tamper, version: int) -> None:
    """A history with a gap is no history."""
    await tamper(f"DELETE FROM history WHERE operation_id = '{VICTIM}' AND version = {version}")

    assert {finding.operation_id for finding in await audited(filled)} == {VICTIM}


async def test_an_inserted_entry_is_found(filled: Book, tamper: Tamper) -> None:
    """An entry that nobody wrote can't be given a hash that holds."""
    await tamper(
        "INSERT INTO history (operation_id, version, at_ms, event, state, evidence, row_digest, answer_digest, hash)"
        " SELECT operation_id, 4, at_ms, event, state, evidence, row_digest, answer_digest, hash FROM history"
        f" WHERE operation_id = '{VICTIM}' AND version = 3"
    )

    assert (VICTIM, 4) in {(finding.operation_id, finding.version) for finding in await audited(filled)}


async def test_entries_in_another_order_are_found(filled: Book, tamper: Tamper) -> None:
    """Each entry follows from the one before it."""
    swap = "UPDATE history SET version = {} WHERE operation_id = '" + VICTIM + "' AND version = {};"
    await tamper(swap.format(9, 2) + swap.format(2, 3) + swap.format(3, 9))

    found = {(finding.operation_id, finding.version) for finding in await audited(filled)}
    assert {(VICTIM, 2), (VICTIM, 3)} <= found


async def test_an_operation_without_history_is_found(filled: Book, tamper: Tamper) -> None:
    """What came from nowhere must not be believed."""
    await tamper(f"DELETE FROM history WHERE operation_id = '{VICTIM}'")

    assert await audited(filled) == [AuditFinding(operation_id=VICTIM, text="its history is gone")]


async def test_a_history_without_operation_is_found(filled: Book, tamper: Tamper) -> None:
    """The row is gone, and what is left tells that there was one."""
    await tamper(f"DELETE FROM operations WHERE id = '{VICTIM}'")

    assert await audited(filled) == [
        AuditFinding(operation_id=VICTIM, text="there is a history, but its operation is gone")
    ]


async def test_an_operation_that_was_removed_whole_is_missed_by_its_anchor(filled: Book, tamper: Tamper) -> None:
    """No chain of its own is left to be broken: only what was counted and hashed beside the others tells."""
    await anchor(trail_of(filled), LATER_MS)
    await tamper(f"DELETE FROM history WHERE operation_id = '{VICTIM}'; DELETE FROM operations WHERE id = '{VICTIM}'")

    [finding] = await audited(filled)
    assert finding.anchor == 1
    assert "there are 6 entries, and it has 9" in finding.text


async def test_an_operation_that_was_turned_back_is_missed_by_its_anchor(book: Book, tamper: Tamper) -> None:
    """A row and its history put back to yesterday hold together by themselves."""
    await book.accept(book.new(2))
    await book.advance(book.new(2), Event.UNKNOWN)
    unknown = await book.journal.get(VICTIM)
    await book.advance(unknown, Event.SUCCEEDED, ANSWER)
    await anchor(trail_of(book), LATER_MS)
    await tamper(
        f"DELETE FROM history WHERE operation_id = '{VICTIM}' AND version = 3;"
        f"UPDATE operations SET state = 'unknown', version = 2, chain = '{unknown.chain}', sealed_answer = NULL,"
        f" guard = '{unknown.guard}', updated_at_ms = {unknown.updated_at_ms} WHERE id = '{VICTIM}'"
    )

    assert [finding.anchor for finding in await audited(book)] == [1]


async def test_a_removed_anchor_is_missed_by_the_next(filled: Book, tamper: Tamper) -> None:
    """Each anchor holds the one before it; only the newest can go unnoticed."""
    await anchor(trail_of(filled), LATER_MS)
    await filled.accept(filled.new(4))
    await tamper(f"UPDATE history SET at_ms = {LATER_MS} WHERE operation_id = '{filled.new(4).id}'")
    assert len(await anchor(trail_of(filled), LATER_MS + LATER_MS)) == 1
    await tamper("DELETE FROM anchors WHERE number = 1")

    assert AuditFinding(anchor=2, text="anchor 1 is missing before it") in await audited(filled)


async def test_a_noted_anchor_shows_what_was_removed_with_it(filled: Book, tamper: Tamper) -> None:
    """The newest operation, removed together with the newest anchor, leaves nothing behind that tells of it."""
    [made] = await anchor(trail_of(filled), LATER_MS)
    gone = filled.new(3).id
    await tamper(
        f"DELETE FROM history WHERE operation_id = '{gone}'; DELETE FROM operations WHERE id = '{gone}';"
        "DELETE FROM anchors"
    )
    assert await audited(filled) == []
    noted = Audit(trail_of(filled), 0, lambda *_: None, noted={made.number: made.digest})
    assert [finding.anchor async for finding in noted.findings()] == [1]

    await anchor(trail_of(filled), LATER_MS)
    noted = Audit(trail_of(filled), 0, lambda *_: None, noted={made.number: made.digest})
    assert [finding.text async for finding in noted.findings()] == ["it is not the one that was noted"]


@pytest.mark.parametrize("column", ["sealed_call", "sealed_answer"])
async def test_sealed_values_that_were_exchanged_are_found(filled: Book, tamper: Tamper, column: str) -> None:
    """One customer's answer must not be given to another."""
    taken = f"(SELECT {column} FROM operations WHERE id = '{OTHER}')"
    await tamper(f"UPDATE operations SET {column} = {taken} WHERE id = '{VICTIM}'")

    [finding] = await audited(filled)
    assert finding.operation_id == VICTIM
    assert "can't be opened" in finding.text


async def test_an_answer_that_was_removed_is_missed(filled: Book, tamper: Tamper) -> None:
    """A repeat would be told otherwise than the first request."""
    await tamper(f"UPDATE operations SET sealed_answer = NULL WHERE id = '{VICTIM}'")

    assert [(found.operation_id, found.version) for found in await audited(filled)] == [(VICTIM, 3)]


async def test_an_earlier_answer_that_was_put_back_is_found(book: Book, tamper: Tamper) -> None:
    """It is the operation's own, and opens; but it is not the one that was given last."""
    await book.accept(book.new(2))
    unknown = await book.advance(book.new(2), Event.UNKNOWN, Answer(http_status=202, body=b"{}"))
    await tamper("CREATE TABLE stolen AS SELECT sealed_answer FROM operations")
    await book.advance(unknown, Event.SUCCEEDED, ANSWER)
    await tamper("UPDATE operations SET sealed_answer = (SELECT sealed_answer FROM stolen)")

    assert [(found.operation_id, found.version) for found in await audited(book)] == [(VICTIM, 3)]


BLANK: Final = "hash = '', row_digest = '', answer_digest = ''"


async def test_no_entry_without_a_hash_is_right(filled: Book, tamper: Tamper) -> None:
    """Whatever date it bears: the hashes of a decision were blanked, and the chain asked for none."""
    await tamper(
        f"UPDATE history SET {BLANK}, at_ms = 0 WHERE operation_id = '{VICTIM}';"
        f"UPDATE operations SET chain = '' WHERE id = '{VICTIM}'"
    )

    assert {finding.version for finding in await audited(filled)} == {1, 2, 3, None}


async def test_entries_that_should_be_anchored_by_now_are_told(filled: Book) -> None:
    """Where the newest anchors were removed with what they covered, what is left looks like this, and must not pass."""
    young = Audit(trail_of(filled), 0, lambda *_: None, now_ms=2_000 + OVERDUE_AFTER_MS)
    assert [finding async for finding in young.findings()] == []
    assert (young.summary.entries_unanchored, young.summary.entries_overdue, young.summary.is_verified) == (9, 3, False)

    await anchor(trail_of(filled), LATER_MS)
    old = Audit(trail_of(filled), 0, lambda *_: None, now_ms=10 * OVERDUE_AFTER_MS)
    assert [finding async for finding in old.findings()] == []
    assert old.summary.is_verified


async def test_an_entry_can_not_be_made_older_than_every_anchor(filled: Book, tamper: Tamper) -> None:
    """Anchors begin with 1970; a forged entry that is dated before it would be watched by nothing."""
    await tamper(
        "UPDATE history SET hash = '', row_digest = '', answer_digest = '', at_ms = -1"
        f" WHERE operation_id = '{VICTIM}';"
        f"UPDATE operations SET chain = '' WHERE id = '{VICTIM}'"
    )

    assert {finding.operation_id for finding in await audited(filled)} == {VICTIM}


async def test_a_claim_that_was_taken_back_is_no_finding(filled: Book) -> None:
    """It is done without a journal entry, every day."""
    await filled.journal.prune(10**12, 10)

    assert await audited(filled) == []


async def test_changes_meanwhile_are_no_findings(book: Book) -> None:
    """It runs beside servers that charge; a row that is newer than its entries is read once more, both at once."""
    for number in range(30):
        await book.accept(book.new(number))
    found: list[AuditFinding] = []
    audit = Audit(trail_of(book), 0, lambda *_: None)

    async def look() -> None:
        found.extend([finding async for finding in audit.findings()])

    async def charge() -> None:
        for number in range(29, -1, -1):
            await book.advance(book.new(number), Event.SUCCEEDED, ANSWER)
            await book.accept(book.new(100 + number))

    await asyncio.gather(look(), charge(), look())
    assert found == []


class TornTrail(Trail):
    """Reads each row before a change and its entries after it, as a page that is read beside a server may be."""

    rows: tuple[AuditRecord, ...] = ()

    async def records(self) -> AsyncIterator[AuditRecord]:
        """Puts the earlier rows and the present entries together."""
        entries = {record.operation_id: record.entries async for record in super().records()}
        for record in self.rows:
            yield record._replace(entries=entries.pop(record.operation_id, ()))
        for operation_id, left in entries.items():
            yield AuditRecord(operation_id, None, left, can_open_call=False, answer_digest=None)


async def test_what_was_changed_between_two_reads_is_read_once_more(book: Book) -> None:
    """A row that is older than its entries looks like a forgery, and a new operation like one without its row."""
    await book.accept(book.new(1))
    await book.accept(book.new(2))
    trail = TornTrail(book.database, SEAL, ChainKey(CHAIN_KEY))
    trail.rows = tuple([record async for record in Trail.records(trail)])
    await book.advance(book.new(1), Event.SUCCEEDED, ANSWER)
    await book.accept(book.new(3))

    audit = Audit(trail, 0, lambda *_: None)
    assert [finding async for finding in audit.findings()] == []
    assert (audit.summary.operations, audit.summary.entries) == (3, 4)


async def test_what_went_between_two_reads_is_left_to_the_anchors(filled: Book, tamper: Tamper) -> None:
    """An operation that is nowhere any more has nothing that could be wrong; what is missing, its anchor tells."""
    trail = TornTrail(filled.database, SEAL, ChainKey(CHAIN_KEY))
    trail.rows = tuple([record async for record in Trail.records(trail)])
    await tamper(f"DELETE FROM history WHERE operation_id = '{VICTIM}'; DELETE FROM operations WHERE id = '{VICTIM}'")

    audit = Audit(trail, 0, lambda *_: None)
    assert [finding async for finding in audit.findings()] == []
    assert audit.summary.operations == 2


async def test_an_operation_that_changes_while_it_is_read_is_read_again(filled: Book) -> None:
    """Its entries are those of the row that stands before and after them."""
    records = [record async for record in trail_of(filled).records()]
    first: Row = (records[0].operation_id,)
    second: Row = (records[1].operation_id,)
    entries: list[Row] = [(*entry.link, entry.hash) for entry in records[0].entries[1:]]
    reading = _reading(OTHER)
    next(reading)
    for rows in ([first], entries[:1], [second], entries):
        reading.send(rows)

    with pytest.raises(StopIteration) as end:
        reading.send([second])
    assert end.value.value == (second, records[0].entries[1:])


async def test_one_operation_is_read_at_one_moment(book: Book) -> None:
    """What is read once more must not be torn again; and what isn't there is told as such."""
    await book.accept(book.new(2))
    read = await trail_of(book).record(VICTIM)
    [only] = [record async for record in trail_of(book).records()]
    missing = await trail_of(book).record(OTHER)

    assert read == only
    assert (missing.row, missing.entries) == (None, ())


async def test_everything_is_read_page_by_page(book: Book) -> None:
    """Years of operations fit in no memory; the edge of a page must not be one of the audit's."""
    line_count = PAGE + 1
    operation = book.new(0)
    await book.accept(operation)
    for _ in range(line_count):
        operation = await book.advance(operation, Event.UNKNOWN)
    await asyncio.gather(*[book.accept(book.new(number)) for number in range(1, PAGE + 2)])
    audit = Audit(trail_of(book), 0, lambda *_: None)

    await anchor(trail_of(book), LATER_MS)
    assert [finding async for finding in audit.findings()] == []
    assert (audit.summary.operations, audit.summary.entries) == (PAGE + 2, line_count + 1 + PAGE + 1)
    assert [each.entries async for each in trail_of(book).anchors()] == [audit.summary.entries]


def _cancel(number: int) -> Operation:
    return msgspec.structs.replace(CANCEL, id=f"op_{number:026d}", subject=f"subscription/{number}")


STEPS: Final = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(Event), st.booleans()), max_size=25)


async def _after(steps: list[tuple[int, Event, bool]], folder: Path) -> list[AuditFinding]:
    database = await open_database(sqlite_url(folder / "db"), clock=Clock(), owner=True, executor=InlineExecutor())
    journal = Journal(database, SEAL, digests_of(database), chain_key=CHAIN_KEY)
    rows: dict[int, Operation] = {}
    for step, (number, event, has_answer) in enumerate(steps):
        at_ms = step * ANCHOR_EVERY_MS
        if number not in rows:
            entry = JournalEntry(version=1, at_ms=at_ms, event=None, state=State.SENDING, evidence=Evidence())
            accepted = await journal.accept(
                _cancel(number), entry, CancelSubscription(subscription_id=1), conflicts_with=None, now_ms=at_ms
            )
            assert isinstance(accepted, AcceptedOperation)
            rows[number] = accepted.operation
        elif (rows[number].state, event) in TRANSITIONS:
            changed, entry = advance(
                rows[number], event, at_ms=at_ms, retention=Retention(keyed_ms=1, unkeyed_ms=1), evidence=Evidence()
            )
            rows[number] = await journal.record(changed, entry, ANSWER if has_answer else None)
        await anchor(journal.trail, at_ms + FINAL_AFTER_MS)
    audit = Audit(journal.trail, 0, lambda *_: None)
    found = [finding async for finding in audit.findings()]
    await database.close()
    return found


@settings(max_examples=examples(40))
@given(STEPS)
def test_no_history_of_our_own_making_is_suspicious(steps: list[tuple[int, Event, bool]]) -> None:
    """Whatever happens to operations, with and without answers, the audit finds it as it was left."""
    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(_after(steps, Path(folder))) == []
