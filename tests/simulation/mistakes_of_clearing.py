"""Mistakes of the clearing, to see that the simulation would notice them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tests.simulation.process import SEAL, Parts

from payrelay.core.retention import Kept
from payrelay.flows.relay import Relay
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.payments.operation_rows import call_context
from payrelay.store.retention.clearing import Batch, Clearing

_IDS: Final = query("SELECT id FROM operations")
_TAKE_CALL: Final = query("UPDATE operations SET sealed_call = $2 WHERE id = $1 RETURNING id")
_TAKE_GUARDS: Final = query("UPDATE operations SET guard = NULL WHERE guard IS NOT NULL RETURNING id")


class Greedy(Clearing):
    """Clears the calls of all operations, also of open ones."""

    async def clear(self, kept: Kept, before_ms: int, now_ms: int, *, limit: int = 1) -> Batch:  # noqa: ARG002
        """Asks for no state."""
        if kept is Kept.CALLS:
            await self._database.write(_without_calls())
        return Batch(0, is_done=True)


class Unlocking(Clearing):
    """Clears the guards of operations."""

    async def clear(self, kept: Kept, before_ms: int, now_ms: int, *, limit: int = 1) -> Batch:  # noqa: ARG002
        """Leaves nothing locked."""
        if kept is Kept.CALLS:
            await self._database.write(all_rows(Statement(_TAKE_GUARDS, ())))
        return Batch(0, is_done=True)


def _without_calls() -> Unit[None]:
    for (operation_id,) in (yield Statement(_IDS, ())):
        mark = SEAL.seal(b"", call_context(str(operation_id)))
        yield Statement(_TAKE_CALL, (operation_id, mark))


def _with(clearing: type[Clearing]) -> Parts:
    def change(relay: Relay, database: Database) -> Relay:
        rows, trail = relay.checkouts.rows, relay.journal.trail
        return replace(relay, clearing=clearing(database, SEAL, rows, trail, periods=relay.clearing.periods))

    return Parts(change=change)


MISTAKES_OF_CLEARING: Final[dict[str, Callable[[], Parts]]] = {
    "what is open is cleared": lambda: _with(Greedy),
    "guards are cleared": lambda: _with(Unlocking),
}
