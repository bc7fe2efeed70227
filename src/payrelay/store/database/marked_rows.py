"""Compares what high-water marks name with what is in the database."""

from payrelay.core.database.marks import Mark, Missing
from payrelay.core.payments.audit_chain import ChainKey, closed_history
from payrelay.store.engine.database import Database, Statement, Unit
from payrelay.store.engine.rows import moment_in
from payrelay.store.payments.audit import Trail
from payrelay.store.statements.payments import marks as statements
from payrelay.store.statements.payments.operations import CLOSED_HISTORY


class MarkedRows:
    """Looks in a database for the rows that marks name."""

    def __init__(self, database: Database, trail: Trail) -> None:
        self._database = database
        self._trail = trail

    async def missing(self, mark: Mark) -> tuple[Missing, ...]:
        """Gives what a mark names and the database lacks, the oldest first. Raises StoreUnavailable."""
        missing = await self._database.read(_missing(mark, self._trail.key))
        if mark.anchor is not None and not await self._trail.has_anchor(mark.anchor.text):
            missing.append(Missing(f"anchor {mark.anchor.text.partition(':')[0]} of the audit", mark.anchor.at_ms))
        return tuple(sorted(missing, key=lambda each: each.at_ms))

    async def newest_entry_ms(self, until_ms: int) -> int | None:
        """Gives the time of the newest journal entry up to a time; None where there is none.

        Raises StoreUnavailable.
        """
        return await self._database.read(moment_in(Statement(statements.NEWEST_ENTRY_AT, (until_ms,))))


def _missing(mark: Mark, key: ChainKey) -> Unit[list[Missing]]:
    missing = []
    for each in mark.operations:
        rows = yield Statement(statements.ENTRY_HASH, (each.id, each.version))
        if not rows and (yield from _is_cleared(each.id, each.version, key)):
            continue
        if not rows or rows[0][0] != each.digest:
            missing.append(Missing(f"operation {each.id} in version {each.version}", each.at_ms))
    checkout = mark.checkout
    if checkout is not None:
        rows = yield Statement(statements.CHECKOUT_VERSION, (checkout.id,))
        version = rows[0][0] if rows else 0
        if not isinstance(version, int) or version < checkout.version:
            missing.append(Missing(f"checkout {checkout.id} in version {checkout.version}", checkout.at_ms))
    return missing


def _is_cleared(operation_id: str, version: int, key: ChainKey) -> Unit[bool]:
    """Tells whether a checkpoint stands for a journal entry: it was here, and is too old to be kept."""
    rows = yield Statement(CLOSED_HISTORY, (operation_id,))
    if not rows:
        return False
    *columns, kept = rows[0]
    closed = closed_history(kept, columns, key)
    return closed is not None and closed.is_signed and closed.checkpoint.version > version
