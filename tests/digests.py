"""The digests of rows, for stores that a test makes itself."""

from typing import Final

from payrelay.clock import Clock
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database

CHAIN_KEY: Final = b"c" * 32
"""The key that tests' relays have."""


def digests_of(database: Database, secret: bytes = CHAIN_KEY, clock: Clock | None = None) -> RowDigests:
    """Makes and checks the digests of a database's rows under a key."""
    return RowDigests(database, secret, clock or Clock())
