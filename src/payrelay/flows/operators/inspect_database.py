"""Looks at the database for an operator: whether it can be used, which schema it has, what is paused in it."""

import msgspec

from payrelay.core.gateways.pauses import Pause
from payrelay.store.engine.database import Database
from payrelay.store.gateways.pauses import Pauses
from payrelay.store.meta import schema_version


class DatabaseState(msgspec.Struct, frozen=True, kw_only=True):
    """How a database that can be used was found: the version of its schema, and the accounts that are paused."""

    schema_version: int
    pauses: list[Pause]


async def inspect_database(database: Database) -> DatabaseState:
    """Reads what is told of a database, once it is sure that it can be written to. Raises StoreUnavailable."""
    await database.ping()
    return DatabaseState(schema_version=await schema_version(database), pauses=await Pauses(database).list())
