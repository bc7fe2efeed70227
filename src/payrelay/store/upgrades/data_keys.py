"""Seals what can be erased with data keys, in a database in which it is sealed with the store's key.

A process of the version before can't open what this step has sealed: it answers 503 for those customers, checkouts and
notifications, and must be stopped. What such a process writes while the step runs stays sealed with the store's key. It
can be read all the same, and is erased, but its bytes can be opened for as long as they are somewhere.
"""

from collections.abc import Callable
from typing import Final

from payrelay.errors import StoreUnusable
from payrelay.store.customers import resealed
from payrelay.store.data_keys.keys import DataKeys, OwnKey, stored
from payrelay.store.data_keys.residues import KeyResidues
from payrelay.store.engine.database import Database, Statement, Unit, Value, all_rows
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import FORMAT, Seal
from payrelay.store.seals import SEALED, SealedColumn
from payrelay.store.statements import data_keys as statements
from payrelay.store.statements import seals

PAGE: Final = 100
"""Rows that are read and sealed anew in one unit of work."""
_NO_KEY_ID: Final = b""


async def seal_with_data_keys(database: Database, seal: Seal) -> None:
    """Seals everything erasable with data keys, and clears the file of an embedded database of what lay in it before.

    Values that no key opens stay as they are. Where the file can't be cleared, that is noted (``KeyResidues``). May be
    interrupted and repeated. Raises StoreError.
    """
    await _reseal_customers(database, seal)
    for column in SEALED:
        if column.owner is not None and column.table != "customers":
            await _reseal(database, seal, column, column.owner)
    if not await database.read(all_rows(Statement(statements.ANY_ERASABLE, ()))):
        return
    await KeyResidues(database).clear_whole_file()


async def _reseal_customers(database: Database, seal: Seal) -> None:
    data_keys, after = DataKeys(seal), ""
    while rows := await database.read(all_rows(Statement(statements.OLD_CUSTOMERS, (FORMAT, after, PAGE)))):
        changes = []
        for customer_id, version, *columns in rows:
            own = data_keys.new(str(customer_id))
            try:
                values = resealed(data_keys, own, columns)
            except StoreUnusable:
                continue
            changes.append((Statement(statements.RESEAL_CUSTOMER, (customer_id, version, *values)), own))
        await database.write(_exchange(changes))
        after = str(rows[-1][0])


async def _reseal(database: Database, seal: Seal, column: SealedColumn, owner_of: Callable[..., str]) -> None:
    data_keys = DataKeys(seal)
    page = seals.page_of_others(column.table, column.column, column.keys)
    exchange = seals.exchange(column.table, column.column, column.keys)
    after: tuple[Value, ...] = ("",) * len(column.keys)
    while rows := await database.read(all_rows(Statement(page, (FORMAT, _NO_KEY_ID, *after, PAGE)))):
        changes = []
        for sealed, *keys in rows:
            own, bound = data_keys.new(owner_of(*keys)), column.context(*keys)
            try:
                value = own.key.seal(seal.open(blob_of(sealed), bound), bound)
            except StoreUnusable:
                continue
            changes.append((Statement(exchange, (value, sealed, *keys)), own))
        await database.write(_exchange(changes))
        after = tuple(rows[-1][1:])


def _exchange(changes: list[tuple[Statement, OwnKey]]) -> Unit[None]:
    for change, own in changes:
        if (yield change):
            yield stored(own)
