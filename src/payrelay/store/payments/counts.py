"""Counts open operations, and gives the age of the oldest, for operators' alarms."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

import msgspec

from payrelay.core.payments.operation import OpenCount, State
from payrelay.store.engine.database import Database, Statement, Value, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.statements.payments.operations import RARE

COUNTED: Final = (State.PENDING, State.UNKNOWN, State.NEEDS_ATTENTION, State.HELD)
"""Open states in which no process is working on the operation at this moment."""


class Counts:
    """Counts operations in the journal's tables; changes nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open_operations(self) -> dict[State, OpenCount]:
        """Counts the open operations by state, for each state of COUNTED; raises StoreUnavailable."""
        rows = await self._database.read(all_rows(Statement(COUNT_OPEN, ())))
        found = {State(str(state)): _count(total, oldest) for state, total, oldest in rows}
        return {state: found.get(state, OpenCount()) for state in COUNTED}


def _count(total: Value, oldest_ms: Value) -> OpenCount:
    return msgspec.convert({"total": total, "oldest_ms": oldest_ms}, OpenCount)


COUNT_OPEN: Final = query(
    f"""
    SELECT counted.state, counted.total, oldest.created_at_ms
    FROM (
        SELECT state, count(*) AS total, min(id) AS id FROM operations
        WHERE state IN ('pending', 'unknown', 'needs_attention', 'held') AND {RARE.text} GROUP BY state
    ) AS counted JOIN operations AS oldest ON oldest.id = counted.id""",
)
"""Counts the open operations by state, and reads when the oldest of each was made; ids sort by that."""
