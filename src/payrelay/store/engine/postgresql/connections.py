"""The connections of a process, all to one server, and the queue of those who wait for one.

The driver's pool makes connections, counts them, and closes them. A connection whose unit went well stays on loan from
the pool, and the next unit takes it: the way through the pool costs some fifty calls, and a task. One goes back to the
pool where somebody waits for one, after an error, and each TRIM_S. The pool then does all that a connection may need:
it waits for a cancellation, ends a transaction, replaces what is broken.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple

import asyncpg

from payrelay.errors import StoreFault, StoreUnavailable
from payrelay.store.engine.postgresql.faults import NO_ROOM, OtherServerError, translated, translation_of
from payrelay.store.engine.postgresql.servers import Sighting
from payrelay.store.engine.postgresql.sessions import Access, PlainConnection, require_durable, sighting_of

KEPT_MIN: Final = 2
"""Connections that are made at the start, before the first request needs one."""
QUEUE_S: Final = 5.0
"""How long a unit waits for a connection. A request that may be sent within 10 s of its intent has time for that."""
_AGAIN_AFTER_S: Final = 0.05
"""The pause before a server is asked again that takes no more connections; one of ours may be free by then."""
_FAULTS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""What the driver raises; a TimeoutError is an OSError."""
_CLOSE_TIMEOUT_S: Final = 10.0
TRIM_S: Final = 60.0
"""How often idle connections go back to the pool, which closes those that nobody needs, or that were used a lot."""


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
        self._idle: list[Any] = []
        self._trimming: asyncio.TimerHandle | None = None
        self._returning: set[asyncio.Task[None]] = set()
        self._is_ended = False
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

    def one(self) -> "_Loan":
        """Gives a connection of its own to the caller's context, which waits for one for at most ``queue_s``.

        Where the server takes no more connections, the caller waits too: for room, or for one of ours. Raises
        StoreUnavailable after that, and what ``faults`` makes of everything that the driver raises meanwhile.
        """
        return _Loan(self)

    @property
    def usage(self) -> PoolUsage:
        """How the connections are used now."""
        size: int = self._pool.get_size()
        return PoolUsage(self._size, size, size - self._pool.get_idle_size() - len(self._idle), self._waiting)

    def idle_one(self) -> Any | None:  # noqa: ANN401 - asyncpg is shipped without types
        """Gives an idle connection, if there is one, to be given back by ``keep`` or ``release``."""
        if self._idle and _is_open(self._idle[-1]):
            return self._idle.pop()
        return None

    async def next_one(self) -> Any:  # noqa: ANN401 - asyncpg is shipped without types
        """Gives a connection as ``idle_one``, and waits for it. Raises as the driver does; StoreUnavailable."""
        while self._idle:
            if (connection := self.idle_one()) is not None:
                return connection
            await self.release(self._idle.pop())
        self._waiting += 1
        try:
            return await self._acquired()
        finally:
            self._waiting -= 1

    def keep(self, connection: Any) -> bool:  # noqa: ANN401 - asyncpg is shipped without types
        """Keeps a connection whose unit went well; False where it must be released, because others wait for one."""
        if self._waiting or self._is_ended:
            return False
        self._idle.append(connection)
        if self._trimming is None:
            self._trimming = asyncio.get_running_loop().call_later(TRIM_S, self._trim)
        return True

    async def release(self, connection: Any) -> None:  # noqa: ANN401 - asyncpg is shipped without types
        """Gives a connection back to the pool, in whatever state it is.

        Where that fails, the pool has closed the connection, and makes another one. The outcome of the unit doesn't
        depend on it: what was stored is stored, and a doubt stays a doubt.
        """
        with suppress(*_FAULTS):
            await self._pool.release(connection)

    async def _acquired(self) -> Any:  # noqa: ANN401 - asyncpg is shipped without types
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._queue_s
        while True:
            try:
                return await self._pool.acquire(timeout=max(0.0, until_s - loop.time()))
            except TimeoutError as error:
                if self.usage.used >= self._size:
                    msg = f"all {self._size} connections to the database were in use for {self._queue_s:g} s"
                    raise StoreUnavailable(msg, fault=StoreFault.NO_CONNECTION_FREE) from error
                raise
            except NO_ROOM:
                if loop.time() + _AGAIN_AFTER_S > until_s:
                    raise
            await asyncio.sleep(_AGAIN_AFTER_S)

    def _trim(self) -> None:
        self._trimming = None
        returning = asyncio.get_running_loop().create_task(self._return_idle())
        self._returning.add(returning)
        returning.add_done_callback(self._returning.discard)

    async def _return_idle(self) -> None:
        """Gives the idle connections back to the pool, one after the other: a unit that comes meanwhile finds one."""
        for _ in range(len(self._idle)):
            if self._idle:
                await self.release(self._idle.pop(0))

    async def close(self) -> None:
        """Lets running units end, then closes the connections; cuts off what lasts longer."""
        self._end()
        try:
            await self._return_idle()
            await asyncio.wait_for(self._pool.close(), _CLOSE_TIMEOUT_S)
        except _FAULTS:
            self._pool.terminate()

    def cut_off(self) -> None:
        """Closes the connections at once, with the units that use them."""
        self._end()
        self._idle.clear()
        self._pool.terminate()

    def _end(self) -> None:
        self._is_ended = True
        if self._trimming is not None:
            self._trimming.cancel()

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


class _Loan:
    """A connection for as long as the context is open.

    A class, because contexts made of generators cost each statement some thirty calls.
    """

    __slots__ = ("_connection", "_connections")

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._connection: Any = None

    async def __aenter__(self) -> Any:  # noqa: ANN401 - asyncpg is shipped without types
        self._connection = self._connections.idle_one()
        if self._connection is None:
            with translated():
                self._connection = await self._connections.next_one()
        return self._connection

    async def __aexit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if error is None and self._connections.keep(self._connection):
            return
        await self._connections.release(self._connection)
        if error is not None and (ours := translation_of(error)) is not None:
            raise ours from error


def _is_open(connection: Any) -> bool:  # noqa: ANN401 - asyncpg is shipped without types
    """Tells whether an idle connection is still there; the pool takes those away that it cuts off."""
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        return False
