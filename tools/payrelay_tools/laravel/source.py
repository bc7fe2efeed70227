"""Opens laravel-payhere's tables: in an SQLite file, a dump of MySQL, a PostgreSQL database, or exported as CSV."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from payrelay.imports.flows.sources import (
    HEAD_BYTES,
    TIMES_IN,
    ImportSource,
    file_name,
    lines_of,
    require_text,
)
from payrelay.imports.rules.csv_rows import csv_rows
from payrelay.imports.rules.fields import IsMerchant
from payrelay.imports.rules.items import ImportUnreadableError, Item, NoItem, SourceRow
from payrelay.imports.rules.own_rows import kind_of
from payrelay_tools.laravel.mysql_dump import dump_rows
from payrelay_tools.laravel.postgresql import postgresql_rows
from payrelay_tools.laravel.rows import is_of_laravel, items_of_laravel
from payrelay_tools.laravel.secrets import AppKeys
from payrelay_tools.laravel.sqlite import sqlite_rows

PIECE_LENGTH: Final = 65_536
"""Characters of a dump that are read at once."""
LARAVEL: Final = "laravel-payhere"
"""The table of an export as CSV, whatever its name was."""
NO_TABLE: Final = "there is no table of laravel-payhere in it"
NOTHING_ENCRYPTED: Final = "it is in Payrelay's own form, in which --app-key-file opens nothing"
_SQLITE_HEAD: Final = b"SQLite format 3\x00"
_POSTGRESQL: Final = ("postgresql://", "postgres://")
_DUMP_WORDS: Final = (b"CREATE TABLE", b"INSERT INTO", b"-- MySQL", b"-- MariaDB", b"/*!")
_POSTGRESQL_DUMP: Final = (b"PostgreSQL database dump", b"PGDMP")

Rows = Iterator[SourceRow | NoItem]


def laravel_source(place: str, keys: AppKeys, is_merchant: IsMerchant) -> ImportSource:
    """Opens a file, or the database at an address.

    ``keys`` open what the shop encrypted; ``is_merchant`` tells whether a merchant's number is the account's.

    Raises ImportUnreadableError, OSError.
    """

    async def items() -> AsyncIterator[Item]:
        is_empty = True
        async for row in postgresql_rows(place) if is_address else _rows_of(Path(place)):
            is_empty = False
            if isinstance(row, NoItem):
                yield row
                continue
            for item in items_of_laravel(row, keys, TIMES_IN, is_merchant):
                yield item
        if is_empty and not is_csv:
            raise ImportUnreadableError(NO_TABLE)

    is_address = place.startswith(_POSTGRESQL)
    is_csv = not is_address and _kind_of(Path(place)) == "csv"
    return ImportSource(name="PostgreSQL" if is_address else file_name(Path(place)), items=items)


async def _rows_of(path: Path) -> AsyncIterator[SourceRow | NoItem]:
    kind = _kind_of(path)
    if kind == "sqlite":
        rows: Rows = iter(sqlite_rows(path))
    elif kind == "dump":
        rows = dump_rows(_pieces(path))
    else:
        rows = csv_rows(lines_of(path), _table_of)
    for row in rows:
        yield row


def _kind_of(path: Path) -> str:
    """Tells by its beginning what a file is, whatever its name says."""
    with path.open("rb") as opened:
        head = opened.read(HEAD_BYTES)
    if head.startswith(_SQLITE_HEAD):
        return "sqlite"
    require_text(path)
    if any(mark in head for mark in _POSTGRESQL_DUMP):
        raise ImportUnreadableError("this is a dump of PostgreSQL: name the database itself, as postgresql://…")
    return "dump" if any(word in head for word in _DUMP_WORDS) else "csv"


def _table_of(columns: frozenset[str]) -> str:
    if is_of_laravel(columns):
        return LARAVEL
    kind_of(columns)
    raise ImportUnreadableError(NOTHING_ENCRYPTED)


def _pieces(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as opened:
        while piece := opened.read(PIECE_LENGTH):
            yield piece
