"""The engine for PostgreSQL.

Rules:

1. A unit is acknowledged after its COMMIT, and our sessions never run with ``synchronous_commit = off``.
2. A unit whose first statement is whole runs without BEGIN and COMMIT: one round trip. Several that wait at the same
   moment run as one statement, where their query can do that (``batches``), and so do reads.
3. All connections lead to one server, which is known. What begins an effect is stored by no other (``watching``).
4. ``faults`` alone translates the driver's exceptions into ours.
"""

import asyncio
import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import asyncpg

from payrelay.clock import Clock
from payrelay.core.database.schema_changes import SchemaChanges
from payrelay.errors import StoreFault, StoreUnavailable, StoreUnusable
from payrelay.store.engine.database import (
    PATIENT_TIMEOUT_S,
    USUAL,
    Connecting,
    Row,
    ServerWatcher,
    Statement,
    T,
    Unit,
    too_long,
)
from payrelay.store.engine.migrations import shipped
from payrelay.store.engine.postgresql.batches import Batches, UndoneError
from payrelay.store.engine.postgresql.faults import OtherServerError, first_line, in_doubt, is_of_one_row
from payrelay.store.engine.postgresql.hosts import name_of, unreadable
from payrelay.store.engine.postgresql.migrating import SchemaTarget, bring_up_to_date
from payrelay.store.engine.postgresql.sessions import (
    STATEMENT_TIMEOUT_S,
    Access,
    require_durable,
    transaction,
)
from payrelay.store.engine.postgresql.watching import Watching, server_at
from payrelay.store.engine.status import FailureCount, StoreStatus

LIST_SHARE: Final = 4
"""Of so many connections, lists have one: the others are for what charges need."""
CLEARING_LOCK_TIMEOUT_S: Final = 0.1
"""How long the writing anew of a table waits for it: everybody else waits behind it, and a dump holds it for hours."""
POOLED_CLEARING_TIMEOUT_S: Final = 1.0
"""How long it takes at most behind a pooler, with the wait for the table."""

_SMALL: Final = re.compile("data_keys(_[0-9]{2})?")
"""The tables that are written anew. Nobody reads or writes a table meanwhile, so no other may be named here."""
_MAY_CLEAR: Final = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass($1)"
"""To others than the owner the server only gives a warning, and leaves the table as it is."""


