"""Covers what an earlier version stored: rows get digests, and journal entries from before the chain are recorded."""

from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.store.digests.rows import DIGESTED, TRUSTED_AT_UPGRADE, RowDigests
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import noted
from payrelay.store.payments.audit import EARLIER, Earlier, Trail, sealed_earlier
from payrelay.store.statements import meta as statements
from payrelay.store.statements.access import principals
from payrelay.store.statements.data_keys import ANY_KEY
from payrelay.store.statements.digests.rows import any_digest

ROW_DIGESTS: Final = "row digests"
"""The name of the upgrade step; never changed."""


async def cover_earlier_rows(database: Database, seal: Seal, secret: bytes, *, at_ms: int) -> None:
    """Gives a digest to every row that needs one, and records the journal entries that have no hash.

    Before that it adds the grandfathered pairs that migration 14 passed over. All rows are trusted as they stand: what
    was changed in them before, nobody can tell. The audit says how many they are, and when that was. One unit of work
    gives the digests and notes the step as finished. So a database in which some rows have digests has had the step. A
    row that a process of the version before writes afterwards has no digest, and counts as not existing. Raises
    StoreUnavailable, StoreUnusable.
    """
    rows, trail = RowDigests(database, secret, Clock()), Trail(database, seal, ChainKey(secret))
    await database.write(_covered(rows, seal, await trail.entries_without_hash(at_ms)))


async def has_covered_rows(database: Database) -> bool:
    """Tells whether the rows of a database were covered before, whatever the check of the key says.

    It has a digest then, the record of what was trusted, or a data key, which only a later step makes. Whoever removes
    all three destroys every stored customer. Raises StoreUnavailable.
    """
    tables = tuple(table.name for table in DIGESTED)
    traces = Statement(statements.GET_META, (EARLIER,)), Statement(any_digest(tables), ()), Statement(ANY_KEY, ())
    return any([await database.read(all_rows(trace)) for trace in traces])


def _covered(rows: RowDigests, seal: Seal, entries: Earlier) -> Unit[None]:
    if not (yield from noted(seal, ROW_DIGESTS)):
        return  # another process was quicker
    for pairs in (principals.FORGET_UNSEEN, principals.ADD_ACTED, principals.ADD_UNSEEN):
        yield Statement(pairs, ())
    found = 0
    for table in TRUSTED_AT_UPGRADE:
        found += yield from rows.add_missing(table)
    earlier = sealed_earlier(seal, msgspec.structs.replace(entries, rows=found))
    yield Statement(statements.ADD_META, (EARLIER, earlier))
