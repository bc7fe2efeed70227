"""The identity of a database that a test has filled without beginning a store in it."""

import msgspec

from payrelay.store.database.identity import DATABASE_IDENTITY, IdentityStore, new_identity, place_of
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.sealing import Seal
from payrelay.store.statements.meta import ADD_META


async def give_identity(database: Database, seal: Seal, at_ms: int = 0) -> None:
    """Gives a database its first identity."""
    first = (DATABASE_IDENTITY, new_identity(seal, at_ms, await place_of(database)))
    await database.write(all_rows(Statement(ADD_META, first, is_whole=True)))


async def begin_where_it_is(database: Database, seal: Seal) -> None:
    """Has the incarnation of a copied database begin where it is, as if it had been made there."""
    place = await place_of(database)
    await IdentityStore(database, seal).change(
        lambda identity: identity.with_current(msgspec.structs.replace(identity.current, place=place))
    )
