"""Runs migrations on PostgreSQL while services go on charging.

Rules:

1. A migration waits for a lock for a moment only, because everybody else waits behind it. Then it lets go, and tries
   again after a pause. So a dump, which holds its tables for hours, delays the migration and not a charge.
2. An online migration (``migrations.ONLINE``) takes no lock that writers wait for, and so has no such limit.
3. Whoever is connected, and can't work with one of the missing migrations, is named before the first of them is run.
   A process of that version that starts meanwhile is found before the next one.
4. Of several processes one migrates at a time. A process asks for that right and goes on, and never waits for it inside
   a statement: a concurrent index waits for all statements that began before it.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

import asyncpg

from payrelay.clock import Clock
from payrelay.core.database.schema_changes import SchemaChanges
from payrelay.errors import StoreUnusable
from payrelay.store.engine.migrations import (
    CREATE_VERSION_TABLE,
    READ_VERSIONS,
    AppliedMigration,
    Migration,
    allowed,
)

LOCK_WAIT_S: Final = 0.3
"""How long a migration waits for one lock: longer than our transactions take, and short for a charge behind it."""
PAUSE_S: Final = 1.0
"""Between two tries, in which all that waited goes on."""
LOCKS_WITHIN_S: Final = 3600.0
"""How long it goes on trying: a dump of a large database takes about that long."""
TOLD_EVERY_S: Final = 30.0
_LOCK: Final = 0x7061_7972_656C_6179
"""The number of the advisory lock of whoever migrates."""

_BUSY: Final = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
_SETTINGS: Final = f"SET LOCAL lock_timeout = {int(LOCK_WAIT_S * 1000)}; SET LOCAL statement_timeout = 0"
_OLDEST: Final = """
    SELECT pid, application_name, extract(epoch FROM clock_timestamp() - xact_start)::bigint FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - interval '1 s'
    ORDER BY xact_start LIMIT 3"""
_CONNECTED: Final = """
    SELECT split_part(application_name, ' ', 3)::integer, host(client_addr), count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name ~ '^payrelay schema [0-9]+$' GROUP BY 1, 2 ORDER BY 1, 2"""


class _OtherMigrates(Exception):
    """Another process has the right to migrate."""


def session_name(version: int) -> str:
    """Gives the name of the sessions of a program that knows a version of the schema."""
    return f"payrelay schema {version}"


class _Patience:
    """Pauses between two tries, tells why, and ends after a set time."""

    def __init__(self, connection: asyncpg.Connection, target: "SchemaTarget", clock: Clock) -> None:
        self._connection = connection
        self._name = target.name
        self._clock = clock
        self._tell = target.changes.tell
        self._running = 0
        self._began_s = clock.boot_s()
        self._told_s: float | None = None

    def tell_running(self, migration: Migration, how: str = "") -> None:
        """Tells that a migration runs, at its first try."""
        if migration.number != self._running:
            self._running = migration.number
            self._tell(migration.shown + how)

    async def pause(self, why: str) -> None:
        """Returns after a pause. Raises StoreUnusable where the time is over."""
        now_s = self._clock.boot_s()
        if now_s - self._began_s > LOCKS_WITHIN_S:
            raise StoreUnusable(
                f"{self._name}: a migration found no moment for its locks: {await self._who()};"
                " nothing of it was done, and it may be tried again"
            )
        if self._told_s is None or now_s - self._told_s >= TOLD_EVERY_S:
            self._told_s = now_s
            self._tell(f"{why}: {await self._who()}")
        await asyncio.sleep(PAUSE_S)

    async def _who(self) -> str:
        oldest = await self._connection.fetch(_OLDEST)
        shown = [f"process {pid} ({name or 'without a name'}), for {age_s} s" for pid, name, age_s in oldest]
        return f"the longest transactions are {'; '.join(shown)}" if shown else "many short transactions"


class SchemaTarget(NamedTuple):
    """The schema that a database is brought to.

    Attributes:
        name: of the database, in errors.
        known: the migrations of this program.
        changes: what of it may be done.
    """

    name: str
    known: Sequence[Migration]
    changes: SchemaChanges


async def bring_up_to_date(connection: asyncpg.Connection, target: SchemaTarget, clock: Clock) -> None:
    """Runs the missing migrations that may be run. A new database gets all of them at once or none.

    May be stopped at any time, and repeated. Raises DatabaseNotReady and StoreUnusable as ``migrations.allowed``, and
    the driver's exceptions. Raises StoreUnusable where locks can't be had, and where a program is connected that can't
    work with what is missing.
    """
    patience = _Patience(connection, target, clock)
    while todo := await _todo(connection, target):
        if len(todo) < len(target.known):
            await _require_no_older(connection, target, todo)
        try:
            if todo[0].is_online and len(todo) < len(target.known):
                await _run_online(connection, todo[0], clock, patience)
            else:
                await _run_next(connection, target, clock, patience)
        except _BUSY:
            await patience.pause("waiting for a lock, and letting others go on meanwhile")
        except _OtherMigrates:
            await patience.pause("waiting for another process that migrates")


async def _todo(connection: asyncpg.Connection, target: SchemaTarget) -> Sequence[Migration]:
    return allowed(await _applied(connection), target.known, target.name, target.changes)


async def _require_no_older(connection: asyncpg.Connection, target: SchemaTarget, todo: Sequence[Migration]) -> None:
    """Raises StoreUnusable where a program is connected that can't work with one of the migrations."""
    needed = max(migration.usable_since for migration in todo)
    older = [
        f"{sessions} sessions of a program for version {version}, from {address or 'an address that is not shown'}"
        for version, address, sessions in await connection.fetch(_CONNECTED)
        if version < needed
    ]
    if older:
        raise StoreUnusable(
            f"{target.name}: programs are connected that can't work with version {target.known[-1].number} of the"
            f" schema: {'; '.join(older)}. The schema stays at version {todo[0].number - 1}, with which they can go on."
            " Stop all of their processes, and run payrelay db upgrade again"
        )


