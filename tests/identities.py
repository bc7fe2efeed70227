"""The identity of a database that a test has filled without beginning a store in it."""

import msgspec

from payrelay.clock import Clock
from payrelay.core.seal_keys import parse_keys
from payrelay.store import open_database
from payrelay.store.database.identity import DATABASE_IDENTITY, IdentityStore, new_identity, place_of
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.sealing import Seal
from payrelay.store.statements.meta import ADD_META


async def give_identity(database: Database, seal: Seal, at_ms: int = 0) -> None:
    """Gives a database its first identity."""
    first = (DATABASE_IDENTITY, new_identity(seal, at_ms, await place_of(database)))
    await database.write(all_rows(Statement(ADD_META, first, is_whole=True)))


async def begin_where_it_is(url: str, sealing_key: str) -> None:
    """Has the incarnation of a copied database begin where it is, as a standby's is where the first server's was."""
    database = await open_database(url, clock=Clock(), owner=False)
    try:
        place = await place_of(database)
        await IdentityStore(database, Seal(parse_keys(sealing_key))).change(
            lambda identity: identity.with_current(msgspec.structs.replace(identity.current, place=place))
        )
    finally:
        await database.close()
