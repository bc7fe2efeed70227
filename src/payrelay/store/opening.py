"""Opens the database that a URL names, migrated and checked, with the engine of its kind."""

import asyncio
import contextlib
from concurrent.futures import Executor, ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from payrelay.clock import Clock
from payrelay.core.database.database_url import embedded_file
from payrelay.core.database.schema_changes import ANY, AS_IT_IS, SchemaChanges
from payrelay.core.database.store_status import StoreStatus
from payrelay.store.engine import sqlite_file
from payrelay.store.engine.database import PATIENT, USUAL, Connecting, Database, ServerWatcher
from payrelay.store.engine.owner_lock import OwnerLock
from payrelay.store.engine.sqlite import InlineExecutor, Sqlite

POSTGRESQL: Final = "payrelay.store.engine.postgresql.database"
"""Loaded where a database is there: the driver takes megabytes, which a service with an embedded one does without."""


@runtime_checkable
class _Engine(Protocol):
    """A database that is an engine, and no wrapper of one such as a test's."""

    def status(self) -> StoreStatus:
        """Gives its state now."""


@runtime_checkable
class _Shared(Protocol):
    """An engine that has a server."""

    def watch(self, watcher: ServerWatcher) -> None:
        """Begins to watch which server takes the writes."""


class _OpenPostgresql(Protocol):
    """Opens a PostgreSQL database."""

    async def __call__(self, url: str, *, clock: Clock, changes: SchemaChanges, connecting: Connecting) -> Database:
        """See ``open_postgresql``."""


async def open_database(
    url: str,
    *,
    clock: Clock,
    owner: bool,
    changes: SchemaChanges = ANY,
    executor: Executor | None = None,
    busy_s: float = sqlite_file.BUSY_S,
    connecting: Connecting = USUAL,
) -> Database:
    """Opens ``sqlite:///path`` or ``postgresql://user@host/name``.

    Args:
        url: the setting PAYRELAY_DATABASE_URL.
        clock: gives the time of a migration.
        owner: for SQLite, whether this process is the server; there is one at a time. Commands may use the file beside
            it.
        changes: whether a missing database is made, and an old schema brought up to date. What may not be is refused.
        executor: for SQLite, runs slow steps, one at a time; None for a thread of its own. It is shut down at the end.
        busy_s: for SQLite, how long a write waits for another process.
        connecting: how long is waited, and for what; of this, SQLite needs how long a list may take.

    Raises SettingsError for a URL of another kind, StoreUnusable where an operator must act, StoreUnavailable where the
    database is there but busy. No message shows a password.
    """
    name = embedded_file(url)
    if name is None:
        open_postgresql: _OpenPostgresql = import_module(POSTGRESQL).open_postgresql
        return await open_postgresql(url, clock=clock, changes=changes, connecting=connecting)
    path = Path(name)
    sqlite_file.require_folder(path, may_make=changes.may_make)
    lock = OwnerLock.of_database(path) if owner else None
    with contextlib.ExitStack() as undo:
        if lock is not None:
            undo.callback(lock.release)
        connections = sqlite_file.open_file(path, clock=clock, busy_s=busy_s, changes=changes)
        undo.pop_all()
    writer = executor or ThreadPoolExecutor(max_workers=1, thread_name_prefix="payrelay-writer")
    return Sqlite(
        connections,
        executor=writer,
        loop=asyncio.get_running_loop(),
        lock=lock,
        busy_s=busy_s,
        folder=path.parent,
        list_timeout_s=None if isinstance(executor, InlineExecutor) else connecting.list_timeout_s,
    )


def watch_server(database: Database, watcher: ServerWatcher) -> None:
    """Begins to watch which server takes the writes, and tells ``watcher`` where it is another one.

    An embedded database has no server: one process owns the file.
    """
    if isinstance(database, _Shared):
        database.watch(watcher)


def status_of(database: Database) -> StoreStatus | None:
    """Gives the state of a database's engine now; None for a database that is no engine, such as a test's."""
    return database.status() if isinstance(database, _Engine) else None


def free_bytes_of(database: Database) -> int | None:
    """Gives the room on the disk beside an embedded database; None with a server, which alone knows."""
    status = status_of(database)
    return None if status is None else status.disk_free_bytes


async def open_to_read_all(url: str, clock: Clock) -> Database:
    """Opens a database as it is, for a command that reads whole tables for as long as that takes; else as above."""
    return await open_database(url, clock=clock, owner=False, changes=AS_IT_IS, connecting=PATIENT)
