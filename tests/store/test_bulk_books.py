"""The benchmark's databases: filled in bulk, and as the journal would have filled them."""

import importlib
import sqlite3
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.flows.console.books import everything
from tests.flows.console.desk import START_MS, Desk
from tests.sources import ROOT

from payrelay.core.payments.operation import Event
from payrelay.flows.audit.audit import Audit

sys.path.append(str(ROOT / "bench"))  # behind all others, so that it hides nothing
bulk: Final[Any] = importlib.import_module("bulk_books")
books_of: Final[Any] = importlib.import_module("growing_books")

OPERATIONS: Final = 30
SEALED: Final = ("sealed_call", "sealed_answer")
"""Equal texts are sealed differently each time; the audit opens them."""
COMPARED: Final = {
    "operations": "ORDER BY id",
    "history": "ORDER BY operation_id, version",
    "events": f"WHERE at_ms < {START_MS} ORDER BY position",  # the ids of other nouns' events are random
    "feed": "",
    "sqlite_stat1": "ORDER BY tbl, idx",
}


async def stored_by_the_journal(path: Path, books: Any) -> None:  # noqa: ANN401
    """Stores books one by one, as a service would."""
    database = await books_of.opened(sqlite_url(path))
    desk = Desk(database)
    for number in range(books.operations):
        operation = await books_of.accepted(desk.relay.journal, books.new(number))
        payment = str(books_of.FIRST_PAYMENT + number)
        await books_of.recorded(desk.relay.journal, operation, books.event(number), payment)
        await books_of.finished(desk.relay, books.at_ms(number + 1))
    await everything(desk)
    await books_of.finished(desk.relay, START_MS)
    await database.close()


def rows_in(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Gives what is compared of a database: its rows, its schema, and the statistics of its indexes."""
    found = {}
    with sqlite3.connect(path) as connection:
        found["schema"] = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        for table, which in COMPARED.items():
            columns = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            kept = ", ".join(name for name in columns if name not in SEALED)
            found[table] = connection.execute(f"SELECT {kept} FROM {table} {which}").fetchall()  # noqa: S608
    return found


async def unanswered(path: Path, books: Any) -> list[str]:  # noqa: ANN401
    """Gives what the audit finds, and the operations whose repeats within 29 days don't get their answer."""
    database = await books_of.opened(sqlite_url(path))
    journal = Desk(database).relay.journal
    audit = Audit(journal.trail, 0, lambda *_: None, rows=digests_of(database), now_ms=START_MS)
    wrong = [str(finding) async for finding in audit.findings()]
    for number in range(books.operations):
        if books.at_ms(number) < START_MS - 29 * books_of.DAY_MS:
            continue
        new = books.new(number)
        holder = await journal.find_claim(new.principal, str(new.claim), now_ms=START_MS)
        answer = None if books.event(number) is Event.UNKNOWN else books_of.ANSWER
        if holder is None or (holder.operation.id, holder.answer) != (new.id, answer):
            wrong.append(new.id)
    await database.close()
    return wrong


@pytest.mark.integration
@pytest.mark.parametrize("between_ms", [books_of.BETWEEN_MS, 100 * books_of.DAY_MS // OPERATIONS], ids=["young", "old"])
async def test_what_the_benchmark_fills_in_bulk_is_what_the_journal_stores(tmp_path: Path, between_ms: int) -> None:
    """Else the schema or a digest would change, and the benchmark would measure rows that no service has.

    Of the old ones most are over 30 days old, so that claims have lapsed and events were forgotten.
    """
    books = books_of.Books(OPERATIONS, between_ms=between_ms)
    filled, stored = tmp_path / "filled.db", tmp_path / "stored.db"
    await bulk.fill(sqlite_url(filled), books)
    await stored_by_the_journal(stored, books)

    assert rows_in(filled) == rows_in(stored)
    assert await unanswered(filled, books) == []
