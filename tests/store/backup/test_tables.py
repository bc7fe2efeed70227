"""Every table of an embedded database in PostgreSQL, row by row."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final

import asyncpg
import pytest
from tests.databases import sqlite_url

from payrelay.backups.store.tables import MIGRATIONS, copy_tables, tables_of
from payrelay.errors import StoreUnusable

pytestmark = pytest.mark.postgresql

TEXTS: Final = ("", "a", "B", "b", "é", "ශ්‍රී", "a\nb", "\\N", "null", "\U0001f600")
"""What is sorted or written in another way where nobody takes care."""
CHECKED: Final = {
    ("endpoints", "state"): "active",
    ("deliveries", "state"): "waiting",
    ("customers", "state"): "active",
    ("customers", "sealed_token"): b"\0",
}
"""Columns that take only some values."""
NUMBERS: Final = (0, -(2**63), 2**63 - 1)
BYTES: Final = (b"", b"\0\\x00", bytes(range(256)))


@pytest.fixture
def source(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """An embedded database with the schema of this version."""
    sqlite_url(tmp_path / "a.db")
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        yield connection


@asynccontextmanager
async def target_at(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A PostgreSQL database in a transaction, which is undone."""
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection
    finally:
        await transaction.rollback()
        await connection.close()


def fill(source: sqlite3.Connection) -> int:
    """Stores several rows in each table, with every kind of value in each column; gives how many there are."""
    rows = 0
    source.execute("BEGIN")
    source.execute("DELETE FROM feed")
    for table in tables_of(source):
        described = source.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (table.name,))
        columns = described.fetchall()
        for number in range(1 if table.name == "feed" else len(TEXTS)):
            values = [
                CHECKED.get((table.name, column[0]), value_of(number, *column[1:], refers=bool(table.refers_to)))
                for column in columns
            ]
            marks = ", ".join("?" for _ in values)
            source.execute(f"INSERT INTO {table.name} VALUES ({marks})", values)  # noqa: S608  of the schema
            rows += 1
    source.execute("COMMIT")
    return rows


def value_of(number: int, kind: str, is_needed: int, key: int, *, refers: bool) -> str | int | bytes | None:
    """A value that no other row of its table has in this column, where it is a key; else a strange one, or none."""
    if not is_needed and not key and number % 3 == 2:
        return None
    if kind == "TEXT":
        return TEXTS[number] if key == 1 else f"{TEXTS[number]}{number}"
    if kind == "BLOB":
        return BYTES[number % len(BYTES)]
    return number + 1 if key or refers else NUMBERS[number % len(NUMBERS)]


async def test_both_databases_have_the_same_tables(source: sqlite3.Connection, postgresql_url: str) -> None:
    """A table that only one of them has, or that the copy does not know, would be left behind without a word."""
    names = {table.name for table in tables_of(source)}
    async with target_at(postgresql_url) as target:
        found = await target.fetch(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition"
        )

    assert {name for (name,) in found} == {*names, MIGRATIONS}
    assert len(names) > 30


async def test_every_row_of_every_table_is_copied_as_it_is(source: sqlite3.Connection, postgresql_url: str) -> None:
    """Bytes, the largest numbers, empty texts and nulls, and texts that each database would sort in its own way."""
    rows = fill(source)
    told: list[tuple[int, int | None]] = []
    async with target_at(postgresql_url) as target:
        assert await copy_tables(source, target, lambda *moved: told.append(moved)) == rows
        for table in tables_of(source):
            here = source.execute(f"SELECT {', '.join(table.columns)} FROM {table.name}").fetchall()  # noqa: S608
            there = await target.fetch(f"SELECT {', '.join(table.columns)} FROM {table.name}")  # noqa: S608
            assert {tuple(row) for row in there} == set(here), table.name

    assert told == sorted(told)
    assert told[-1] == (2 * rows, 2 * rows)


async def test_events_go_on_behind_the_copied_ones(source: sqlite3.Connection, postgresql_url: str) -> None:
    """A number that is given out twice would be an event that no reader of the feed ever gets."""
    source.execute("INSERT INTO outbox VALUES (41, 'e', 't', 'a', 'm', 'p', 's', 0, '{}', '')")
    async with target_at(postgresql_url) as target:
        await copy_tables(source, target, lambda *_: None)
        number = await target.fetchval(
            "INSERT INTO outbox (id, type, account, merchant, principal, subject, at_ms, data)"
            " VALUES ('f', 't', 'a', 'm', 'p', 's', 0, '{}') RETURNING seq"
        )

    assert number == 42


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE meta SET value = '\\x01' WHERE name = 'a'",
        "DELETE FROM meta WHERE name = 'b'",
        "INSERT INTO meta VALUES ('aa', '\\x00')",
    ],
)
async def test_a_row_that_differs_afterwards_is_found(
    source: sqlite3.Connection, postgresql_url: str, change: str
) -> None:
    """Whatever changed it, the copy must not count as whole."""
    source.execute("INSERT INTO meta VALUES ('a', x'00'), ('b', x'00')")
    async with target_at(postgresql_url) as target:
        body = f"BEGIN {change}; RETURN NULL; END"
        await target.execute(
            f"CREATE FUNCTION pg_temp.meddle() RETURNS trigger LANGUAGE plpgsql AS $${body}$$;"
            " CREATE TRIGGER meddles AFTER INSERT ON meta FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0)"
            " EXECUTE FUNCTION pg_temp.meddle()"
        )
        with pytest.raises(StoreUnusable, match="meta: "):
            await copy_tables(source, target, lambda *_: None)


async def test_schemas_that_differ_are_refused(source: sqlite3.Connection, postgresql_url: str) -> None:
    """What has no place in the other database would be lost."""
    source.execute("CREATE TABLE new_noun (id TEXT PRIMARY KEY) STRICT")
    async with target_at(postgresql_url) as target:
        with pytest.raises(StoreUnusable, match=r"differ in new_noun\.id"):
            await copy_tables(source, target, lambda *_: None)
