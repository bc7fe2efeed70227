"""The identity of a database that a test has filled without beginning a store in it."""

from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.sealing import Seal
from payrelay.store.recovery.identity import DATABASE_IDENTITY, new_identity, place_of
from payrelay.store.statements.meta import ADD_META


async def give_identity(database: Database, seal: Seal, at_ms: int = 0) -> None:
    """Gives a database its first identity."""
    first = (DATABASE_IDENTITY, new_identity(seal, at_ms, await place_of(database)))
    await database.write(all_rows(Statement(ADD_META, first, is_whole=True)))
