"""Checks books that were filled in bulk: by the audit, and beside a database in which the journal stored the same.

PYTHONPATH=. python bench/checked_books.py [--operations 300]
"""

import argparse
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Final

import uvloop
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.flows.console.books import everything
from tests.flows.console.desk import START_MS, Desk

import bulk_books
from clearing import ANSWER
from growing_books import DAY_MS, FIRST_PAYMENT, Books, accepted, finished, opened, recorded
from payrelay.core.payments.operation import Event
from payrelay.flows.audit.audit import Audit

SEALED: Final = ("sealed_call", "sealed_answer")
"""Equal texts are sealed differently each time; the audit opens them."""
TABLES: Final = ("operations", "history", "events", "feed")


async def stored_by_the_journal(url: str, books: Books) -> None:
    """Stores the same books one by one, as a service would."""
    database = await opened(url)
    desk = Desk(database)
    journal = desk.relay.journal
    for number in range(books.operations):
        operation = await accepted(journal, books.new(number))
        await recorded(journal, operation, books.event(number), str(FIRST_PAYMENT + number))
        await finished(desk.relay, books.at_ms(number + 1))
    await everything(desk)
    await finished(desk.relay, START_MS)
    await database.close()


async def found(url: str, books: Books) -> list[str]:
    """Gives what is wrong in words: findings of the audit, and repeats that don't get their answer."""
    database = await opened(url)
    journal = Desk(database).relay.journal
    audit = Audit(journal.trail, 0, lambda *_: None, rows=digests_of(database), now_ms=START_MS)
    wrong = [str(finding) async for finding in audit.findings()]
    for number in range(max(0, books.operations - 50), books.operations):
        new = books.new(number)
        if books.at_ms(number) < START_MS - 29 * DAY_MS:
            continue
        holder = await journal.find_claim(new.principal, str(new.claim), now_ms=START_MS)
        is_final = books.event(number) is not Event.UNKNOWN
        if holder is None or holder.operation.id != new.id or (is_final and holder.answer != ANSWER):
            wrong.append(f"a repeat of {new.id} is not answered")
    await database.close()
    return wrong


def differing(one: Path, other: Path) -> list[str]:
    """Names the tables that are not equal in both files, and the indexes and statistics."""
    names = []
    with sqlite3.connect(one) as ours, sqlite3.connect(other) as theirs:
        for table in TABLES:
            columns = [name for (name,) in ours.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            kept = ", ".join(name for name in columns if name not in SEALED)
            # The ids of events of other nouns are random.
            which = f"WHERE at_ms < {START_MS}" if table == "events" else ""
            text = f"SELECT {kept} FROM {table} {which} ORDER BY {columns[0]}, {columns[1]}"  # noqa: S608 - of the schema
            if ours.execute(text).fetchall() != theirs.execute(text).fetchall():
                names.append(table)
        for name in ("sqlite_schema WHERE name NOT LIKE 'sqlite_%'", "sqlite_stat1"):
            text = f"SELECT * FROM {name}"  # noqa: S608 - of the schema
            rows = [sorted((row[0], row[1], row[-1]) for row in each.execute(text)) for each in (ours, theirs)]
            if rows[0] != rows[1]:
                names.append(name)
    return names


def main() -> int:
    """Fills, checks and compares; exits with 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=300)
    operations = parser.parse_args().operations
    wrong = []
    # The second time most are over 30 days old, so that claims have lapsed and events were forgotten.
    for books in (Books(operations), Books(operations, between_ms=100 * DAY_MS // operations)):
        with tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp") as name:
            bulk, single = Path(name) / "bulk.db", Path(name) / "single.db"
            uvloop.run(bulk_books.fill(sqlite_url(bulk), books))
            uvloop.run(stored_by_the_journal(sqlite_url(single), books))
            wrong += uvloop.run(found(sqlite_url(bulk), books))
            wrong += [f"{each} differ" for each in differing(bulk, single)]
    print("\n".join(wrong) or f"{operations:,} operations are as the journal stores them, young and old")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
