"""Sends one call and says what came of it: a reply, or a loss and whether anything had left before it.

Rules:

1. *Not sent* is claimed on two grounds that must agree: the request was never handed to a connection for writing, and
   the failure is one of ``NOT_SENT`` (name, connection, TLS, pool) or our own refusal. Everything else was sent.
2. A request is handed over once. The HTTP client repeats some methods by itself on a kept-alive connection that has
   closed; here it is refused, since a repeat takes a place in the gateway's budget, and of an effect there is none.
3. Whether it may still be sent is asked last, when the connection stands and before a byte is written.
4. A connection on which something arrived that nobody asked for is not used: it would be read as the next call's reply.
"""

import asyncio
import math
from contextvars import ContextVar
from enum import StrEnum
from typing import Final, Protocol

import aiohttp
import msgspec
from aiohttp.connector import Connection
from multidict import CIMultiDict
from yarl import URL

from payrelay.clock import Clock
from payrelay.gateways.payhere.wire.requests import FORM_TYPE, JSON_TYPE, WireRequest

EFFECT_REPLY_BYTES_MAX: Final = 256 * 1024
"""The longest documented reply to an effect has about 500 bytes."""
READ_REPLY_BYTES_MAX: Final = 16 * 1024 * 1024
"""Some 20,000 subscriptions: the gateway has no paging, and a list must not be cut."""
CONNECT_S_MAX: Final = 5.0
"""For name, connection, TLS and a free connection of the pool together; a healthy gateway needs a tenth of a second."""
EFFECT_IDLE_S: Final = 2.0
"""Longer than this a connection may be closing at the other end while we write, and an effect would be unknown."""
READ_IDLE_S: Final = 15.0
"""A read that meets a closing connection is made again."""
CONNECTIONS_MAX: Final = 512
"""Of each lane; more calls than these wait for a connection, and are not sent when none comes in time."""
NAMES_KEPT_S: Final = 10
STALE_MAX: Final = 4
"""Connections in a row with something unasked on them before it is called no connection."""
HEADER_BYTES_MAX: Final = 8_190
HEADERS_MAX: Final = 128
USER_AGENT: Final = "payrelay"
"""Without a version: who reads the gateway's logs needs to know who we are, not what to attack."""


class LossCause(StrEnum):
    """Why there is no reply: the words that stand in an operation's evidence."""

    NAME_NOT_FOUND = "name_not_found"
    NO_CONNECTION = "no_connection"
    TLS_FAILED = "tls_failed"
    CONNECT_TIMEOUT = "connect_timeout"
    TOO_LATE = "too_late"
    STALE_CONNECTION = "stale_connection"
    CLOSED = "closed"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection_lost"
    HALF_REPLY = "half_reply"
    NOT_HTTP = "not_http"
    TOO_LARGE = "too_large"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole reply, whatever it says."""

    http_status: int
    body: bytes


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """No whole reply; ``is_sent`` is False only where not a byte of the request left."""

    is_sent: bool
    cause: LossCause


class RefusedConnection(Exception):
    """We did not hand the request to the connection; never seen outside this module."""

    def __init__(self, cause: LossCause) -> None:
        super().__init__(cause)
        self.cause = cause


NOT_SENT: Final[tuple[tuple[type[BaseException], LossCause], ...]] = (
    (aiohttp.ClientConnectorDNSError, LossCause.NAME_NOT_FOUND),
    (aiohttp.ClientSSLError, LossCause.TLS_FAILED),
    (aiohttp.ServerFingerprintMismatch, LossCause.TLS_FAILED),
    (aiohttp.ClientConnectorError, LossCause.NO_CONNECTION),
    (aiohttp.ClientHttpProxyError, LossCause.NO_CONNECTION),
    (aiohttp.ConnectionTimeoutError, LossCause.CONNECT_TIMEOUT),
)
"""The failures that can only come before a request is written; the first that fits names the cause.

Parents are never listed for their children: ``ClientOSError`` is a reset while we wait for the reply.
"""

SENT: Final[tuple[tuple[type[BaseException], LossCause], ...]] = (
    (asyncio.TimeoutError, LossCause.TIMEOUT),
    (aiohttp.ClientPayloadError, LossCause.HALF_REPLY),
    (aiohttp.ClientResponseError, LossCause.NOT_HTTP),
)
"""Names for what went wrong after that; whatever is in neither table is a lost connection."""


def loss_of(error: BaseException, *, is_begun: bool) -> Loss:
    """Says what a failure means. ``is_begun``: whether the request was handed to a connection for writing."""
    if not is_begun:
        if isinstance(error, RefusedConnection):
            return Loss(is_sent=False, cause=error.cause)
        for kind, cause in NOT_SENT:
            if isinstance(error, kind):
                return Loss(is_sent=False, cause=cause)
    for kind, cause in SENT:
        if isinstance(error, kind):
            return Loss(is_sent=True, cause=cause)
    return Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)


class _Attempt:
    """One request's way to the wire."""

    __slots__ = ("_clock", "_send_by_s", "is_begun")

    def __init__(self, clock: Clock, send_by_s: float | None) -> None:
        self._clock = clock
        self._send_by_s = send_by_s
        self.is_begun = False

    def begin(self, connection: Connection) -> None:
        """Allows the writing, once; raises Refused. From here on it counts as sent."""
        if self.is_begun:
            raise RefusedConnection(LossCause.CONNECTION_LOST)
        if self._send_by_s is not None and self._clock.boot_s() > self._send_by_s:
            raise RefusedConnection(LossCause.TOO_LATE)
        if connection.protocol is None or connection.protocol.should_close:
            raise RefusedConnection(LossCause.STALE_CONNECTION)
        self.is_begun = True


