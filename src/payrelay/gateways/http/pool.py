"""Sends one call over a pool of connections, and gives the reply, or a loss that says whether anything was sent.

Rules:

1. *Not sent* needs two grounds that agree. ``write`` was not called. And the failure is ``NotConnected``: name,
   connection, TLS, pool, or our own refusal. Every other request counts as sent.
2. A request is written once, to one connection. Nothing here repeats it.
3. The check whether the request may still be sent comes last: after the connection stands, before ``write``. Nothing is
   awaited between the two.
4. A call that is given up takes its connection along, so that nothing of it is sent later, and no later call reads its
   reply.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

import msgspec
from yarl import URL

from payrelay.clock import Clock
from payrelay.gateways.http.connecting import Connector, NotConnected, verifying
from payrelay.gateways.http.connection import GatewayConnection
from payrelay.gateways.http.exchange import CallHeaders, Loss, LossCause, OutgoingRequest, Reply

CONNECT_S_MAX: Final = 5.0
"""For name, connection, TLS and a free connection of the pool together. A healthy gateway needs a tenth of a second."""
CONNECTIONS_MAX: Final = 512
"""Of each pool. More calls than these wait for a connection, and are not sent when none is free in time."""
STALE_MAX: Final = 4
"""Connections in a row with unrequested bytes or an end on them, before the call counts as without a connection."""


class CallRecord(Protocol):
    """Records one call. No method raises."""

    @property
    def traceparent(self) -> str:
        """The W3C trace context that is sent with the call."""

    def end(self, *, http_status: int | None = None, error: str | None = None) -> None:
        """Ends the record, by the reply's status or by an error's name."""


BeginSpan: TypeAlias = Callable[[str, str, int, str], CallRecord | None]
"""Begins the record of a call, by its method, host, port and path; None where it can't be recorded. Raises nothing."""


def loss_of(error: Exception, *, is_begun: bool) -> Loss:
    """Classifies a failure. ``is_begun``: whether ``write`` was called."""
    if isinstance(error, NotConnected) and not is_begun:
        return Loss(is_sent=False, cause=error.cause)
    return Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)


class PoolLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a pool.

    Attributes:
        timeout_s: the longest that a call may take, with its connection.
        idle_s: how long a connection is kept that nobody uses.
        bytes_max: the longest body of a reply.
        connections_max: how many connections may stand, or be made, at one moment.
    """

    timeout_s: float
    idle_s: float
    bytes_max: int
    connections_max: int = CONNECTIONS_MAX


class ConnectionPool:
    """The connections for one kind of call to one address.

    Args:
        tls: the client's side of TLS; None for one that verifies by the machine's authorities.
        begin_span: records the calls; None where nothing is traced.
    """

    def __init__(
        self,
        base_url: str,
        clock: Clock,
        limits: PoolLimits,
        *,
        tls: ssl.SSLContext | None = None,
        begin_span: BeginSpan | None = None,
        date_seen: Callable[[str], None] | None = None,
    ) -> None:
        url = URL(base_url.rstrip("/"))
        self._host, self._port = url.raw_host or "", url.port or 0
        self._prefix = url.raw_path.rstrip("/")
        self._host_line = f"Host: {url.host_port_subcomponent}\r\n".encode()
        self._connector = Connector(self._host, self._port, (tls or verifying()) if url.scheme == "https" else None)
        self._clock = clock
        self._timeout_s = limits.timeout_s
        self._connect_s = min(CONNECT_S_MAX, limits.timeout_s / 2)
        self._idle_s = limits.idle_s
        self._bytes_max = limits.bytes_max
        self._begin_span = begin_span
        self._date_seen = date_seen
        self._free_places = limits.connections_max
        self._standing: set[GatewayConnection] = set()
        self._idle: deque[GatewayConnection] = deque()
        self._waiting: deque[asyncio.Future[GatewayConnection | None]] = deque()
        self._ends: dict[GatewayConnection, float] = {}
        self._expiry: asyncio.TimerHandle | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def exchange(
        self, request: OutgoingRequest, headers: CallHeaders, *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Sends one request once, and reads the complete reply. Raises only CancelledError.

        Nothing is written after ``send_by_s`` (by ``clock.boot_s``).
        """
        if self._begin_span is None:
            return await self._exchange(request, headers.lines, send_by_s)
        path = self._prefix + request.path.partition("?")[0]
        span = self._begin_span(request.method, self._host, self._port, path)
        if span is None:
            return await self._exchange(request, headers.lines, send_by_s)
        lines = b"%btraceparent: %b\r\n" % (headers.lines, span.traceparent.encode())
        try:
            outcome = await self._exchange(request, lines, send_by_s)
        except BaseException as error:
            span.end(error=type(error).__qualname__)
            raise
        if isinstance(outcome, Reply):
            span.end(http_status=outcome.http_status)
        else:
            span.end(error=outcome.cause)
        return outcome

    async def close(self) -> None:
        """Aborts all connections; calls under way are lost."""
        self._is_closed = True
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(NotConnected(LossCause.CLOSED))
        standing = [*self._standing]
        for connection in standing:
            connection.give_up(Loss(is_sent=True, cause=LossCause.CONNECTION_LOST))
        for timer in (self._sweep, self._expiry):
            if timer is not None:
                timer.cancel()
        await self._connector.close()
        for connection in standing:
            await connection.lost

    async def _exchange(self, request: OutgoingRequest, lines: bytes, send_by_s: float | None) -> Reply | Loss:
        connection: GatewayConnection | None = None
        is_begun = is_free = False
        try:
            raw = self._rendered(request, lines)
            now_s = asyncio.get_running_loop().time()
            connection = self._fit_idle(send_by_s) or await self._fit(now_s + self._connect_s, send_by_s)
            is_begun = True
            reply = connection.write(raw)
            self._expire_at(now_s + self._timeout_s, connection)
            outcome = await reply
            if self._date_seen is not None and connection.date is not None:
                self._date_seen(connection.date.decode("latin-1"))
            is_free = connection.is_free
        except Exception as error:  # noqa: BLE001, any failure at all must become a Loss: the caller answers for money
            return loss_of(error, is_begun=is_begun)
        finally:
            if connection is not None:
                self._ends.pop(connection, None)
                if is_free:
                    self._release(connection)
                else:
                    connection.abort()
        return outcome

    def _rendered(self, request: OutgoingRequest, lines: bytes) -> bytes:
        """Writes a request. Raises ValueError for a path that would end its line."""
        path, body = request.path, request.body
        if not path.isascii() or not path.isprintable() or " " in path:
            raise ValueError("not the path of a request")
        head = f"{request.method} {self._prefix}{path} HTTP/1.1\r\n".encode()
        if body is None:
            return b"%b%b%b\r\n" % (head, self._host_line, lines)
        return b"%b%b%bContent-Length: %d\r\n\r\n%b" % (head, self._host_line, lines, len(body), body)

    def _fit_idle(self, send_by_s: float | None) -> GatewayConnection | None:
        """Gives an idle connection to which the request may be written at once; None for none. Raises NotConnected.

        It is the one that was used last, so that those beyond the need reach their time.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_until_s >= self._clock.boot_s() and self._may_write(connection, send_by_s):
                return connection
            connection.abort()
        return None

    async def _fit(self, by_s: float, send_by_s: float | None) -> GatewayConnection:
        """Gives a free or new connection to which the request may be written at once. Raises NotConnected."""
        for _ in range(STALE_MAX):
            connection = await self._free_or_new(by_s)
            if self._may_write(connection, send_by_s):
                return connection
            connection.abort()
        raise NotConnected(LossCause.NO_CONNECTION)

    def _may_write(self, connection: GatewayConnection, send_by_s: float | None) -> bool:
        """Says whether the connection is fit; aborts it and raises NotConnected where nothing may be sent any more.

        Whoever calls this awaits nothing before the writing.
        """
        if self._is_closed:
            refusal = LossCause.CLOSED
        elif send_by_s is not None and self._clock.boot_s() > send_by_s:
            refusal = LossCause.TOO_LATE
        else:
            return connection.is_fit()
        connection.abort()
        raise NotConnected(refusal)

    def _expire_at(self, end_s: float, connection: GatewayConnection) -> None:
        """Notes when a call's time is over (by the loop's clock). One timer serves all calls: all get equally long."""
        self._ends[connection] = end_s
        if self._expiry is None or end_s < self._expiry.when():
            self._look_at(end_s)

    def _look_at(self, end_s: float) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_at(end_s, self._expire)

    def _expire(self) -> None:
        """Gives up the calls whose time is over, and looks again when the next one's will be."""
        self._expiry = None
        now_s = asyncio.get_running_loop().time()
        for connection in [connection for connection, end_s in self._ends.items() if end_s <= now_s]:
            connection.expire()
        later = [end_s for end_s in self._ends.values() if end_s > now_s]
        if later:
            self._look_at(min(later))

    async def _free_or_new(self, by_s: float) -> GatewayConnection:
        """Waits for a connection that becomes free, or makes one. Raises NotConnected."""
        if self._is_closed:
            raise NotConnected(LossCause.CLOSED)
        if self._free_places > 0:
            self._free_places -= 1
        elif (freed := await self._wait(by_s)) is not None:
            return freed
        try:
            connection = await self._connector.connect(self._made, by_s=by_s)
        except BaseException:
            self._free_place()
            raise
        if connection.is_gone:
            self._free_place()
        else:
            self._standing.add(connection)
        return connection

    async def _wait(self, by_s: float) -> GatewayConnection | None:
        """Waits in line for a connection, or for the place to make one: then it gives None. Raises NotConnected."""
        waiting: asyncio.Future[GatewayConnection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout_at(by_s):
                return await waiting
        except BaseException as error:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            elif not waiting.cancelled() and waiting.exception() is None:
                # It came at the moment at which nobody waited any more.
                self._hand_on(waiting.result())
            if isinstance(error, TimeoutError):
                raise NotConnected(LossCause.CONNECT_TIMEOUT) from error
            raise

    def _made(self) -> GatewayConnection:
        return GatewayConnection(self._bytes_max, self._gone)

    def _gone(self, connection: GatewayConnection) -> None:
        """Forgets a connection that carries no more calls. One that is still being made keeps its maker's place."""
        if connection in self._standing:
            self._standing.remove(connection)
            if connection in self._idle:
                self._idle.remove(connection)
            self._free_place()

    def _hand_on(self, freed: GatewayConnection | None) -> None:
        """Gives on what was given to a call that has ended."""
        if freed is None:
            self._free_place()
        else:
            self._release(freed)

    def _free_place(self) -> None:
        """Gives the place of a connection to the first call that waits, or keeps it."""
        if not self._gave(None):
            self._free_places += 1

    def _release(self, connection: GatewayConnection) -> None:
        """Gives a connection to the first call that waits, or keeps it for a while."""
        if self._gave(connection):
            return
        connection.idle_until_s = self._clock.boot_s() + self._idle_s
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(self._idle_s, self._drop_expired)

    def _gave(self, freed: GatewayConnection | None) -> bool:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(freed)
                return True
        return False

    def _drop_expired(self) -> None:
        """Aborts the connections that were idle for too long, and looks again when the next one will have been."""
        now_s = self._clock.boot_s()
        while self._idle and self._idle[0].idle_until_s <= now_s:
            self._idle[0].abort()
        self._sweep = None
        if self._idle:
            wait_s = min(self._idle_s, self._idle[0].idle_until_s - now_s)
            self._sweep = asyncio.get_running_loop().call_later(wait_s, self._drop_expired)
