"""The digests of rows, for stores that a test makes itself."""

from typing import Final

from payrelay.clock import Clock
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.sealing import KEY_CHECK, Seal
from payrelay.store.meta import sealed_check
from payrelay.store.statements.meta import ADD_META

CHAIN_KEY: Final = b"c" * 32
"""The key that tests' relays have."""


def digests_of(database: Database, secret: bytes = CHAIN_KEY, clock: Clock | None = None) -> RowDigests:
    """Makes and checks the digests of a database's rows under a key."""
    return RowDigests(database, secret, clock or Clock())


async def put_check(database: Database, seal: Seal) -> None:
    """Puts the check of the encryption key into a database that has had no upgrade step."""
    await database.write(all_rows(Statement(ADD_META, (KEY_CHECK, sealed_check(seal, ())))))
