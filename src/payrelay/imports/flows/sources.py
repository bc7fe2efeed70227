"""Opens what an import reads: a CSV file, a dump, an SQLite file or a PostgreSQL database, anew each time."""

import hashlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import msgspec

from payrelay.imports.rules.csv_rows import csv_rows
from payrelay.imports.rules.fields import IsMerchant
from payrelay.imports.rules.items import ImportUnreadableError, Item, NoItem, SourceRow
from payrelay.imports.rules.laravel_rows import is_of_laravel, items_of_laravel
from payrelay.imports.rules.laravel_secrets import AppKeys
from payrelay.imports.rules.mysql_dump import dump_rows
from payrelay.imports.rules.own_rows import item_of
from payrelay.imports.store.laravel_postgresql import postgresql_rows
from payrelay.imports.store.laravel_sqlite import sqlite_rows

PIECE_BYTES: Final = 65_536
LINE_LENGTH_MAX: Final = 100_000
"""Characters of one line of a CSV file."""
_SQLITE_HEAD: Final = b"SQLite format 3\x00"
_MARKS_16: Final = (b"\xff\xfe", b"\xfe\xff")
_POSTGRESQL: Final = ("postgresql://", "postgres://")
_DUMP_WORDS: Final = (b"CREATE TABLE", b"INSERT INTO", b"-- MySQL", b"-- MariaDB", b"/*!")
_POSTGRESQL_DUMP: Final = (b"PostgreSQL database dump", b"PGDMP")
TIMES_IN: Final = "UTC"
"""The zone of times without one, as Laravel writes them. A shop in another zone dates its payments later than they were
made in Asia, so that they count for longer as recent ones."""
NO_TABLE: Final = "there is no table of laravel-payhere in it"


class ImportSource(msgspec.Struct, frozen=True, kw_only=True):
    """What is read, and how.

    Attributes:
        place: a path, or the address of a PostgreSQL database.
        keys: open what the shop encrypted.
        is_merchant: tells whether a merchant's number is the account's.
    """

    place: str
    keys: AppKeys
    is_merchant: IsMerchant

    @property
    def name(self) -> str:
        """Names the source without a password, for what is stored and told."""
        return "PostgreSQL" if self.place.startswith(_POSTGRESQL) else Path(self.place).name

    @property
    def digest(self) -> str | None:
        """Gives the SHA-256 of the file; None for a database server. Raises OSError."""
        if self.place.startswith(_POSTGRESQL):
            return None
        with Path(self.place).open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()

    async def items(self) -> AsyncIterator[Item]:
        """Gives all items, from the beginning. Raises ImportUnreadableError, OSError."""
        is_empty = True
        async for row in self._rows():
            is_empty = False
            if isinstance(row, NoItem):
                yield row
            elif is_of_laravel(frozenset(row.values)):
                for item in items_of_laravel(row, self.keys, TIMES_IN, self.is_merchant):
                    yield item
            else:
                yield item_of(row, TIMES_IN, self.is_merchant)
        if is_empty and self._kind() != "csv":
            raise ImportUnreadableError(NO_TABLE)

    async def _rows(self) -> "AsyncIterator[SourceRow | NoItem]":
        kind = self._kind()
        if kind == "postgresql":
            async for row in postgresql_rows(self.place):
                yield row
            return
        path = Path(self.place)
        found: Iterator[SourceRow | NoItem]
        if kind == "sqlite":
            found = iter(sqlite_rows(path))
        elif kind == "dump":
            found = dump_rows(_pieces(path))
        else:
            found = csv_rows(_lines(path))
        for each in found:
            yield each

    def _kind(self) -> str:
        """Tells by its beginning what a file is, whatever its name says."""
        if self.place.startswith(_POSTGRESQL):
            return "postgresql"
        with Path(self.place).open("rb") as opened:
            head = opened.read(PIECE_BYTES)
        if head.startswith(_SQLITE_HEAD):
            return "sqlite"
        if head.startswith(_MARKS_16) or b"\0" in head:
            raise ImportUnreadableError("the file isn't UTF-8: it has bytes of another encoding, or is no text")
        if any(mark in head for mark in _POSTGRESQL_DUMP):
            raise ImportUnreadableError("this is a dump of PostgreSQL: name the database itself, as postgresql://…")
        return "dump" if any(word in head for word in _DUMP_WORDS) else "csv"


def _pieces(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as opened:
        while piece := opened.read(PIECE_BYTES):
            yield piece


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as opened:
        number = 0
        while line := opened.readline(LINE_LENGTH_MAX):
            number += 1
            if len(line) == LINE_LENGTH_MAX:
                raise ImportUnreadableError(f"line {number} has more than {LINE_LENGTH_MAX} characters")
            yield line
