"""The clearing of a life in which it goes on meanwhile: the judge needs at the end what it cleared."""

from contextlib import suppress
from typing import Final

from payrelay.core.calls import Effect
from payrelay.core.payments.operation import OperationFilter
from payrelay.core.retention import Kept
from payrelay.errors import CallCleared
from payrelay.flows.relay import Relay
from payrelay.store.payments.journal import Journal
from payrelay.store.retention.clearing import BATCH, Batch, Clearing

OPERATIONS_MAX: Final = 100_000


class Remembering(Clearing):
    """Clears calls, and remembers them for the judge, who compares each with what came to the gateway."""

    journal: Journal
    calls: dict[str, Effect]

    async def clear(self, kept: Kept, before_ms: int, now_ms: int, *, limit: int = BATCH) -> Batch:
        """Reads what is not remembered yet, and clears."""
        if kept is Kept.CALLS:
            for operation in await self.journal.list(OperationFilter(), before=None, limit=OPERATIONS_MAX):
                if operation.id not in self.calls:
                    # Another process cleared it, and remembered it first; or commits were lost, and it with them.
                    with suppress(CallCleared, LookupError):
                        self.calls[operation.id] = await self.journal.call_of(operation.id)
        return await super().clear(kept, before_ms, now_ms, limit=limit)


def remembering(relay: Relay, calls: dict[str, Effect]) -> Clearing:
    """Gives the clearing of a life in which it goes on meanwhile."""
    clearing = Remembering.__new__(Remembering)
    vars(clearing).update(vars(relay.clearing))
    clearing.journal, clearing.calls = relay.journal, calls
    return clearing
