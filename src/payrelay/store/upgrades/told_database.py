"""A database that tells how many rows went through it, for the steps of an upgrade that read whole tables."""

from typing import Final

from payrelay.core.database.schema_changes import Tell
from payrelay.store.engine.database import Database, T, Unit

TOLD_EVERY: Final = 50_000
"""Rows between two lines: some seconds of work."""


class ToldDatabase:
    """Passes everything on to another ``Database``; tells at every 50,000th row, also within a unit of work."""

    def __init__(self, database: Database, tell: Tell) -> None:
        self._database = database
        self._tell = tell
        self._rows = 0
        self.clear_files, self.ping, self.close = database.clear_files, database.ping, database.close

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Carries out a unit of work; see ``Database.write``."""
        return await self._database.write(self._counted(unit), is_patient=is_patient)

    async def read(self, unit: Unit[T]) -> T:
        """Carries out a reading unit; see ``Database.read``."""
        return await self._database.read(self._counted(unit))

    async def read_page(self, unit: Unit[T]) -> T:
        """Carries out a reading unit; see ``Database.read_page``."""
        return await self._database.read_page(self._counted(unit))

    def _counted(self, unit: Unit[T]) -> Unit[T]:
        try:
            statement = next(unit)
            while True:
                rows = yield statement
                before, self._rows = self._rows, self._rows + len(rows)
                if before // TOLD_EVERY != self._rows // TOLD_EVERY:
                    self._tell(f"{self._rows:,} rows read so far")
                statement = unit.send(rows)
        except StopIteration as end:
            value: T = end.value
            return value
