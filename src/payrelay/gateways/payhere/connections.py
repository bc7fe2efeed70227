"""Sends one call, and gives the reply, or a loss that says whether anything was sent.

Rules:

1. *Not sent* needs two grounds that agree. The request was never handed to a connection for writing. And the failure is
   one of ``NOT_SENT`` (name, connection, TLS, pool), or our own refusal. Every other request counts as sent.
2. A request is handed over once. The HTTP client repeats some methods by itself on a kept-alive connection that has
   closed. Such a repeat is refused here, because it needs a permit of its own, and an effect must never be repeated.
3. The check whether the request may still be sent comes last: after the connection stands, before a byte is written.
4. A connection with unrequested bytes on it is not used, because they would be read as the next call's reply.
"""

import asyncio
import math
from collections.abc import Callable
from contextvars import ContextVar
from enum import StrEnum
from functools import partial
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
"""For name, connection, TLS and a free connection of the pool together. A healthy gateway needs a tenth of a second."""
EFFECT_IDLE_S: Final = 2.0
"""A connection that was idle for longer may be closing at the other end while we write. The effect's outcome would be
unknown."""
READ_IDLE_S: Final = 15.0
"""A read that meets a closing connection is made again."""
CONNECTIONS_MAX: Final = 512
"""Of each pool. More calls than these wait for a connection, and are not sent when none is free in time."""
NAMES_KEPT_S: Final = 10
STALE_MAX: Final = 4
"""Connections in a row with unrequested bytes on them, before the call counts as without a connection."""
HEADER_BYTES_MAX: Final = 8_190
HEADERS_MAX: Final = 128
USER_AGENT: Final = "payrelay"
"""Without a version: readers of the gateway's logs need to know who we are, and attackers should learn nothing."""


class LossCause(StrEnum):
    """The reasons why there is no reply, as an operation's evidence has them."""

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
    """A complete reply, whatever it says."""

    http_status: int
    body: bytes


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """No complete reply; ``is_sent`` is False only where no byte of the request was sent."""

    is_sent: bool
    cause: LossCause


class RefusedConnection(Exception):
    """The request was not handed to the connection; never seen outside this module."""

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

Parent classes are never listed for their children: ``ClientOSError`` is a reset while we wait for the reply.
"""

SENT: Final[tuple[tuple[type[BaseException], LossCause], ...]] = (
    (asyncio.TimeoutError, LossCause.TIMEOUT),
    (aiohttp.ClientPayloadError, LossCause.HALF_REPLY),
    (aiohttp.ClientResponseError, LossCause.NOT_HTTP),
)
"""The causes of failures after that. A failure in neither table is a lost connection."""


def loss_of(error: BaseException, *, is_begun: bool) -> Loss:
    """Classifies a failure. ``is_begun``: whether the request was handed to a connection for writing."""
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
    """One attempt to write a request to a connection."""

    __slots__ = ("_clock", "_send_by_s", "is_begun")

    def __init__(self, clock: Clock, send_by_s: float | None) -> None:
        self._clock = clock
        self._send_by_s = send_by_s
        self.is_begun = False

    def begin(self, connection: Connection) -> None:
        """Allows the writing once; raises RefusedConnection. From here on the request counts as sent."""
        if self.is_begun:
            raise RefusedConnection(LossCause.CONNECTION_LOST)
        if self._send_by_s is not None and self._clock.boot_s() > self._send_by_s:
            raise RefusedConnection(LossCause.TOO_LATE)
        if connection.protocol is None or connection.protocol.should_close:
            raise RefusedConnection(LossCause.STALE_CONNECTION)
        self.is_begun = True


# aiohttp makes the request object itself, in the task that awaits the call. This variable connects the two.
_attempt: ContextVar[_Attempt] = ContextVar("attempt")


class _Request(aiohttp.ClientRequest):
    """A request that checks, when it has its connection, whether it may still be written."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Writes the request; aiohttp closes the connection when this raises."""
        _attempt.get().begin(conn)
        return await super().send(conn)


