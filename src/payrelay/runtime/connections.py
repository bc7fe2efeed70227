"""Connections to servers of others: receivers of webhooks and alerts, and identity providers.

Rules:

1. No server keeps the event loop busy, and payments with it. Each reply may be preceded by INTERIM_MAX others, and what
   has come unasked waits in the kernel: it is read in small pieces.
2. The server chooses no Diffie-Hellman group of its own: OpenSSL takes one of 10,000 bits, and then calculates for a
   second. Every server has the curve P-256 (RFC 8446, 9.1).
"""

import asyncio
import socket
import ssl
from functools import cache, partial
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler

INTERIM_MAX: Final = 8
"""Replies with a status below 200, which come before the reply. Nobody has a reason to send one here."""
PIECE_BYTES_MAX: Final = 16_384
"""Of what a server has sent, in the kernel: an answer to a webhook has hardly any."""
_FIRST_STATUS: Final = 200
_CURVE: Final = "prime256v1"
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES"
"""Those of TLS 1.2; those of 1.3 are all offered."""


class _Handler(ResponseHandler):
    """Reads replies, and no more interim ones than INTERIM_MAX before each."""

    _interim = 0

    def set_response_params(self, **params: Any) -> None:  # noqa: ANN401 - as its base's, for the next reply
        self._interim = 0
        super().set_response_params(**params)

    def feed_data(self, data: Any, size: int = 0) -> None:  # noqa: ANN401, as its base, which has no types for it
        if data[0].code < _FIRST_STATUS:
            self._interim += 1
            if self._interim > INTERIM_MAX:
                self.set_exception(aiohttp.ServerDisconnectedError("it sends interim replies without end"))
                if self.transport is not None:
                    self.transport.abort()
                return
        super().feed_data(data, size)


@cache
def tls_to_others() -> ssl.SSLContext:
    """Makes the client's side of TLS, once: it verifies name, authority and dates."""
    context = ssl.create_default_context()
    context.set_ciphers(_CIPHERS)
    context.set_ecdh_curve(_CURVE)
    return context


def connector_to_others(**options: Any) -> aiohttp.TCPConnector:  # noqa: ANN401 - of aiohttp's own
    """Makes what connects to a server of somebody else; ``options`` are aiohttp's."""
    connector = aiohttp.TCPConnector(ssl=tls_to_others(), socket_factory=_socket, **options)
    # There is no other way in. A test tells where this one has closed.
    connector._factory = partial(_Handler, loop=asyncio.get_running_loop())  # type: ignore[assignment]  # noqa: SLF001
    return connector


def session_to_others(limit_s: float, resolver: AbstractResolver | None = None) -> aiohttp.ClientSession:
    """Makes a session for one exchange, which may take so long from the look-up of the name to the last byte.

    ``resolver`` looks up names that others have chosen; None for those of the operator, which may lead anywhere.
    """
    connector = connector_to_others(resolver=resolver)
    return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=limit_s))


async def body_of(response: aiohttp.ClientResponse, bytes_max: int) -> bytes | None:
    """Reads the body of an answer to its end; None where it is longer, of which no more is read."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > bytes_max:
            return None
    return bytes(body)


def _socket(address: Any) -> socket.socket:  # noqa: ANN401 - aiohttp's own type
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE_BYTES_MAX)
    return made
