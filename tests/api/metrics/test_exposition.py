import asyncio

from tests.api.fakes import Keyring, MovableClock
from tests.heartbeats import heartbeat_of, sources_of

from payrelay.api.context import ApiContext
from payrelay.api.metrics.counters import Metrics
from payrelay.api.metrics.exposition import Exposition
from payrelay.core.payments.operation import OpenCount, State
from payrelay.store.heartbeats import Beat


class Meeting(Keyring):
    """A store in which a count is answered once a heartbeat is under way beside it."""

    def __init__(self) -> None:
        super().__init__()
        self._is_beating = asyncio.Event()

    async def open_operations(self) -> dict[State, OpenCount]:
        """Waits for the heartbeat."""
        await self._is_beating.wait()
        return await super().open_operations()

    async def beat(self, now_ms: int) -> Beat:
        """Tells that it has begun."""
        self._is_beating.set()
        return await super().beat(now_ms)


async def test_the_store_is_asked_in_parallel(context: ApiContext, clock: MovableClock) -> None:
    """One after the other, the reads of a silent store took longer than a scraper waits: the process looked dead."""
    store = Meeting()
    text = await Exposition(Metrics(), store, context.relay, sources_of(heartbeat_of(clock, store))).text()

    assert b'payrelay_operations_open{state="unknown"} 0.0' in text
    assert b"payrelay_store_up 1.0" in text
