"""A database over one connection, inside a transaction that its owner ends: nobody else sees what it writes until then.

So a database that is only being made can be read, checked and changed by everything that works with a ``Database``,
whatever its schema is.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import asyncpg

from payrelay.errors import StoreError
from payrelay.store.engine.database import Row, Statement, T, Unit
from payrelay.store.engine.postgresql.faults import translated
from payrelay.store.engine.sqlite import rows_of


class InTransaction:
    """The engine (see ``database.Database``); ``rows`` runs a statement. A unit that fails undoes nothing by itself."""

    def __init__(self, rows: Callable[[Statement], Awaitable[list[Row]]]) -> None:
        self._rows = rows

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:  # noqa: ARG002, nothing else commits
        """Carries out a unit of work; see ``Database.write``. On disk once the owner has ended the transaction."""
        return await self.read(unit)

    async def read(self, unit: Unit[T]) -> T:
        """Carries out a unit of work; see ``Database.read``."""
        try:
            statement = next(unit)
            while True:
                statement = unit.send(await self._rows(statement))
        except StopIteration as end:
            value: T = end.value
            return value

    async def read_page(self, unit: Unit[T]) -> T:
        """Carries out a unit of work; see ``Database.read_page``."""
        return await self.read(unit)

    async def clear_files(self, table: str) -> bool:  # noqa: ARG002  of the interface
        """Clears nothing; see ``Database.clear_files``."""
        return False

    async def ping(self) -> None:
        """Does nothing: whoever has the transaction can write; see ``Database.ping``."""

    async def close(self) -> None:
        """Does nothing: the owner closes the connection; see ``Database.close``."""


def in_postgresql(connection: asyncpg.Connection) -> InTransaction:
    """Gives a database over a connection with its transaction."""

    async def rows(statement: Statement) -> list[Row]:
        with translated():
            found: list[Row] = await connection.fetch(statement.query.postgresql, *statement.parameters)
        return found

    return InTransaction(rows)


@contextmanager
def in_sqlite(connection: sqlite3.Connection) -> Iterator[InTransaction]:
    """Gives a database in a transaction of its own, which is committed when the context ends well."""

    async def rows(statement: Statement) -> list[Row]:
        try:
            return rows_of(connection, statement)
        except sqlite3.Error as error:
            raise StoreError(f"the database refused a statement: {error}") from error

    connection.execute("BEGIN IMMEDIATE")
    try:
        yield InTransaction(rows)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
