"""Passes events as they are published to followers: streams, and requests that wait for the next event.

Rules:

1. A follower begins with ``slot``, and reads the feed after that. It reads events that were published before, and gets
   later ones passed; it knows an event that comes both ways by its position. A holder has a maximum of slots.
2. One reading of the feed serves all followers. No follower delays another: a slow one is ended, and its client
   resumes.
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
"""Events that wait for one follower; more mean that its connection is too slow."""
READ_AT_ONCE: Final = 500
AGAIN_AFTER_S: Final = 10
"""When a client should try again whose holder has all its slots; when one becomes free is unknown."""

_Key = tuple[str, str, str | None]


class Holder(NamedTuple):
    """Who holds slots: the name under which a credential's requests count, and how many slots it may have."""

    name: str
    slots_max: int


class Follower:
    """A follower of events; ``next`` gives its events."""

    def __init__(self, key: _Key, holder: Holder) -> None:
        self.key = key
        self.holder = holder
        self._events: asyncio.Queue[PublishedEvent | None] = asyncio.Queue(WAITING_MAX)
        self.is_over = False

    def put(self, event: PublishedEvent) -> None:
        """Queues an event; ends the follower where too many wait already."""
        if self._events.qsize() >= WAITING_MAX - 1:
            self.end()
        elif not self.is_over:
            self._events.put_nowait(event)

    def end(self) -> None:
        """Ends the follower: no more events come."""
        if not self.is_over:
            self.is_over = True
            self._events.put_nowait(None)

    async def next(self, within_s: float) -> PublishedEvent | None:
        """Returns the next event; None where none comes within ``within_s``, or the follower has ended."""
        try:
            return await asyncio.wait_for(self._events.get(), within_s)
        except TimeoutError:
            return None


class Followers:
    """All followers of this process; ``poll`` is called whenever events may have been published."""

    def __init__(self, feed: Feed, *, limit: int = FOLLOWERS_MAX) -> None:
        self._feed = feed
        self._limit = limit
        self._by_key: dict[_Key, set[Follower]] = {}
        self._slots: Counter[str] = Counter()
        self._count = 0
        self._position: int | None = None
        self._is_closed = False
        self._polling = asyncio.Lock()

    @property
    def count(self) -> int:
        """How many followers there are now."""
        return self._count

    @property
    def is_closed(self) -> bool:
        """Whether the process is about to stop."""
        return self._is_closed

    async def slot(self, reader: Reader, subject: str | None, *, holder: Holder) -> Follower | None:
        """Returns a new follower of a reader's events about a subject, or of all for None; None where no slot is free.

        The caller ends with ``leave``. Raises Refusal (rate_limited) where the holder has all its slots; StoreError.
        """
        if self._slots[holder.name] >= holder.slots_max:
            msg = f"this key, or the tokens of this customer, follow events in {holder.slots_max} requests already"
            raise Refusal(Code.RATE_LIMITED, msg, retry_after_s=AGAIN_AFTER_S)
        if self._is_closed or self._count >= self._limit:
            return None
        follower = Follower((reader.merchant, reader.principal, subject), holder)
        self._by_key.setdefault(follower.key, set()).add(follower)
        self._count += 1
        self._slots[holder.name] += 1
        try:
            await self._begin()
        except BaseException:
            self.leave(follower)
            raise
        return follower

    def leave(self, follower: Follower) -> None:
        """Gives a slot back; may be called twice."""
        followers = self._by_key.get(follower.key, set())
        if follower in followers:
            self._count -= 1
            followers.remove(follower)
            self._slots[follower.holder.name] -= 1
            if not self._slots[follower.holder.name]:
                del self._slots[follower.holder.name]
            if not followers:
                del self._by_key[follower.key]
            if not self._by_key:
                self._position = None

    async def poll(self) -> None:
        """Passes on what was published since the last poll; raises StoreError."""
        async with self._polling:
            while self._position is not None:
                events = await self._feed.tail(self._position, READ_AT_ONCE)
                for event in events:
                    self._pass_on(event)
                # The last follower may have left meanwhile; the next one begins at the end of the feed.
                if events and self._position is not None:
                    self._position = max(self._position, events[-1].position)
                if len(events) < READ_AT_ONCE:
                    return

    def close(self) -> None:
        """Ends all followers, and begins none any more: the process is about to stop."""
        self._is_closed = True
        for followers in self._by_key.values():
            for follower in followers:
                follower.end()

    async def _begin(self) -> None:
        """Finds the position to poll from, before the first follower reads what was published until then."""
        async with self._polling:
            if self._position is None:
                self._position = await self._feed.last_position()

    def _pass_on(self, event: PublishedEvent) -> None:
        for subject in (event.subject, None):
            for follower in self._by_key.get((event.merchant, event.principal, subject), ()):
                follower.put(event)


async def wait_for(follower: Follower, within_s: float, gone: Callable[[], Awaitable[object]]) -> bool:
    """Waits for an event: True when one comes; False when time is up, the client has gone or the follower has ended."""
    leaving = asyncio.ensure_future(gone())
    coming = asyncio.ensure_future(follower.next(within_s))
    try:
        await asyncio.wait({leaving, coming}, return_when=asyncio.FIRST_COMPLETED)
        return coming.done() and coming.result() is not None
    finally:
        for task in (leaving, coming):
            task.cancel()
        await asyncio.gather(leaving, coming, return_exceptions=True)
