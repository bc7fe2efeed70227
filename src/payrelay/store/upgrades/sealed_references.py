"""Hides the references and the Idempotency-Keys of checkouts, which an earlier version had in clear.

The reference is sealed with a data key of its own. Both get the hashes by which they are found. A digest covers the
hash of the reference in place of the reference. A row whose digest was wrong keeps that digest, and so goes on counting
as not existing. No row is trusted as it stands: so the step may run at any time.
"""

from typing import Final

from payrelay.store.checkouts import sealed_reference
from payrelay.store.data_keys.keys import DataKeys, stored
from payrelay.store.data_keys.residues import KeyResidues
from payrelay.store.digests.lookups import Lookups
from payrelay.store.digests.rows import CHECKOUTS, CHECKOUTS_IN_CLEAR, RowKey
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows
from payrelay.store.engine.sealing import Seal
from payrelay.store.statements import checkouts as statements
from payrelay.store.statements.data_keys import ANY_ERASABLE

PAGE: Final = 100
"""Rows that are read and sealed in one unit of work."""
_KEY: Final = CHECKOUTS.read.index("key_hash")
_REFERENCE: Final = CHECKOUTS.read.index("reference_hash")


async def seal_references(database: Database, seal: Seal, secret: bytes) -> None:
    """Hides references and keys, and clears the file of an embedded database of what lay in it before.

    Where the file can't be cleared, that is noted (``KeyResidues``). May be interrupted and repeated. Raises
    StoreError.
    """
    hiding, after = _Hiding(seal, secret), ""
    while (last := await database.write(hiding.page(after))) is not None:
        after = last
    if await database.read(all_rows(Statement(ANY_ERASABLE, ()))):
        await KeyResidues(database).clear_whole_file()


class _Hiding:
    """Hides what lies in clear, page by page."""

    def __init__(self, seal: Seal, secret: bytes) -> None:
        self._data_keys = DataKeys(seal)
        self._rows = RowKey(secret)
        self._lookups = Lookups(secret)

    def page(self, after: str) -> Unit[str | None]:
        """Hides the next page; gives the id of its last row, None where nothing lies in clear any more."""
        rows = yield Statement(statements.CLEAR_CHECKOUTS, (after, PAGE))
        for *values, digest, reference_hash in rows:
            yield from self._hide(values, digest, reference_hash)
        return str(rows[-1][0]) if rows else None

    def _hide(self, values: Row, digest: Value, known_hash: Value) -> Unit[None]:
        id_, key, reference = str(values[0]), values[_KEY], values[_REFERENCE]
        key_hash = None if key is None else self._lookups.key(str(key))
        reference_hash, value = known_hash, None
        if reference is not None and known_hash is None:
            reference_hash = self._lookups.reference(str(reference))
            named = sealed_reference(self._data_keys, id_, str(reference))
            value = named.value
            yield stored(named.own)
        if self._rows.fits(CHECKOUTS_IN_CLEAR, (*values, digest)):
            hidden = [*values[:_REFERENCE], reference_hash, *values[_REFERENCE + 1 :]]
            digest = self._rows.of(CHECKOUTS, hidden)
        yield Statement(statements.SEAL_REFERENCE, (id_, key_hash, reference_hash, value, digest))