async def _run_next(connection: asyncpg.Connection, target: SchemaTarget, clock: Clock, patience: _Patience) -> None:
    """Runs the next migration, or all of them in a new database, in one transaction."""
    async with connection.transaction():
        await connection.execute(_SETTINGS)
        if not await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", _LOCK):
            raise _OtherMigrates
        todo = await _todo(connection, target)  # another process may have run some meanwhile
        if len(todo) == len(target.known):
            await connection.execute(CREATE_VERSION_TABLE)
            for migration in todo:
                await connection.execute(migration.text.replace(" CONCURRENTLY", ""))
                await _note(connection, migration, clock)
        elif todo and not todo[0].is_online:
            patience.tell_running(todo[0])
            await connection.execute(todo[0].text)
            await _note(connection, todo[0], clock)


async def _run_online(connection: asyncpg.Connection, migration: Migration, clock: Clock, patience: _Patience) -> None:
    """Runs a migration statement by statement; it is noted once all of them are done."""
    if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
        raise _OtherMigrates
    try:
        if migration.number in {applied.number for applied in await _applied(connection)}:
            return
        patience.tell_running(migration, ": reads a whole table, while others go on writing to it")
        await connection.execute("SET lock_timeout = 0; SET statement_timeout = 0")
        for statement in migration.statements:
            await connection.execute(statement)
        await _note(connection, migration, clock)
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def _applied(connection: asyncpg.Connection) -> list[AppliedMigration]:
    """Reads the migrations that the database has had; none where it is new."""
    if not await connection.fetchval("SELECT to_regclass('schema_version') IS NOT NULL"):
        return []
    return [AppliedMigration(*row) for row in await connection.fetch(READ_VERSIONS)]


async def _note(connection: asyncpg.Connection, migration: Migration, clock: Clock) -> None:
    await connection.execute(
        "INSERT INTO schema_version (number, name, checksum, applied_at_ms) VALUES ($1, $2, $3, $4)",
        migration.number,
        migration.name,
        migration.checksum,
        clock.now_ms(),
    )
