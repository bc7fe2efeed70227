"""The digests of rows, for stores that a test makes itself."""

from typing import Final

from payrelay.clock import Clock
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.sealing import KEY_CHECK, Seal
from payrelay.store.statements.meta import ADD_META

CHAIN_KEY: Final = b"c" * 32
"""The key that tests' relays have."""


def digests_of(database: Database, secret: bytes = CHAIN_KEY, clock: Clock | None = None) -> RowDigests:
    """Makes and checks the digests of a database's rows under a key."""
    return RowDigests(database, secret, clock or Clock())


async def put_first_check(database: Database, seal: Seal) -> None:
    """Puts the check of the encryption key into a database as the first version made it, which knew no upgrades."""
    first = seal.seal(b"payrelay", b"meta/key_check")
    await database.write(all_rows(Statement(ADD_META, (KEY_CHECK, first))))
