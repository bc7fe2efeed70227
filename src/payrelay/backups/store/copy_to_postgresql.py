"""An embedded database on its way into PostgreSQL: one transaction on either side, of which the source's ends first."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import asyncpg

from payrelay.backups.store.copied import Moved
from payrelay.backups.store.in_transaction import InTransaction, in_postgresql, in_sqlite
from payrelay.backups.store.tables import copy_tables
from payrelay.clock import Clock
from payrelay.core.database.schema_changes import ANY
from payrelay.errors import StoreUnusable
from payrelay.store.engine.owner_lock import OwnerLock
from payrelay.store.engine.postgresql.database import open_postgresql
from payrelay.store.engine.postgresql.faults import translated
from payrelay.store.engine.postgresql.hosts import name_of, unreadable
from payrelay.store.engine.postgresql.sessions import CONNECT_TIMEOUT_S
from payrelay.store.engine.sqlite_file import require_ours, require_there

_UNLIMITED: Final = {"idle_in_transaction_session_timeout": "0", "statement_timeout": "0", "lock_timeout": "10s"}
_SESSIONS: Final = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'payrelay%' AND pid <> pg_backend_pid()"""


class CopyUnderWay(NamedTuple):
    """Both databases, each in a transaction.

    Attributes:
        source: what it has, in one transaction; committed first.
        target: the new one, whose transaction is committed last. Nobody else sees it until then.
        target_name: its name, without a password.
    """

    source: InTransaction
    target: InTransaction
    target_name: str
    source_connection: sqlite3.Connection
    target_connection: asyncpg.Connection

    async def copy(self, moved: Moved) -> int:
        """Copies every row and compares it, once; returns how many there are. Raises StoreError."""
        try:
            with translated():
                return await copy_tables(self.source_connection, self.target_connection, moved)
        except sqlite3.Error as error:
            raise StoreUnusable(f"the database can't be copied: {error}") from error


@asynccontextmanager
async def copying(path: Path, url: str, clock: Clock) -> AsyncIterator[CopyUnderWay]:
    """Holds both databases alone while the context is open; migrates the target. What was changed counts at its end.

    Where the context ends badly, nothing has changed. Where the program ends between both commits, the source has been
    changed and the target has not.

    Raises StoreUnusable where a process runs on either; SettingsError, StoreUnavailable.
    """
    require_there(path)
    name = name_of(url)
    async with AsyncExitStack() as stack:
        stack.callback(OwnerLock.of_database(path).release)
        target = await stack.enter_async_context(_connected(url))
        stack.enter_context(translated())
        sessions = await target.fetchval(_SESSIONS)
        if sessions:
            raise StoreUnusable(f"{name}: processes of Payrelay have {sessions} sessions on it; stop them all first")
        await (await open_postgresql(url, clock=clock, changes=ANY)).close()
        await stack.enter_async_context(target.transaction())
        # A service that is started on it meanwhile would begin a store of its own there.
        await target.execute("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE")
        await target.execute("SET LOCAL synchronous_commit = on")
        connection, source = stack.enter_context(_source(path))
        yield CopyUnderWay(source, in_postgresql(target), name, connection, target)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Connects as an operator's command, which may take long. Raises SettingsError, StoreUnavailable."""
    try:
        with translated():
            connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S, server_settings=_UNLIMITED)
    except ValueError:
        raise unreadable() from None
    try:
        yield connection
    finally:
        await asyncio.shield(connection.close())


@contextmanager
def _source(path: Path) -> Iterator[tuple[sqlite3.Connection, InTransaction]]:
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=rw", uri=True, isolation_level=None)
        ) as at:
            require_ours(at, path)
            with in_sqlite(at) as database:
                yield at, database
    except sqlite3.Error as error:
        raise StoreUnusable(f"{path}: the database can't be used: {error}") from error