def headers_of(authorization: str, content_type: str = JSON_TYPE) -> CIMultiDict[str]:
    """Makes the headers of a call. They are equal for all calls with one token, and are made once."""
    return CIMultiDict(
        {
            "Authorization": authorization,
            "Content-Type": content_type,
            "Accept": JSON_TYPE,
            # A compressed reply could be read too; it isn't worth the gateway's or our time.
            "Accept-Encoding": "identity",
            "User-Agent": USER_AGENT,
        }
    )


def form_headers_of(authorization: str) -> CIMultiDict[str]:
    """Makes the headers of the token request."""
    return headers_of(authorization, FORM_TYPE)


class Exchanger(Protocol):
    """Sends one call and gives its reply: a ``ConnectionPool``, or a simulation of one."""

    async def exchange(
        self, request: WireRequest, headers: CIMultiDict[str], *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Sends one request once, and not after ``send_by_s`` (by ``clock.boot_s``). Raises only CancelledError."""


class Network(Protocol):
    """The connections to one gateway account: ``GatewayConnections``, or a simulation of them."""

    @property
    def effects(self) -> Exchanger:
        """Carries effects and token requests."""

    @property
    def reads(self) -> Exchanger:
        """Carries reads."""

    async def close(self) -> None:
        """Closes all connections; calls under way are lost."""


class ConnectionPool:
    """The connections for one kind of call. Effects and reads share none."""

    def __init__(
        self,
        base_url: str,
        clock: Clock,
        *,
        timeout_s: float,
        idle_s: float,
        bytes_max: int,
        trace_configs: tuple[aiohttp.TraceConfig, ...] = (),
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._trace_configs = trace_configs
        self._clock = clock
        self._idle_s = idle_s
        self._bytes_max = bytes_max
        # The whole call is limited, so a limit on each silence would add nothing. Without this threshold aiohttp
        # would round the time-out up to the next full second.
        self._timeout = aiohttp.ClientTimeout(
            total=timeout_s, connect=min(CONNECT_S_MAX, timeout_s / 2), ceil_threshold=math.inf
        )
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False
        self.date_seen: Callable[[str], None] | None = None

    async def exchange(
        self, request: WireRequest, headers: CIMultiDict[str], *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Sends one request once, and reads the complete reply. Raises only CancelledError.

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
                if self.date_seen is not None and (date := response.headers.get("Date")) is not None:
                    self.date_seen(date)
                return await self._read(response)
        except Exception as error:  # noqa: BLE001, any failure at all must become a Loss: the caller answers for money
            return loss_of(error, is_begun=attempt.is_begun)

    async def _read(self, response: aiohttp.ClientResponse) -> Reply | Loss:
        """Reads the body up to the limit, counted after decompression."""
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
        """Gives the session, which is made at the first call, because it belongs to the running loop."""
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
                trace_configs=[*self._trace_configs],
            )
        return self._session


class GatewayConnections:
    """The two connection pools to one gateway account."""

    def __init__(
        self,
        base_url: str,
        clock: Clock,
        *,
        timeout_s: float,
        trace_configs: tuple[aiohttp.TraceConfig, ...] = (),
        date_seen: Callable[[str], None] | None = None,
    ) -> None:
        pool = partial(ConnectionPool, base_url, clock, timeout_s=timeout_s, trace_configs=trace_configs)
        self.effects = pool(idle_s=EFFECT_IDLE_S, bytes_max=EFFECT_REPLY_BYTES_MAX)
        self.reads = pool(idle_s=READ_IDLE_S, bytes_max=READ_REPLY_BYTES_MAX)
        self.effects.date_seen = self.reads.date_seen = date_seen

    async def close(self) -> None:
        """Closes both pools."""
        await self.effects.close()
        await self.reads.close()
