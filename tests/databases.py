"""Databases that tests begin with: migrated once a process, then copied or emptied, instead of migrated each time."""

import itertools
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

import asyncpg
from tests.postgresql_server import PostgresqlServer

from payrelay.clock import Clock
from payrelay.store import open_database
from payrelay.store.engine import sqlite_file
from payrelay.store.engine.database import Database, T, Unit

_SHAPE: Final = """
    SELECT md5(string_agg(part, ' ' ORDER BY part)) FROM (
        SELECT format('%s %s.%s %s %s', relkind, relname, attname, atttypid, attnotnull) AS part
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE relnamespace = $1::regnamespace AND attnum > 0
        UNION ALL SELECT format('%s %s %s', tgrelid, tgname, tgenabled)
        FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid WHERE relnamespace = $1::regnamespace
        UNION ALL SELECT format('%s %s', conrelid, conname) FROM pg_constraint WHERE connamespace = $1::regnamespace
    ) AS parts
"""
"""All that a schema consists of, in one text: it differs once a test has changed a table itself."""


def sqlite_url(path: Path) -> str:
    """Gives the address of an embedded database; where there is no file yet, a migrated and empty one is put there."""
    if not path.exists():
        path.touch(0o600)
        path.write_bytes(_migrated())
    return f"sqlite:///{path}"


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        for connection in reversed(sqlite_file.open_file(path, clock=Clock())):
            connection.close()  # the writer last: it puts what is in the log into the file
        return path.read_bytes()


class Schemas:
    """Schemas on one PostgreSQL server: new and empty ones, and one that is migrated, and emptied between tests."""

    def __init__(self, server: PostgresqlServer) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        self._name: str | None = None
        self._shape = ""
        self._emptying = ""

    async def new(self) -> str:
        """Makes an empty schema; gives its name."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        await self._execute(f"CREATE SCHEMA {name}")
        return name

    async def drop(self, name: str) -> None:
        """Removes a schema with all that is in it."""
        await self._execute(f"DROP SCHEMA {name} CASCADE")

    async def migrated(self) -> str:
        """Gives the name of the migrated schema, in which nothing is but what the migrations put there."""
        if self._name is None:
            name = await self.new()
            database = await open_database(self.url(name), clock=Clock(), owner=True)
            await database.close()
            await self._remember(name)
            self._name = name
        return self._name

    async def give_back(self, name: str) -> None:
        """Empties the migrated schema for the next test; one whose tables a test has changed is dropped."""
        connection = await asyncpg.connect(self._server.url())
        try:
            if await connection.fetchval(_SHAPE, name) == self._shape:
                await connection.execute(self._emptying)
                return
        finally:
            await connection.close()
        self._name = None
        await self.drop(name)

    def url(self, name: str) -> str:
        """Gives the address of a schema."""
        return self._server.url(search_path=name)

    async def _remember(self, name: str) -> None:
        """Notes the shape, and the statements that lead back to the state of now."""
        connection = await asyncpg.connect(self._server.url())
        try:
            self._shape = await connection.fetchval(_SHAPE, name)
            tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", name)
            # Histories and anchors refuse to be removed: as in a replica, no trigger is asked here.
            statements = ["SET session_replication_role = replica"]
            for (table,) in tables:
                place, kept = f"{name}.{table}", f"public.{name}_{table}"
                statements.append(f"DELETE FROM {place}")  # noqa: S608, our own names
                if await connection.fetchval(f"SELECT count(*) FROM {place}"):  # noqa: S608, the same
                    await connection.execute(f"CREATE TABLE {kept} AS TABLE {place}")
                    statements.append(f"INSERT INTO {place} SELECT * FROM {kept}")  # noqa: S608, the same
            sequences = await connection.fetch("SELECT sequencename FROM pg_sequences WHERE schemaname = $1", name)
            statements += [f"ALTER SEQUENCE {name}.{sequence} RESTART" for (sequence,) in sequences]
            self._emptying = ";".join(statements)
        finally:
            await connection.close()

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self._server.url())
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


class PassingDatabase:
    """A database that passes everything on to another one; a test's own does something else in one place."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Carries out a unit of work."""
        return await self.database.write(unit, is_patient=is_patient)

    async def read(self, unit: Unit[T]) -> T:
        """Carries out a reading unit."""
        return await self.database.read(unit)

    async def read_page(self, unit: Unit[T]) -> T:
        """Reads a list."""
        return await self.database.read_page(unit)

    async def clear_files(self, table: str) -> bool:
        """Clears the files."""
        return await self.database.clear_files(table)

    async def ping(self) -> None:
        """Asks whether the database can be written to."""
        await self.database.ping()

    async def close(self) -> None:
        """Closes the database."""
        await self.database.close()
