"""The connections of a process, all to one server, and the queue of those who wait for one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import asyncpg

from payrelay.errors import StoreFault, StoreUnavailable
from payrelay.store.engine.postgresql.faults import NO_ROOM, OtherServerError
from payrelay.store.engine.postgresql.servers import Sighting
from payrelay.store.engine.postgresql.sessions import Access, PlainConnection, require_durable, sighting_of

KEPT_MIN: Final = 2
"""Connections that are made at the start, before the first request needs one."""
QUEUE_S: Final = 5.0
"""How long a unit waits for a connection. A request that may be sent within 10 s of its intent has time for that."""
_AGAIN_AFTER_S: Final = 0.05
"""The pause before a server is asked again that takes no more connections; one of ours may be free by then."""
_CLOSE_TIMEOUT_S: Final = 10.0


class PoolUsage(NamedTuple):
    """How connections are used: the most that may be open, those that are, those in use, and who waits for one."""

    size_max: int
    size: int
    used: int
    waiting: int


class Connections:
    """A pool of at most ``size`` connections to the server of ``sighting``; one to another server is not used.

    ``queue_s`` is how long a unit waits for one. Where somebody watches the server (``is_watched``), one that was
    started anew is not used until its sighting is put here: its files may have been put back meanwhile.
    """

    def __init__(self, access: Access, sighting: Sighting, *, size: int, queue_s: float = QUEUE_S) -> None:
        self._access = access
        self.sighting = sighting
        self._size = size
        self._queue_s = queue_s
        self.is_watched = False
        self._waiting = 0
        self._pool: Any = asyncpg.create_pool(
            min_size=min(KEPT_MIN, size),
            max_size=size,
            connect=self._connect,
            init=self._require_same,
            connection_class=PlainConnection,
        )

    async def open(self) -> None:
        """Makes the first connections. Raises what the driver raises, OtherServerError, StoreUnusable."""
        await self._pool

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[Any]:
        """Gives a connection of its own to the caller, who waits for one for at most ``queue_s``.

        Where the server takes no more connections, the caller waits too: for room, or for one of ours. Raises
        StoreUnavailable after that; what the driver raises; OtherServerError.
        """
        async with contextlib.AsyncExitStack() as stack:
            self._waiting += 1
            try:
                connection = await self._acquired(stack)
            finally:
                self._waiting -= 1
            yield connection

    @property
    def usage(self) -> PoolUsage:
        """How the connections are used now."""
        size: int = self._pool.get_size()
        return PoolUsage(self._size, size, size - self._pool.get_idle_size(), self._waiting)

    async def _acquired(self, stack: contextlib.AsyncExitStack) -> Any:  # noqa: ANN401 - asyncpg is shipped without types
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._queue_s
        while True:
            try:
                return await stack.enter_async_context(self._pool.acquire(timeout=max(0.0, until_s - loop.time())))
            except TimeoutError as error:
                if self._pool.get_size() - self._pool.get_idle_size() >= self._size:
                    msg = f"all {self._size} connections to the database were in use for {self._queue_s:g} s"
                    raise StoreUnavailable(msg, fault=StoreFault.NO_CONNECTION_FREE) from error
                raise
            except NO_ROOM:
                if loop.time() + _AGAIN_AFTER_S > until_s:
                    raise
            await asyncio.sleep(_AGAIN_AFTER_S)

    async def close(self) -> None:
        """Lets running units end, then closes the connections; cuts off what lasts longer."""
        try:
            await asyncio.wait_for(self._pool.close(), _CLOSE_TIMEOUT_S)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):  # a TimeoutError is an OSError
            self._pool.terminate()

    def cut_off(self) -> None:
        """Closes the connections at once, with the units that use them."""
        self._pool.terminate()

    async def _connect(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - asyncpg is shipped without types
        return await self._access.connect(self.sighting.host, is_pooled=self.sighting.is_pooled)

    async def _require_same(self, connection: asyncpg.Connection) -> None:
        seen = await sighting_of(connection, self.sighting.host)
        if seen.server != self.sighting.server:
            if seen.server is None:
                raise OtherServerError("the database is read-only", fault=StoreFault.READ_ONLY)
            raise OtherServerError(f"the database's address leads to another server: {seen.server.words}")
        if self.is_watched and not seen.is_pooled and seen.started != self.sighting.started:
            raise OtherServerError("the database's server has just been started anew, and is not compared yet")
        require_durable(seen)
