"""The file of the embedded database: makes it, checks that it is ours, migrates it, and opens the connections.

Every fault that an operator must repair is raised as StoreUnusable, in one line that names the path.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from payrelay.clock import Clock
from payrelay.core.database.schema_changes import ANY, AS_IT_IS, SchemaChanges
from payrelay.errors import DatabaseMissing, StoreUnavailable, StoreUnusable
from payrelay.store.engine import migrations

BUSY_S: Final = 2.0
"""How long a write waits for another process that holds the lock."""
_READ_BUSY_S: Final = 0.25
"""Reads wait only while another process opens or closes the file, and they wait on the event loop."""
_APPLICATION_ID: Final = 0x50524C59
"""Marks the file in its header: ``PRLY``."""
_VERSION_MIN: Final = (3, 37, 0)
"""The first SQLite with strict tables."""
_STATEMENTS_KEPT: Final = 256
"""Prepared statements of one connection; more than we have."""
_FILE_MODE: Final = 0o600


class Tuning(NamedTuple):
    """How much memory SQLite takes, and when it copies its log into the file (see docs/decisions/0093).

    Attributes:
        writer_kib: pages that the writer's connection keeps.
        reader_kib: pages that the reader's connection keeps, until the next commit.
        lists_kib: the same of the connection of lists.
        checkpoint_pages: pages of log after which it is copied into the file.
        log_bytes_kept: the log is cut back to this size after a burst.
    """

    writer_kib: int = 2_048
    reader_kib: int = 2_048
    lists_kib: int = 2_048
    checkpoint_pages: int = 4_000
    log_bytes_kept: int = 64 * 1024 * 1024


TUNING: Final = Tuning()


class SqliteConnections(NamedTuple):
    """The connections to the file. The writer's never waits for a lock; the engine does that. Lists have their own."""

    writer: sqlite3.Connection
    reader: sqlite3.Connection
    lists: sqlite3.Connection


def open_file(
    path: Path, *, clock: Clock, busy_s: float = BUSY_S, changes: SchemaChanges = ANY, tuning: Tuning = TUNING
) -> SqliteConnections:
    """Opens the file; makes a missing one, and brings its schema up to date, where ``changes`` allow it.

    Raises StoreUnusable where an operator must act, StoreUnavailable while another process keeps it locked.
    """
    if sqlite3.sqlite_version_info < _VERSION_MIN:
        raise StoreUnusable(f"{path}: SQLite {sqlite3.sqlite_version} is too old, 3.37 is needed")
    require_folder(path, may_make=changes.may_make)
    writer = None
    try:
        writer = _connect(path, "rw", busy_s, tuning, tuning.writer_kib)
        if changes.may_make:
            # Only before the first table: later it needs the whole file written anew.
            writer.execute("PRAGMA auto_vacuum = INCREMENTAL")
            _claim_file(writer, path)
            _require_log(writer, path)
            _migrate(writer, path, clock, changes)
        else:
            _require_ready(writer, path)
            _require_log(writer, path)
        read_busy_s = min(busy_s, _READ_BUSY_S)
        reader, lists = (
            _connect(path, "ro", read_busy_s, tuning, kib) for kib in (tuning.reader_kib, tuning.lists_kib)
        )
        for connection in (reader, lists):
            connection.execute("SELECT count(*) FROM schema_version").fetchall()
        writer.execute("PRAGMA busy_timeout = 0")
    except sqlite3.Error as error:
        _close(writer)
        raise _explained(error, path) from error
    except BaseException:
        _close(writer)
        raise
    return SqliteConnections(writer, reader, lists)


def require_folder(path: Path, *, may_make: bool = True) -> None:
    """Raises StoreUnusable unless the file is there or, with ``may_make``, can be made, readable by its owner alone."""
    if not path.parent.is_dir():
        raise StoreUnusable(f"{path}: the directory {path.parent} does not exist")
    if path.is_dir():
        raise StoreUnusable(f"{path}: this is a directory, not a database file")
    if not may_make:
        require_there(path)
    if not os.access(path.parent, os.W_OK | os.X_OK, effective_ids=True):
        raise StoreUnusable(f"{path}: the directory {path.parent} can't be written to")
    if path.exists():
        if not os.access(path, os.R_OK | os.W_OK, effective_ids=True):
            raise StoreUnusable(f"{path}: the file can't be read and written by this user")
        # Opened by SQLite alone: whoever closes another descriptor of a file drops all locks that the process has on
        # it. The next program would then take itself for the only one, and remove the log under this one.
        return
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, _FILE_MODE))
    except OSError as error:
        raise StoreUnusable(f"{path}: the file can't be opened: {error.strerror}") from error


