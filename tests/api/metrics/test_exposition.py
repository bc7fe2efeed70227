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


class Counted(Keyring):
    """A store that tells how often it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def open_operations(self) -> dict[State, OpenCount]:
        """Counts, and gives others the time to come."""
        self.reads += 1
        await asyncio.sleep(0)
        return await super().open_operations()


async def test_whoever_asks_while_a_text_is_made_gets_that_one(context: ApiContext, clock: MovableClock) -> None:
    """Sixty scrapes a second from one address made payments wait for a second: each read the store anew."""
    store = Counted()
    exposition = Exposition(Metrics(), store, context.relay, sources_of(heartbeat_of(clock, store)))
    texts = await asyncio.gather(*(exposition.text() for _ in range(50)))

    assert (len(set(texts)), store.reads) == (1, 1)


async def test_a_scraper_that_goes_away_ends_no_other_s_text(context: ApiContext, clock: MovableClock) -> None:
    """The one who asked first may be cancelled: those who wait for the same text get it."""
    exposition = Exposition(Metrics(), Counted(), context.relay, sources_of(heartbeat_of(clock, Counted())))
    first, second = (asyncio.ensure_future(exposition.text()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()

    assert b"payrelay_store_up" in await second
