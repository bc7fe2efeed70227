"""Begins the store in a database that holds nothing."""

from payrelay.clock import Clock
from payrelay.store.database.identity import DATABASE_IDENTITY, new_identity, place_of
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import KEY_CHECK, Seal
from payrelay.store.meta import CHAIN_KEY, begin, new_chain, sealed_chain_key, sealed_check
from payrelay.store.upgrades.run import STEPS


async def begin_store(database: Database, seal: Seal, clock: Clock) -> bool:
    """Stores the check and the keys that a store begins with; False where the database holds anything already.

    The check names every upgrade step as finished from the first. Raises StoreUnavailable.
    """
    chain = new_chain(clock)
    return await begin(
        database,
        {
            KEY_CHECK: sealed_check(seal, (step.name for step in STEPS)),
            CHAIN_KEY: sealed_chain_key(seal, chain),
            DATABASE_IDENTITY: new_identity(seal, chain.since_ms, await place_of(database)),
        },
    )
