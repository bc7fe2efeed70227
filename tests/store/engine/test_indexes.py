"""The indexes of lists: there on both databases, and known to SQLite's planner by fixed statistics."""

import re
import sqlite3
from pathlib import Path

import asyncpg
import pytest
from tests.databases import sqlite_url
from tests.store.million.offered import listings

from payrelay.store.engine.queries import distinct, query
from payrelay.store.statements.pagination import Among, ListIndex, Listing
from payrelay.store.statements.payments.operations import ACCEPT, RECORDS


@pytest.fixture
def connection(tmp_path: Path) -> sqlite3.Connection:
    """Opens a new and migrated file."""
    sqlite_url(tmp_path / "payrelay.db")
    return sqlite3.connect(tmp_path / "payrelay.db")


def condition(among: Among) -> str:
    """Gives the condition of a partial index as SQLite's statements have it."""
    [step] = query(among.text).sqlite
    return f"WHERE {step.text}"


def leads(index: ListIndex, table: str, text: str) -> bool:
    """Tells whether an index, as the schema has it, leads to the rows of a page in their order."""
    columns = [*index.columns, *(["id"] if index.is_sorted else [])]
    return bool(re.search(rf" ON {table} \({', '.join(columns)}\b", text)) and (
        index.among is None or text.endswith(condition(index.among)) or index.columns == ("state",)
    )


def test_each_index_has_its_statistics(connection: sqlite3.Connection) -> None:
    """An index without a line is taken for one that leads to ten rows, and put before those that do."""
    indexes = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    without_rowid = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%WITHOUT ROWID%'"
    indexes |= {row[0] for row in connection.execute(without_rowid)}

    lines = dict(connection.execute("SELECT idx, stat FROM sqlite_stat1"))

    assert lines.keys() == indexes, "a migration that makes or drops an index does so with its line in sqlite_stat1"
    for name, line in lines.items():
        key = [row for row in connection.execute(f"PRAGMA index_xinfo('{name}')") if row[5]]
        assert 2 <= len(line.split()) <= len(key) + 1, name


@pytest.mark.parametrize("listing", listings().values(), ids=listings())
def test_each_index_that_a_list_is_read_by_exists(connection: sqlite3.Connection, listing: Listing) -> None:
    """A partial one has its condition word by word, because SQLite compares the words."""
    texts = [row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql <> ''")]
    plain = [" ".join(text.split()) for text in texts]

    for index in listing.indexes:
        if index.columns == ("id",):
            continue
        if not index.columns:
            assert index.among is not None
            assert any(text.endswith(condition(index.among)) for text in plain), index
        else:
            assert any(leads(index, listing.table, text) for text in plain), index


def test_no_condition_of_an_index_makes_a_table(connection: sqlite3.Connection) -> None:
    """SQLite would make one in memory for each statement that writes a row, of the values behind an IN."""
    texts = [row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql <> ''")]

    assert [text for text in texts if re.search(r" IN \([^)]*,[^)]*,", text)] == []


def test_a_charge_makes_no_table_of_values(connection: sqlite3.Connection) -> None:
    """Each would be made, filled and freed in memory: they took a quarter of SQLite's time for a charge."""
    for statement in (ACCEPT, *RECORDS.values()):
        for step in statement.sqlite:
            parameters = [None] * step.text.count("?")
            steps = [row[1] for row in connection.execute(f"EXPLAIN {step.text}", parameters)]
            assert "OpenEphemeral" not in steps, step.text
            assert "OpenWrite" in steps


def test_distinct_values_are_read_once_each(connection: sqlite3.Connection) -> None:
    """However many rows have a value, one step in the index passes them all."""
    connection.execute("CREATE TABLE shops (name TEXT)")
    connection.execute("CREATE INDEX shops_name ON shops (name)")
    steps = []
    connection.set_progress_handler(lambda: steps.append(1), 1)
    for count in (1, 5_000):
        connection.executemany("INSERT INTO shops VALUES (?)", [(name,) for name in "aabc" for _ in range(count)])
        steps.clear()
        assert connection.execute(f"{distinct('shops', 'name')} ORDER BY value").fetchall() == [("a",), ("b",), ("c",)]
        assert len(steps) < 300
    assert connection.execute(distinct("shops", "name", "name > 'c'")).fetchall() == []


@pytest.mark.postgresql
async def test_distinct_values_leave_out_null(postgresql_url: str) -> None:
    """A row without a value names nobody; PostgreSQL answers as SQLite does."""
    connection = await asyncpg.connect(postgresql_url)
    await connection.execute("CREATE TEMPORARY TABLE shops (name TEXT)")
    assert await connection.fetch(distinct("shops", "name")) == []
    await connection.execute("INSERT INTO shops VALUES ('b'), ('a'), (NULL), ('a')")
    assert [row[0] for row in await connection.fetch(distinct("shops", "name"))] == ["a", "b"]
    await connection.close()