# aiohttp makes the request object itself, in the task that awaits the call; this is how the two find each other.
_attempt: ContextVar[_Attempt] = ContextVar("attempt")


class _Request(aiohttp.ClientRequest):
    """A request that asks, with its connection at hand, whether it may still be written."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Writes it; aiohttp closes the connection when this raises."""
        _attempt.get().begin(conn)
        return await super().send(conn)


def headers_of(authorization: str, content_type: str = JSON_TYPE) -> CIMultiDict[str]:
    """Makes the headers of a call; they are the same for all calls with one token, so they are made once."""
    return CIMultiDict(
        {
            "Authorization": authorization,
            "Content-Type": content_type,
            "Accept": JSON_TYPE,
            # A compressed reply would be read all the same; it is not worth the gateway's or our time.
            "Accept-Encoding": "identity",
            "User-Agent": USER_AGENT,
        }
    )


def form_headers_of(authorization: str) -> CIMultiDict[str]:
    """Makes the headers of the token request."""
    return headers_of(authorization, FORM_TYPE)


class Exchanger(Protocol):
    """Sends one call and brings its reply: a ``ConnectionPool``, or what a simulation has in its place."""

    async def exchange(
        self, request: WireRequest, headers: CIMultiDict[str], *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Sends one request, once, and not after ``send_by_s`` (by ``clock.boot_s``). Raises only CancelledError."""
        ...


class Network(Protocol):
    """The way to one gateway account: ``GatewayConnections``, or what a simulation has in their place."""

    @property
    def effects(self) -> Exchanger:
        """Carries what changes something, and token requests."""
        ...

    @property
    def reads(self) -> Exchanger:
        """Carries what changes nothing."""
        ...

    async def close(self) -> None:
        """Closes all of it; calls under way are lost."""
        ...


class ConnectionPool:
    """The connections for one kind of call: effects and reads don't share any."""

    def __init__(self, base_url: str, clock: Clock, *, timeout_s: float, idle_s: float, bytes_max: int) -> None:
        self._base_url = base_url.rstrip("/")
        self._clock = clock
        self._idle_s = idle_s
        self._bytes_max = bytes_max
        # The whole is limited, so that a limit on each silence would add nothing. Without the ceiling aiohttp would
        # round the time-out up to the next full second.
        self._timeout = aiohttp.ClientTimeout(
            total=timeout_s, connect=min(CONNECT_S_MAX, timeout_s / 2), ceil_threshold=math.inf
        )
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    async def exchange(
        self, request: WireRequest, headers: CIMultiDict[str], *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Sends one request, once, and reads the whole reply. Raises nothing but CancelledError.

        Nothing is written after ``send_by_s`` (by ``clock.boot_s``).
        """
        if self._is_closed:
            return Loss(is_sent=False, cause=LossCause.CLOSED)
        for _ in range(STALE_MAX):
            outcome = await self._attempt(request, headers, send_by_s)
            if not (isinstance(outcome, Loss) and outcome.cause is LossCause.STALE_CONNECTION):
                return outcome
        return Loss(is_sent=False, cause=LossCause.NO_CONNECTION)

    async def close(self) -> None:
        """Closes all connections; calls under way are lost."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()

    async def _attempt(self, request: WireRequest, headers: CIMultiDict[str], send_by_s: float | None) -> Reply | Loss:
        attempt = _Attempt(self._clock, send_by_s)
        _attempt.set(attempt)
        try:
            async with self._opened().request(
                request.method,
                URL(self._base_url + request.path, encoded=True),
                data=request.body,
                headers=headers,
                allow_redirects=False,
            ) as response:
                return await self._read(response)
        except Exception as error:  # noqa: BLE001, any failure at all must become a Loss: the caller answers for money
            return loss_of(error, is_begun=attempt.is_begun)

    async def _read(self, response: aiohttp.ClientResponse) -> Reply | Loss:
        """Reads the body up to the limit, counted as it is after decompression."""
        body = await response.content.readany()
        if not response.content.at_eof():
            chunks, size = [body], len(body)
            while (chunk := await response.content.readany()) and size <= self._bytes_max:
                chunks.append(chunk)
                size += len(chunk)
            body = b"".join(chunks)
        if len(body) > self._bytes_max:
            response.close()
            return Loss(is_sent=True, cause=LossCause.TOO_LARGE)
        return Reply(http_status=response.status, body=body)

    def _opened(self) -> aiohttp.ClientSession:
        """Gives the session; made at the first call, since it belongs to the running loop."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=CONNECTIONS_MAX, limit_per_host=0, keepalive_timeout=self._idle_s, ttl_dns_cache=NAMES_KEPT_S
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                request_class=_Request,
                timeout=self._timeout,
                trust_env=False,
                max_line_size=HEADER_BYTES_MAX,
                max_field_size=HEADER_BYTES_MAX,
                max_headers=HEADERS_MAX,
            )
        return self._session


class GatewayConnections:
    """The two lanes to one gateway account."""

    def __init__(self, base_url: str, clock: Clock, *, timeout_s: float) -> None:
        self.effects = ConnectionPool(
            base_url, clock, timeout_s=timeout_s, idle_s=EFFECT_IDLE_S, bytes_max=EFFECT_REPLY_BYTES_MAX
        )
        self.reads = ConnectionPool(
            base_url, clock, timeout_s=timeout_s, idle_s=READ_IDLE_S, bytes_max=READ_REPLY_BYTES_MAX
        )

    async def close(self) -> None:
        """Closes both."""
        await self.effects.close()
        await self.reads.close()
