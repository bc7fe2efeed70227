"""Covers what an earlier version stored: rows get digests, and journal entries from before the chain are recorded."""

from payrelay.clock import Clock
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.store.digests.rows import TRUSTED_AT_UPGRADE, RowDigests
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.audit import Trail


async def cover_earlier_rows(database: Database, seal: Seal, secret: bytes, *, at_ms: int) -> None:
    """Gives a digest to every row that needs one, and records the journal entries that have no hash.

    All of them are trusted as they stand: what was changed in them before, nobody can tell. The audit says how many
    they are, and when that was. A row that a process of the version before writes after this step has no digest, and
    counts as not existing: stop such processes before the upgrade. Raises StoreUnavailable, StoreUnusable.
    """
    rows = RowDigests(database, secret, Clock())
    for table in TRUSTED_AT_UPGRADE:
        await rows.add_missing(table)
    trail = Trail(database, seal, ChainKey(secret))
    await trail.record_earlier(sum([await rows.count(table) for table in TRUSTED_AT_UPGRADE]), at_ms)
