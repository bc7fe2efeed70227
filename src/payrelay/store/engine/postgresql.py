"""The shared database: PostgreSQL, for any number of processes and machines.

Rules:

1. A unit is acknowledged after its COMMIT, and our sessions never run with ``synchronous_commit = off``.
2. A unit whose first statement is whole runs without BEGIN and COMMIT: one round trip.
3. This module alone translates the driver's exceptions into ours.
"""

import asyncio
import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg

from payrelay.clock import Clock
from payrelay.core.schema_changes import ANY, SchemaChanges
from payrelay.errors import Outdated, SettingsError, StoreDoubtful, StoreError, StoreUnavailable, StoreUnusable
from payrelay.store.engine import migrations
from payrelay.store.engine.database import Row, Statement, T, Unit
from payrelay.store.engine.migrations.on_postgresql import SchemaTarget, bring_up_to_date

POOL_MIN: Final = 2
POOL_MAX: Final = 16
"""Connections of one process: more would only queue inside the server."""
ACQUIRE_TIMEOUT_S: Final = 2.0
"""How long a unit waits for a connection."""
CONNECT_TIMEOUT_S: Final = 5.0
STATEMENT_TIMEOUT_S: Final = 5.0
"""Our statements take milliseconds. One that takes longer waits for a lock or a failing disk."""
PATIENT_TIMEOUT_S: Final = 3600.0
"""How long a statement may take that reads a whole table, as upgrades and audits do: ten million rows take minutes."""
LOCK_TIMEOUT_S: Final = 2.0
"""Equals the wait of the embedded database for another process."""
CLEARING_LOCK_TIMEOUT_S: Final = 0.1
"""How long the writing anew of a table waits for it: everybody else waits behind it, and a dump holds it for hours."""
IDLE_IN_TRANSACTION_TIMEOUT_S: Final = 10.0
"""After this the server releases the locks of a process that hangs in the middle of a unit."""
_CLOSE_TIMEOUT_S: Final = 10.0

_SESSION: Final = {
    "lock_timeout": str(int(LOCK_TIMEOUT_S * 1000)),
    "idle_in_transaction_session_timeout": str(int(IDLE_IN_TRANSACTION_TIMEOUT_S * 1000)),
    "default_transaction_isolation": "read committed",
    "jit": "off",
}

_UNAVAILABLE_CLASSES: Final = frozenset({"08", "28", "40", "53", "55", "57", "58"})
"""Classes of SQLSTATE that pass: connection, authorization (a password being changed), rollback by conflict, resources,
an object in use, operator intervention, system error."""
_UNAVAILABLE_STATES: Final = frozenset({"25006"})
"""A read-only transaction: the server has become a standby."""
_UNIQUE_VIOLATION: Final = "23505"
_LOST: Final = ("08", "57P")
"""Of those that pass: the connection or the server was lost, perhaps at the commit."""

_SMALL: Final = re.compile("data_keys(_[0-9]{2})?")
"""The tables that are written anew. Nobody reads or writes a table meanwhile, so no other may be named here."""

_ENSURE_DURABLE: Final = """
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"""


class _Connection(asyncpg.Connection):  # type: ignore[misc] # asyncpg is shipped without types
    """A connection that our units leave as they found it."""

    def get_reset_query(self) -> str:
        """Gives no reset query, which saves a round trip for each unit."""
        return ""


class Postgresql:
    """The engine (see ``database.Database``); made by ``open_postgresql``."""

    def __init__(self, pool: Any) -> None:  # noqa: ANN401 - asyncpg is shipped without types
        self._pool = pool

    async def write(self, unit: Unit[T]) -> T:
        """Carries out a unit of work; see ``Database.write``."""
        with translated():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT_S) as connection:
                with _in_doubt():
                    return await _write(connection, unit)

    async def read(self, unit: Unit[T]) -> T:
        """Carries out a reading unit; see ``Database.read``."""
        with translated():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT_S) as connection:
                return await _read(connection, unit)

    async def clear_files(self, table: str | None) -> bool:
        """Writes a table anew, without what was deleted from it; see ``Database.clear_files``."""
        if table is None:
            return False
        if _SMALL.fullmatch(table) is None:
            raise StoreUnavailable("this table is not written anew while others use it")
        with translated():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT_S) as connection:
                await connection.execute(f"SET lock_timeout = {int(CLEARING_LOCK_TIMEOUT_S * 1000)}")
                try:
                    await connection.execute(f"VACUUM (FULL) {table}")
                finally:
                    await connection.execute("RESET lock_timeout")
        return True

    async def ping(self) -> None:
        """Asks the server whether it accepts writes; see ``Database.ping``."""
        with translated():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT_S) as connection:
                is_read_only = await connection.fetchval("SELECT current_setting('transaction_read_only') = 'on'")
        if is_read_only:
            raise StoreUnavailable("the database is read-only")

    async def close(self) -> None:
        """Lets running units end, then closes the connections; see ``Database.close``."""
        try:
            with translated():
                await asyncio.wait_for(self._pool.close(), _CLOSE_TIMEOUT_S)
        except StoreError:
            self._pool.terminate()


