"""Sends a request on to a partition, once.

Rules:

1. A request whose method may have an effect is handed to one connection. The HTTP client repeats some methods by itself
   on a kept-alive connection that has closed; such a repeat is refused here.
2. The next address of a partition is tried only where certainly nothing was sent: where no connection came about.
3. Nothing of the request or the answer is changed but the headers that are for one connection.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from payrelay.partitions.table import Partition

CONNECT_S: Final = 2.0
"""For a name and a connection in our own network, which takes a thousandth of it."""
SILENCE_S: Final = 150.0
"""Longer than the longest call to a gateway (120 s); a stream sends a line every 15 s."""
CONNECTIONS_MAX: Final = 4096
NAMES_KEPT_S: Final = 10
READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing, wherever they arrive."""
OF_ONE_CONNECTION: Final = frozenset(
    {
        "connection",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that a proxy does not pass on (RFC 9110, 7.6.1). A body that is there as a whole waits for no 100."""
_NEVER_CONNECTED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
_FAILURES: Final = (aiohttp.ClientError, OSError, TimeoutError)


class UnreachableError(Exception):
    """No connection to the partition came about; nothing was sent."""


class AnswerLostError(Exception):
    """The request was handed over, and no whole answer came: the partition may have done what was asked."""


class _Attempt(SimpleNamespace):
    """What the client does with one request."""

    is_read: bool
    is_handed_over: bool = False


class Upstream:
    """The connections to all partitions; made inside of a running event loop, and closed at the end."""

    def __init__(self, silence_s: float = SILENCE_S) -> None:
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, ttl_dns_cache=NAMES_KEPT_S),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=silence_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            auto_decompress=False,
            trace_configs=[_traced()],
        )
        self._turn = 0

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    @asynccontextmanager
    async def answered(
        self, partition: Partition, method: str, raw_target: str, headers: Iterable[tuple[str, str]], body: bytes
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request, and gives the answer as soon as its headers are there.

        Raises UnreachableError where nothing was sent, and AnswerLostError where something may have been.
        """
        self._turn += 1
        addresses = partition.addresses
        attempt = _Attempt(is_read=method in READS)
        failure: Exception | None = None
        for number in range(len(addresses)):
            address = addresses[(self._turn + number) % len(addresses)]
            try:
                response = await self._client.request(
                    method,
                    URL(address + raw_target, encoded=True),
                    headers=CIMultiDict(headers),
                    data=body or None,
                    allow_redirects=False,
                    trace_request_ctx=attempt,
                )
            except _FAILURES as error:
                failure = error
                if attempt.is_handed_over or not isinstance(error, _NEVER_CONNECTED):
                    raise AnswerLostError(f"{type(error).__qualname__}: {error}") from error
                continue
            async with response:
                yield response
            return
        raise UnreachableError(f"{type(failure).__qualname__}: {failure}") from failure


def passed_on(pairs: Iterable[tuple[str, str]], *, without: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """Gives the headers that go on to the other side: not those of one connection, nor those that it names as such."""
    kept = [(name, value) for name, value in pairs if name.lower() not in OF_ONE_CONNECTION | without]
    named = {word.strip().lower() for name, value in pairs if name.lower() == "connection" for word in value.split(",")}
    return [(name, value) for name, value in kept if name.lower() not in named]


def _traced() -> aiohttp.TraceConfig:
    """Notes when a request is handed to a connection, and refuses that an effect is handed to a second one."""

    async def connected(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        attempt: _Attempt = context.trace_request_ctx
        if attempt.is_handed_over and not attempt.is_read:
            raise aiohttp.ServerDisconnectedError

    async def handed_over(
        _: aiohttp.ClientSession, context: SimpleNamespace, __: aiohttp.TraceRequestHeadersSentParams
    ) -> None:
        context.trace_request_ctx.is_handed_over = True

    config = aiohttp.TraceConfig()
    config.on_connection_create_start.append(connected)
    config.on_connection_reuseconn.append(connected)
    config.on_request_headers_sent.append(handed_over)
    return config