def require_there(path: Path) -> None:
    """Raises DatabaseNotReady where there is no such file."""
    if not path.exists():
        raise DatabaseMissing(
            f"{path}: there is no database; PAYRELAY_DATABASE_URL says where it is, and payrelay serve makes a new one"
        )


def _connect(path: Path, mode: str, busy_s: float, tuning: Tuning, cache_kib: int) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=busy_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS_KEPT,
    )
    for pragma in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "trusted_schema = OFF",
        "secure_delete = ON",
        "temp_store = MEMORY",
        f"cache_size = {-cache_kib}",
        f"wal_autocheckpoint = {tuning.checkpoint_pages}",
        f"journal_size_limit = {tuning.log_bytes_kept}",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def write_anew(connection: sqlite3.Connection) -> None:
    """Writes the whole file anew (``VACUUM``), without what was ever deleted from it. Raises sqlite3.Error.

    SQLite's copy of the data lies in the file's folder meanwhile, without a name. The system's folder for temporary
    files may be small, as in a container, or on a disk that is less protected. Only where the file's folder can't be
    listed does SQLite take that one all the same.
    """
    [file] = (file for _, name, file in connection.execute("PRAGMA database_list") if name == "main")
    folder = str(Path(file).parent).replace("'", "''")
    connection.execute("PRAGMA temp_store = FILE")  # in memory it would take as much as the file
    try:
        with suppress(sqlite3.OperationalError):
            connection.execute(f"PRAGMA temp_store_directory = '{folder}'")
        connection.execute("VACUUM")
    finally:
        with suppress(sqlite3.Error):  # what went wrong before it counts
            connection.execute("PRAGMA temp_store_directory = ''")
            connection.execute("PRAGMA temp_store = MEMORY")


def _claim_file(connection: sqlite3.Connection, path: Path) -> None:
    """Marks an empty file as ours; raises StoreUnusable for another program's file."""
    connection.execute("BEGIN IMMEDIATE")
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if application_id != _APPLICATION_ID:
        if application_id or not is_empty:
            raise StoreUnusable(f"{path}: this SQLite file is not a Payrelay database")
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute("COMMIT")


def _require_log(connection: sqlite3.Connection, path: Path) -> None:
    """Turns write-ahead logging on, which a restore that was stopped has turned off; raises StoreUnusable."""
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreUnusable(f"{path}: this file system does not support SQLite's write-ahead log")


def _require_ready(connection: sqlite3.Connection, path: Path) -> None:
    """Raises StoreUnusable for another program's file, and where a migration is missing; changes nothing."""
    require_ours(connection, path)
    migrations.allowed(_applied(connection), migrations.shipped("sqlite"), str(path), AS_IT_IS)


def require_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Raises StoreUnusable for another program's file."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise StoreUnusable(f"{path}: this file is not a Payrelay database")


def _migrate(connection: sqlite3.Connection, path: Path, clock: Clock, changes: SchemaChanges) -> None:
    """Runs the missing migrations. Of several processes that start at once, one runs them; the others wait."""
    known = migrations.shipped("sqlite")
    is_done = False
    while not is_done:
        connection.execute("BEGIN IMMEDIATE")
        applied = _applied(connection)
        todo = migrations.allowed(applied, known, str(path), changes)
        is_new = not applied
        if is_new:
            connection.execute(migrations.CREATE_VERSION_TABLE)
        for migration in todo if is_new else todo[:1]:
            if not is_new:
                changes.tell(migration.shown)
            try:
                _apply(connection, migration, clock.now_ms())
            except sqlite3.Error as error:
                raise _explained(error, path, f"{migration.shown} failed, and nothing of it was done") from error
        connection.execute("COMMIT")
        is_done = is_new or len(todo) <= 1


def _applied(connection: sqlite3.Connection) -> list[migrations.AppliedMigration]:
    """Reads the migrations that the file has had; none where it is new."""
    is_made = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'").fetchone()
    rows = connection.execute(migrations.READ_VERSIONS) if is_made else ()
    return [migrations.AppliedMigration(*row) for row in rows]


def _apply(connection: sqlite3.Connection, migration: migrations.Migration, now_ms: int) -> None:
    for statement in _split(migration.text):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO schema_version (number, name, checksum, applied_at_ms) VALUES (?, ?, ?, ?)",
        (migration.number, migration.name, migration.checksum, now_ms),
    )


def _split(text: str) -> Iterator[str]:
    """Splits a file into statements; ``executescript`` would commit in the middle."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        connection.close()


def _explained(
    error: sqlite3.Error, path: Path, what: str = "the database can't be opened"
) -> StoreUnusable | StoreUnavailable:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreUnavailable(f"{path}: another process keeps the database locked")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreUnusable(f"{path}: this file is not a SQLite database")
    return StoreUnusable(f"{path}: {what}: {error}")
