"""Covers what tells shops an outcome, and had no digest or a narrower one in the version before.

These are events, chargebacks, and the states and amounts of plans.
"""

from typing import Final

from payrelay.clock import Clock
from payrelay.store.digests.rows import (
    INSTALLMENTS,
    SUBSCRIPTIONS,
    TRUSTED_LAST,
    DigestedTable,
    NewDigest,
    RowDigests,
    RowKey,
    locked_page,
    put_digests,
    without,
)
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import noted
from payrelay.store.statements.digests.rows import any_digest

TOLD_ROW_DIGESTS: Final = "told row digests"
"""The name of the upgrade step; never changed."""

_COVERED_BEFORE: Final = (
    (SUBSCRIPTIONS, frozenset({"merchant", "subscription_id", "principal", "order_id"})),
    (INSTALLMENTS, frozenset({"merchant", "subscription_id", "payment", "is_paid"})),
)
"""What the digests of the version before cover."""


async def cover_told_rows(database: Database, seal: Seal, secret: bytes) -> None:
    """Gives digests to events and chargebacks, and wider ones to plans and installments whose narrower one is right.

    All of them are trusted as they stand: what was changed before, nobody can tell. A row of a plan whose digest was
    wrong stays wrong. One unit of work does it all and notes the step as finished, as that of the earlier rows. Raises
    StoreUnavailable, StoreUnusable.
    """
    await database.write(_covered(seal, RowDigests(database, secret, Clock())))


async def has_covered_told_rows(database: Database) -> bool:
    """Tells whether events or chargebacks were covered before, whatever the check of the key says.

    Raises StoreUnavailable.
    """
    tables = tuple(table.name for table in TRUSTED_LAST)
    return bool(await database.read(all_rows(Statement(any_digest(tables), ()))))


def _covered(seal: Seal, rows: RowDigests) -> Unit[None]:
    if not (yield from noted(seal, TOLD_ROW_DIGESTS)):
        return  # another process was quicker
    for table in TRUSTED_LAST:
        yield from rows.add_missing(table)
    for table, before in _COVERED_BEFORE:
        yield from _widened(rows.key, table, [name for name in table.read if name not in before])


def _widened(key: RowKey, table: DigestedTable, added: list[str]) -> Unit[None]:
    """Covers more columns where the digest without them is right."""
    after: Row = ()
    while rows := (yield locked_page(table, after)):
        wider = [
            NewDigest(tuple(values), key.of(table, values), was=str(digest))
            for *values, digest in rows
            if key.fits(table, (*without(table, values, *added), digest))
        ]
        if wider:
            yield put_digests(table, wider)
        after = rows[-1][: table.keys]
