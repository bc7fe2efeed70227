"""Who follows events as they are published: streams, and requests that wait for the next event.

Rules:

1. Whoever follows begins with ``slot``, and reads the feed after that: what was published before is read, what is
   published later is told, and what is both is known by its position. One credential takes only so much of the room.
2. The feed is read once for all who follow. Nobody is waited for: who takes too long is let go, and resumes.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from payrelay.core.events.event import PublishedEvent
from payrelay.errors import Code, Refusal
from payrelay.store.events.feed import Feed, Reader

FOLLOWERS_MAX: Final = 1_000
WAITING_MAX: Final = 1_000
"""Events that wait for one who follows; more mean that its connection doesn't take them."""
READ_AT_ONCE: Final = 500
AGAIN_AFTER_S: Final = 10
"""When to come again where a credential has all of its places: nobody knows when one is given back."""

_Key = tuple[str, str, str | None]


class Holder(NamedTuple):
    """Whose room is taken: by the id of a credential, with how many places it may have."""

    credential_id: str
    slots_max: int


class Follower:
    """One who follows; ``next`` gives its events."""

    def __init__(self, key: _Key, holder: Holder) -> None:
        self.key = key
        self.holder = holder
        self._events: asyncio.Queue[PublishedEvent | None] = asyncio.Queue(WAITING_MAX)
        self.is_over = False

    def tell(self, event: PublishedEvent) -> None:
        """Tells of an event; ends where too many wait already."""
        if self._events.qsize() >= WAITING_MAX - 1:
            self.end()
        elif not self.is_over:
            self._events.put_nowait(event)

    def end(self) -> None:
        """Tells that nothing more comes."""
        if not self.is_over:
            self.is_over = True
            self._events.put_nowait(None)

    async def next(self, within_s: float) -> PublishedEvent | None:
        """Gives the next event; None where there is none in time, or nothing more comes (``is_over``)."""
        try:
            return await asyncio.wait_for(self._events.get(), within_s)
        except TimeoutError:
            return None


class Followers:
    """All who follow in this process; ``poll`` is called whenever something may have been published."""

    def __init__(self, feed: Feed, *, limit: int = FOLLOWERS_MAX) -> None:
        self._feed = feed
        self._limit = limit
        self._by_key: dict[_Key, set[Follower]] = {}
        self._held: Counter[str] = Counter()
        self._count = 0
        self._position: int | None = None
        self._is_closed = False
        self._looking = asyncio.Lock()

    @property
    def count(self) -> int:
        """How many follow now."""
        return self._count

    async def slot(self, reader: Reader, subject: str | None, *, holder: Holder) -> Follower | None:
        """Begins to tell of a reader's events about a subject, of all for None; gives None where there is no room.

        Whoever has it gives it back by ``leave``. Raises Refusal (rate_limited) where the holder has all of its places,
        and StoreError.
        """
        if self._held[holder.credential_id] >= holder.slots_max:
            msg = f"this credential follows events in {holder.slots_max} requests already"
            raise Refusal(Code.RATE_LIMITED, msg, retry_after_s=AGAIN_AFTER_S)
        if self._is_closed or self._count >= self._limit:
            return None
        follower = Follower((reader.merchant, reader.principal, subject), holder)
        self._by_key.setdefault(follower.key, set()).add(follower)
        self._count += 1
        self._held[holder.credential_id] += 1
        try:
            await self._begin()
        except BaseException:
            self.leave(follower)
            raise
        return follower

    def leave(self, follower: Follower) -> None:
        """Tells it nothing more; may be called twice."""
        followers = self._by_key.get(follower.key, set())
        if follower in followers:
            self._count -= 1
            followers.remove(follower)
            self._held[follower.holder.credential_id] -= 1
            if not self._held[follower.holder.credential_id]:
                del self._held[follower.holder.credential_id]
            if not followers:
                del self._by_key[follower.key]
            if not self._by_key:
                self._position = None

    async def poll(self) -> None:
        """Tells of what was published since the last look; raises StoreError where the store can't be asked."""
        async with self._looking:
            while self._position is not None:
                events = await self._feed.tail(self._position, READ_AT_ONCE)
                for event in events:
                    self._tell(event)
                # The last one who followed may have left meanwhile: whoever comes next begins where the feed is then.
                if events and self._position is not None:
                    self._position = max(self._position, events[-1].position)
                if len(events) < READ_AT_ONCE:
                    return

    def close(self) -> None:
        """Ends all, and begins none any more: the program is about to stop."""
        self._is_closed = True
        for followers in self._by_key.values():
            for follower in followers:
                follower.end()

    async def _begin(self) -> None:
        """Finds where to look from, before the first one who follows reads what was published until then."""
        async with self._looking:
            if self._position is None:
                self._position = await self._feed.last_position()

    def _tell(self, event: PublishedEvent) -> None:
        for subject in (event.subject, None):
            for follower in self._by_key.get((event.merchant, event.principal, subject), ()):
                follower.tell(event)


async def wait_for(follower: Follower, within_s: float, gone: Callable[[], Awaitable[object]]) -> bool:
    """Returns when there is an event (True), or when time is up, the client has gone, or nothing more comes (False)."""
    leaving = asyncio.ensure_future(gone())
    telling = asyncio.ensure_future(follower.next(within_s))
    try:
        await asyncio.wait({leaving, telling}, return_when=asyncio.FIRST_COMPLETED)
        return telling.done() and telling.result() is not None
    finally:
        for task in (leaving, telling):
            task.cancel()
        await asyncio.gather(leaving, telling, return_exceptions=True)