async def open_postgresql(
    url: str, *, clock: Clock, changes: SchemaChanges = ANY, is_patient: bool = False
) -> Postgresql:
    """Connects. Makes the schema, and brings it up to date, where ``changes`` allow it; else refuses an old one.

    With ``is_patient`` a statement may take as long as it takes to read a whole table.

    Raises SettingsError for a URL that can't be read. Raises StoreUnusable where the server can't be reached, rejects
    our login, or has a schema that this program can't use.
    """
    name, timeout_s = name_of(url), PATIENT_TIMEOUT_S if is_patient else STATEMENT_TIMEOUT_S
    try:
        await _migrate(url, name, clock, changes)
        pool = await asyncpg.create_pool(
            url,
            min_size=POOL_MIN,
            max_size=POOL_MAX,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=timeout_s + 1,
            server_settings=_session(timeout_s),
            connection_class=_Connection,
            init=_prepare,
        )
    except asyncpg.PostgresError as error:
        raise StoreUnusable(f"{name}: the server refused: {_first_line(error)}") from error
    except (OSError, TimeoutError) as error:
        raise StoreUnusable(f"{name}: the server can't be reached: {_first_line(error)}") from error
    except (asyncpg.InterfaceError, ValueError):
        # Without the cause, which may quote a part of the URL with the password.
        raise unreadable() from None
    return Postgresql(pool)


def _session(timeout_s: float) -> dict[str, str]:
    """Gives the settings of our sessions. Their name has the schema's version, so that other versions can be told."""
    name = f"payrelay schema {migrations.shipped('postgresql')[-1].number}"
    return _SESSION | {"application_name": name, "statement_timeout": str(int(timeout_s * 1000))}


async def _prepare(connection: asyncpg.Connection) -> None:
    await connection.execute(_ENSURE_DURABLE)


async def _migrate(url: str, name: str, clock: Clock, changes: SchemaChanges) -> None:
    connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S, command_timeout=PATIENT_TIMEOUT_S)
    try:
        await bring_up_to_date(connection, SchemaTarget(name, migrations.shipped("postgresql"), changes), clock)
    finally:
        await connection.close()


async def _write(connection: asyncpg.Connection, unit: Unit[T]) -> T:
    try:
        statement = next(unit)
        if statement.is_whole:
            # It has written everything or nothing, so any later statement begins a transaction of its own.
            statement = unit.send(await _rows(connection, statement))
    except StopIteration as end:
        value: T = end.value
        return value
    async with connection.transaction():
        return await _go_on(connection, unit, statement)


async def _read(connection: asyncpg.Connection, unit: Unit[T]) -> T:
    try:
        statement = next(unit)
    except StopIteration as end:
        value: T = end.value
        return value
    return await _go_on(connection, unit, statement)


async def _go_on(connection: asyncpg.Connection, unit: Unit[T], statement: Statement) -> T:
    """Runs the statement that a unit has yielded, and all that it yields after it."""
    try:
        while True:
            statement = unit.send(await _rows(connection, statement))
    except StopIteration as end:
        value: T = end.value
        return value


async def _rows(connection: asyncpg.Connection, statement: Statement) -> list[Row]:
    rows: list[Row] = await connection.fetch(statement.query.postgresql, *statement.parameters)
    return rows


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Translates the driver's exceptions into those that ``Database`` promises, with their causes."""
    try:
        yield
    except asyncpg.PostgresError as error:
        raise _of_state(error) from error
    except (OSError, TimeoutError) as error:
        raise StoreUnavailable(f"the database can't be reached: {_first_line(error)}") from error
    except asyncpg.DataError as error:
        raise StoreError(f"the database can't hold a value: {_first_line(error)}") from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        # Where a connection dies at a bad moment, the driver sometimes reports a fault of its own.
        raise StoreUnavailable(f"the database can't be used: {_first_line(error)}") from error


@contextlib.contextmanager
def _in_doubt() -> Iterator[None]:
    """Raises StoreDoubtful where the server was lost during a unit and may have committed it."""
    try:
        yield
    except asyncpg.PostgresError as error:
        if not (error.sqlstate or "").startswith(_LOST):
            raise
        raise StoreDoubtful(f"the database was lost: {_first_line(error)}") from error
    except asyncpg.DataError:
        raise
    except (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise StoreDoubtful(f"the database was lost: {_first_line(error)}") from error


def _of_state(error: asyncpg.PostgresError) -> StoreError:
    state: str = error.sqlstate or ""
    if state == _UNIQUE_VIOLATION:
        return Outdated("another row took the place of this one")
    if state[:2] in _UNAVAILABLE_CLASSES or state in _UNAVAILABLE_STATES:
        return StoreUnavailable(f"the database can't be used: {_first_line(error)}")
    return StoreError(f"the database refused a statement: {_first_line(error)}")


def _first_line(error: BaseException) -> str:
    """Gives the message without the details that the server adds, which quote values."""
    return (str(error) or type(error).__name__).splitlines()[0]


def name_of(url: str) -> str:
    """Names the database without its password."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise unreadable() from None
    return f"postgresql://{parts.hostname or ''}{port}{parts.path}"


def unreadable() -> SettingsError:
    """Makes the error for a URL that can't be read, without quoting it."""
    return SettingsError("PAYRELAY_DATABASE_URL can't be read as postgresql://user@host/database")
