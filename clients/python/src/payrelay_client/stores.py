"""Given stores for keys: a folder of files, and a table of a database."""

import hashlib
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

_TABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,62}")

ParamStyle = Literal["qmark", "format", "numeric"]


class FileStore:
    """A folder with a file for each payment.

    Every text is written to a new file, synced, and put in place of the last one; then the folder is synced. Any number
    of processes on one machine may share the folder. Don't put it on a disk that forgets at a restart.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    def get(self, name: str) -> str | None:
        """Reads the file; None where there is none."""
        try:
            return self._file(name).read_text()
        except FileNotFoundError:
            return None

    def put(self, name: str, text: str) -> None:
        """Writes the file anew; raises OSError where it isn't on the disk then."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self._file(name)
        new = file.with_suffix(f".{uuid4().hex}.new")
        try:
            with new.open("x") as written:
                written.write(text)
                written.flush()
                os.fsync(written.fileno())
            new.replace(file)
        except BaseException:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise
        self._sync_folder()

    def _file(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()}.json"

    def _sync_folder(self) -> None:
        handle = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class SqlStore:
    """A table with a row for each payment, by any driver of the Python Database API.

    Each call opens a connection with ``connect``, and commits. The table is::

        CREATE TABLE payrelay_keys (name VARCHAR(255) PRIMARY KEY, record TEXT NOT NULL)

    The database must be durable at a commit: no SQLite in memory, no ``synchronous_commit = off``.
    """

    def __init__(
        self, connect: Callable[[], Any], *, table: str = "payrelay_keys", paramstyle: ParamStyle = "qmark"
    ) -> None:
        if not _TABLE_NAME.fullmatch(table):
            raise ValueError(f"{table!r} is no name of a table")
        self._connect = connect
        self._table = table
        first, second = {"qmark": ("?", "?"), "format": ("%s", "%s"), "numeric": (":1", ":2")}[paramstyle]
        # The table's name was checked above; everything else is a parameter.
        self._select = f"SELECT record FROM {table} WHERE name = {first}"  # noqa: S608
        self._update = f"UPDATE {table} SET record = {first} WHERE name = {second}"  # noqa: S608
        self._insert = f"INSERT INTO {table} (name, record) VALUES ({first}, {second})"  # noqa: S608

    def create_table(self) -> None:
        """Makes the table where it isn't there."""
        with closing(self._connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (name VARCHAR(255) PRIMARY KEY, record TEXT NOT NULL)"
            )
            connection.commit()

    def get(self, name: str) -> str | None:
        """Reads the row; None where there is none."""
        with closing(self._connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(self._select, (name,))
            row = cursor.fetchone()
            connection.commit()
        return None if row is None else str(row[0])

    def put(self, name: str, text: str) -> None:
        """Writes the row and commits; raises what the driver raises where that fails."""
        with closing(self._connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(self._update, (text, name))
            if cursor.rowcount < 1:
                cursor.execute(self._insert, (name, text))
            connection.commit()


class SqliteStore(SqlStore):
    """A table in a file of SQLite, which is made where it isn't there; each commit is synced to the disk."""

    def __init__(self, path: str | os.PathLike[str], *, table: str = "payrelay_keys") -> None:
        if str(path) in {"", ":memory:"}:
            raise ValueError("a store in memory forgets; name a file")
        super().__init__(lambda: _open(path), table=table)
        self.create_table()


def _open(path: str | os.PathLike[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10)
    connection.execute("PRAGMA synchronous = EXTRA")
    return connection
