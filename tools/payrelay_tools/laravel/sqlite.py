"""Reads laravel-payhere's tables in a shop's SQLite file, as they were at one moment; changes nothing there."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from payrelay.imports.rules.items import ImportUnreadableError, SourceRow
from payrelay_tools.laravel.rows import PAYMENTS, is_of_laravel

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
_COLUMNS = "SELECT name FROM pragma_table_info(?)"
_PAGE = 500
ROW_BYTES_MAX = 16_000_000
"""Bytes of one row or value: nothing in these tables is longer, and a row must not fill the memory."""


def sqlite_rows(path: Path) -> Iterator[SourceRow]:
    """Gives the rows of all such tables, the payments first. Raises ImportUnreadableError."""
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise ImportUnreadableError(str(error)) from None
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, ROW_BYTES_MAX)
        connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
        connection.execute("BEGIN")
        for name, columns in _tables(connection):
            quoted = name.replace('"', '""')
            cursor = connection.execute(f'SELECT * FROM "{quoted}" ORDER BY 1')  # noqa: S608  a name that the file gave
            number = 0
            while rows := cursor.fetchmany(_PAGE):
                for row in rows:
                    number += 1
                    values = {column: _text(value) for column, value in zip(columns, row, strict=True)}
                    place = f"{name} {values.get('id') or f'row {number}'}"
                    yield SourceRow(table=name, place=place, values=values)
    except sqlite3.Error as error:
        raise ImportUnreadableError(str(error)) from None
    finally:
        connection.close()


def _tables(connection: sqlite3.Connection) -> list[tuple[str, list[str]]]:
    found = []
    for (name,) in connection.execute(_TABLES).fetchall():
        columns = [str(column).lower() for (column,) in connection.execute(_COLUMNS, (name,)).fetchall()]
        if is_of_laravel(frozenset(columns)):
            found.append((str(name), columns))
    return sorted(found, key=lambda each: (not frozenset(each[1]) >= PAYMENTS, each[0]))


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return None if value is None else str(value)
