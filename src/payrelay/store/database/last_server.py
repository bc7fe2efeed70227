"""Remembers, in the database, on which server its writes went last."""

from typing import Final

from payrelay.store.engine.database import Database, Statement, all_rows, first_row
from payrelay.store.engine.rows import blob_of
from payrelay.store.statements import meta as statements

NAME: Final = "last_server"


class LastServer:
    """Reads and stores the words for a server, as ``store.engine.database.ServerWatcher`` has them.

    A database that went back in time names an earlier server than the one it is on, or none: a process that starts
    after the change sees that there was one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> str | None:
        """Gives the server that was stored last; None where none was. Raises StoreUnavailable."""
        row = await self._database.read(first_row(Statement(statements.GET_META, (NAME,))))
        return None if row is None else blob_of(row[0]).decode()

    async def put(self, server: str) -> None:
        """Stores a server in place of the earlier one; may be repeated. Raises StoreUnavailable."""
        await self._database.write(all_rows(Statement(statements.PUT_META, (NAME, server.encode()), is_whole=True)))
