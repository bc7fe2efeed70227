"""Copies every table of an embedded database into an empty PostgreSQL database, and compares both row by row.

Which tables there are, with which columns, is read from both schemas. They must agree, or nothing is copied.
"""

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from graphlib import TopologicalSorter
from typing import Final, NamedTuple

import asyncpg

from payrelay.backups.store.copied import Moved
from payrelay.errors import StoreUnusable
from payrelay.store.engine.database import Value

MIGRATIONS: Final = "schema_version"
"""The one table that is not copied: each database has had migrations of its own."""
_PAGE: Final = 500
"""Rows that are read at once."""

_SQLITE_TABLES: Final = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
_POSTGRESQL_COLUMNS: Final = """
    SELECT relname, attname, attidentity <> '' FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
      AND attnum > 0 AND NOT attisdropped"""


class CopiedTable(NamedTuple):
    """A table: its columns in the order of the embedded database, those of its key, and what tables it refers to."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    refers_to: frozenset[str]


def tables_of(source: sqlite3.Connection) -> list[CopiedTable]:
    """Reads the tables of an embedded database; one that others refer to comes before them. Raises sqlite3.Error."""
    found = {}
    for (name,) in source.execute(_SQLITE_TABLES).fetchall():
        if name == MIGRATIONS:
            continue
        columns = source.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        others = source.execute('SELECT "table" FROM pragma_foreign_key_list(?)', (name,)).fetchall()
        found[name] = CopiedTable(
            name,
            tuple(column for column, _ in columns),
            tuple(column for column, place in sorted(columns, key=lambda each: each[1]) if place),
            frozenset(other for (other,) in others),
        )
    order = TopologicalSorter({name: table.refers_to for name, table in found.items()}).static_order()
    return [found[name] for name in order]


async def copy_tables(source: sqlite3.Connection, target: asyncpg.Connection, moved: Moved) -> int:
    """Copies all rows into empty tables, and reads them again from both sides; returns how many there are.

    ``moved`` is told how many rows were copied or compared. In the transactions that the caller has begun.

    Raises StoreUnusable where the schemas differ, or a row is not the same on both sides; the errors of the drivers.
    """
    tables, identities = tables_of(source), await _require_alike(source, target)
    for table in reversed(tables):
        await target.execute(f'DELETE FROM "{table.name}"')  # noqa: S608  what migrations put there
    counts = {table.name: _count(source, table) for table in tables}
    total, done = 2 * sum(counts.values()), 0
    for table in tables:
        await target.copy_records_to_table(table.name, records=_rows(source, table), columns=table.columns)
        done += counts[table.name]
        moved(done, total)
    for table in tables:
        async for number in _compared(source, target, table):
            moved(done + number, total)
        done += counts[table.name]
    for name, column in identities:
        await target.execute(
            f"SELECT setval(pg_get_serial_sequence($1, $2), max({column})) FROM {name} HAVING count(*) > 0",  # noqa: S608
            name,
            column,
        )
    return sum(counts.values())


async def _require_alike(source: sqlite3.Connection, target: asyncpg.Connection) -> list[tuple[str, str]]:
    """Compares the schemas; gives the columns that the target numbers by itself, with their tables."""
    there = await target.fetch(_POSTGRESQL_COLUMNS)
    columns = {(name, column) for name, column, _ in there if name != MIGRATIONS}
    ours = {(table.name, column) for table in tables_of(source) for column in table.columns}
    if columns != ours:
        differing = ", ".join(sorted(f"{name}.{column}" for name, column in columns ^ ours))
        raise StoreUnusable(f"the databases differ in {differing}: both need the schema of this version")
    return [(name, column) for name, column, is_numbered in there if is_numbered]


def _count(source: sqlite3.Connection, table: CopiedTable) -> int:
    count: int = source.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()[0]  # noqa: S608  of the schema
    return count


def _rows(source: sqlite3.Connection, table: CopiedTable) -> Iterator[Sequence[Value]]:
    columns, key = (", ".join(f'"{name}"' for name in names) for names in (table.columns, table.key))
    yield from source.execute(f'SELECT {columns} FROM "{table.name}" ORDER BY {key}')  # noqa: S608  of the schema


async def _compared(source: sqlite3.Connection, target: asyncpg.Connection, table: CopiedTable) -> AsyncIterator[int]:
    """Reads a table from both sides in one order; yields how many rows were equal. Raises StoreUnusable."""
    columns = ", ".join(f'"{name}"' for name in table.columns)
    types = {column.name: column.type.name for column in (await _prepared(target, table)).get_attributes()}
    # Text is sorted by its bytes, as the embedded database sorts it.
    key = ", ".join(f'"{name}" COLLATE "C"' if types[name] == "text" else f'"{name}"' for name in table.key)
    rows, number = _rows(source, table), 0
    async for there in target.cursor(f'SELECT {columns} FROM "{table.name}" ORDER BY {key}', prefetch=_PAGE):  # noqa: S608
        here = next(rows, None)
        if here is None or tuple(here) != tuple(there):
            raise StoreUnusable(f"{table.name}: row {number + 1} is not the same in the copy")
        number += 1
        if number % _PAGE == 0:
            yield number
    if next(rows, None) is not None:
        raise StoreUnusable(f"{table.name}: the copy has {number} rows, and some are missing")
    yield number


async def _prepared(target: asyncpg.Connection, table: CopiedTable) -> asyncpg.prepared_stmt.PreparedStatement:
    return await target.prepare(f'SELECT * FROM "{table.name}"')  # noqa: S608  of the schema
