"""Clears the database's files of data keys that were destroyed on request.

A place whose files may still hold such a key is noted by the unit of work that destroys it. A process that dies before
the files are cleared leaves the note, and the worker of any process clears the place.
"""

from payrelay.errors import StoreUnavailable
from payrelay.store.engine.database import Database, Statement, Value, all_rows, count_rows, first_row
from payrelay.store.statements import data_keys as statements


class KeyResidues:
    """The places in the database's files that may still hold a destroyed key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def clear(self) -> bool:
        """Clears the files of all such places; False where something is in the way, so that it must be tried again.

        May be repeated, and by several processes at once. Raises StoreUnavailable where nothing can be read.
        """
        is_clear = True
        for place, times in await self._database.read(all_rows(Statement(statements.RESIDUES, ()))):
            is_clear = await self._is_cleared(str(place), times) and is_clear
        return is_clear

    async def _is_cleared(self, place: str, times: Value) -> bool:
        try:
            if not await self._database.clear_files(place):
                return False
            if await self._database.read(first_row(Statement(statements.IS_CLEAR, (place,)))) is None:
                return False
            forgotten = Statement(statements.FORGET_RESIDUE, (place, times), is_whole=True)
            return bool(await self._database.write(count_rows(forgotten)))
        except StoreUnavailable:
            return False