class Postgresql:
    """The engine (see ``database.Database``); made by ``open_postgresql``."""

    def __init__(self, access: Access, watching: Watching, connecting: Connecting) -> None:
        self._access = access
        self._list_timeout_s = connecting.list_timeout_s
        self._lists = asyncio.Semaphore(max(1, connecting.pool_size // LIST_SHARE))
        self._watching = watching
        self._failures = FailureCount()
        self._batches = Batches(self._carried_out)

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:  # noqa: ARG002, the server groups syncs
        """Carries out a unit of work; see ``Database.write``."""
        try:
            statement = next(unit)
        except StopIteration as end:
            value: T = end.value
            return value
        with self._failures:
            begins_effect = statement.begins_effect
            if begins_effect:
                await self._watching.require_fresh()
            if statement.is_whole and self._is_batched(statement):
                # It has written everything or nothing, so any later statement begins a transaction of its own.
                try:
                    statement = unit.send(await self._batches.rows(statement))
                except StopIteration as end:
                    stored: T = end.value
                    return stored
            async with self._connection() as connection:
                if begins_effect:
                    self._watching.require_effects_now()  # the wait for a connection may have been long
                with in_doubt():
                    return await self._write(connection, unit, statement)

    async def read(self, unit: Unit[T]) -> T:
        """Carries out a reading unit; see ``Database.read``."""
        with self._failures:
            try:
                statement = next(unit)
                while self._is_batched(statement):
                    statement = unit.send(await self._batches.rows(statement))
            except StopIteration as end:
                value: T = end.value
                return value
            async with self._connection() as connection:
                return await _go_on(connection, unit, statement)

    async def read_page(self, unit: Unit[T]) -> T:
        """Carries out a reading unit by one of the connections that lists may have; see ``Database.read_page``.

        The server ends a statement that takes longer, also where it doesn't hear that nobody waits any more.
        """
        beginning = f"BEGIN READ ONLY; SET LOCAL statement_timeout = {int(self._list_timeout_s * 1000)}"
        with self._failures:
            try:
                async with (
                    asyncio.timeout(self._list_timeout_s),
                    self._lists,
                    self._connection() as connection,
                    transaction(connection, beginning),
                ):
                    return await _drive(connection, unit)
            except TimeoutError as error:
                raise too_long(self._list_timeout_s) from error

    async def clear_files(self, table: str) -> bool:
        """Writes a table anew, without what was deleted from it; see ``Database.clear_files``."""
        if _SMALL.fullmatch(table) is None:
            raise StoreUnavailable("this table is not written anew while others use it")
        async with self._connection() as connection:
            if not await connection.fetchval(_MAY_CLEAR, table):
                raise StoreUnavailable(f"{table} can be written anew by its owner only")
            if self._watching.connections.sighting.is_pooled:
                # It runs in no transaction, and no session is ours: the driver ends it where it waits.
                await connection.execute(f"VACUUM (FULL) {table}", timeout=POOLED_CLEARING_TIMEOUT_S)
                return True
            await connection.execute(f"SET lock_timeout = {int(CLEARING_LOCK_TIMEOUT_S * 1000)}")
            try:
                await connection.execute(f"VACUUM (FULL) {table}")
            finally:
                await connection.execute("RESET lock_timeout")
        return True

    def watch(self, watcher: ServerWatcher) -> None:
        """Begins to watch which server takes the writes; see ``Database.watch``."""
        self._watching.begin(watcher)

    async def ping(self) -> None:
        """Asks the server whether it accepts writes; see ``Database.ping``."""
        await self._watching.require_fresh()
        async with self._connection() as connection:
            is_read_only = await connection.fetchval("SELECT current_setting('transaction_read_only') = 'on'")
        if is_read_only:
            raise StoreUnavailable("the database is read-only", fault=StoreFault.READ_ONLY)

    def status(self) -> StoreStatus:
        """Gives the state of the connections now; asks no server."""
        usage = self._watching.connections.usage
        return StoreStatus(
            connections_max=usage.size_max,
            connections_open=usage.size,
            connections_used=usage.used,
            waiting=usage.waiting + self._batches.waiting,
            failed=self._failures.by_fault,
            server_changes=self._watching.server_changes,
        )

    async def close(self) -> None:
        """Lets running units end, then closes the connections; see ``Database.close``."""
        await self._watching.end()
        await self._batches.close()
        await self._watching.connections.close()

    def _connection(self) -> AbstractAsyncContextManager[Any]:
        return self._watching.connections.one()

    def _is_batched(self, statement: Statement) -> bool:
        # Behind a pooler a transaction brings along what only our own sessions keep.
        return statement.query.batch is not None and not self._watching.connections.sighting.is_pooled

    async def _carried_out(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Carries out statements of one query as one; see ``batches.CarryOut``."""
        first = statements[0]
        async with self._connection() as connection:
            if first.begins_effect:
                self._watching.require_effects_now()  # the wait for a connection may have been long
            if not first.is_whole:
                return await _rows_of_each(connection, statements)
            with in_doubt():
                return await _rows_of_each(connection, statements)

    async def _write(self, connection: asyncpg.Connection, unit: Unit[T], statement: Statement) -> T:
        sighting = self._watching.connections.sighting
        beginning = None
        if sighting.is_pooled:
            beginning = self._access.beginning(sighting.server if statement.begins_effect else None)
        if statement.is_whole and not (sighting.is_pooled and statement.begins_effect):
            # It has written everything or nothing, so any later statement begins a transaction of its own.
            try:
                statement = unit.send(await _rows(connection, statement))
            except StopIteration as end:
                value: T = end.value
                return value
        async with transaction(connection, beginning):
            return await _go_on(connection, unit, statement)


async def open_postgresql(
    url: str, *, clock: Clock, changes: SchemaChanges, connecting: Connecting = USUAL
) -> Postgresql:
    """Connects. Makes the schema, and brings it up to date, where ``changes`` allow it; else refuses an old one.

    Raises SettingsError for a URL that can't be read. Raises StoreUnusable where the server can't be reached in time,
    takes no writes, rejects our login, or has a schema that this program can't use.
    """
    name = name_of(url)
    access = Access(url, PATIENT_TIMEOUT_S if connecting.is_patient else STATEMENT_TIMEOUT_S)
    try:
        found = await server_at(access, clock, name=name, wait_s=connecting.wait_s, told=connecting.told)
        migrating = await Access(url, PATIENT_TIMEOUT_S).connect(found.host, is_pooled=True)
        try:
            await bring_up_to_date(migrating, SchemaTarget(name, shipped("postgresql"), changes), clock)
        finally:
            await migrating.close()
        found = await access.look(found.host)
        require_durable(found)
        watching = Watching(access, clock, pool_size=connecting.pool_size)
        await watching.connect(found)
        return Postgresql(access, watching, connecting)
    except asyncpg.PostgresError as error:
        raise StoreUnusable(f"{name}: the server refused: {first_line(error)}") from error
    except (OSError, TimeoutError, OtherServerError) as error:
        raise StoreUnusable(f"{name}: the server can't be reached: {first_line(error)}") from error
    except (asyncpg.InterfaceError, ValueError):
        # Without the cause, which may quote a part of the URL with the password.
        raise unreadable() from None


async def _drive(connection: asyncpg.Connection, unit: Unit[T]) -> T:
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


async def _rows_of_each(connection: asyncpg.Connection, statements: Sequence[Statement]) -> list[list[Row]]:
    """Runs the batch of a query, or its only statement, and gives the rows of each."""
    if len(statements) == 1:
        return [await _rows(connection, statements[0])]
    arrays = map(list, zip(*(statement.parameters for statement in statements), strict=True))
    try:
        found = await connection.fetch(statements[0].query.batch, *arrays)
    except (asyncpg.PostgresError, asyncpg.DataError) as error:
        if is_of_one_row(error):
            raise UndoneError from error
        raise
    rows: list[list[Row]] = [[] for _ in statements]
    for *columns, place in found:
        rows[place - 1].append(columns)
    return rows
