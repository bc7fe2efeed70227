"""Makes connections to one address: name, happy eyeballs, TLS. Nothing of a request is sent here."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from aiohappyeyeballs import AddrInfoType, remove_addr_infos, start_connection

from payrelay.gateways.http.connection import GatewayConnection
from payrelay.gateways.http.exchange import LossCause

NAMES_KEPT_S: Final = 10.0
"""How long the addresses of a name are used before it is looked up again."""
NEXT_ADDRESS_AFTER_S: Final = 0.25
"""How long one address is tried alone, before the next one is tried beside it (RFC 8305)."""

NOT_CONNECTED: Final[tuple[tuple[type[BaseException], LossCause], ...]] = (
    (socket.gaierror, LossCause.NAME_NOT_FOUND),
    (UnicodeError, LossCause.NAME_NOT_FOUND),
    (ssl.SSLError, LossCause.TLS_FAILED),
    (TimeoutError, LossCause.CONNECT_TIMEOUT),
    (OSError, LossCause.NO_CONNECTION),
)
"""The failures of a connection that is being made; the first that fits names the cause."""

Make: TypeAlias = Callable[[], GatewayConnection]


class NotConnected(Exception):
    """There is no connection to write to, so that nothing was written. Raised only before a request is written."""

    def __init__(self, cause: LossCause) -> None:
        super().__init__(cause)
        self.cause = cause


def not_connected(error: Exception) -> NotConnected | None:
    """Gives the listed failure that an error is; None for one that isn't listed."""
    for kind, cause in NOT_CONNECTED:
        if isinstance(error, kind):
            return NotConnected(cause)
    return None


@cache
def verifying() -> ssl.SSLContext:
    """Makes the client's side of TLS, once: it verifies name, authority and dates, and offers HTTP/1.1 alone."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Connector:
    """Makes connections to one host and port.

    Args:
        tls: the client's side of TLS; None for plain HTTP.
    """

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._found: list[AddrInfoType] = []
        self._found_until_s = 0.0
        self._lookup: asyncio.Task[list[AddrInfoType]] | None = None

    async def connect(self, make: Make, *, by_s: float) -> GatewayConnection:
        """Makes a connection that stands by ``by_s`` (by the loop's clock). Raises NotConnected.

        Where TLS fails at one address, the next one is tried: no request is sent before one is verified.
        """
        try:
            async with asyncio.timeout_at(by_s):
                return await self._connect(make)
        except Exception as error:  # the table tells which of them mean that there is no connection
            refusal = not_connected(error)
            if refusal is None:
                raise
            raise refusal from error

    async def close(self) -> None:
        """Ends a lookup that is under way."""
        if self._lookup is not None:
            self._lookup.cancel()
            await asyncio.wait({self._lookup})

    async def _connect(self, make: Make) -> GatewayConnection:
        addresses = [*await self._addresses()]
        while True:
            connected = await start_connection(
                addresses, happy_eyeballs_delay=NEXT_ADDRESS_AFTER_S, interleave=1, loop=asyncio.get_running_loop()
            )
            peer = _peer(connected)
            try:
                return await self._wrap(connected, make)
            except OSError:
                if peer is None:
                    raise
                remove_addr_infos(addresses, peer)
                if not addresses:
                    raise

    async def _wrap(self, connected: socket.socket, make: Make) -> GatewayConnection:
        """Makes a connection of a connected socket, with TLS where it is wanted."""
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                make, sock=connected, ssl=self._tls, server_hostname=None if self._tls is None else self._host
            )
        except BaseException:
            # The loop may not have taken the socket yet; to close it twice does nothing.
            connected.close()
            raise
        connection.stands(connected, is_secret=self._tls is not None)
        return connection

    async def _addresses(self) -> list[AddrInfoType]:
        """Gives the addresses of the host. All who ask while it is looked up share one lookup."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._found_until_s:
            return self._found
        if self._lookup is None:
            self._lookup = loop.create_task(self._look_up())
            self._lookup.add_done_callback(self._looked_up)
        return await asyncio.shield(self._lookup)

    async def _look_up(self) -> list[AddrInfoType]:
        loop = asyncio.get_running_loop()
        if _is_address(self._host):
            # Without a thread: a numeric address asks nobody.
            found = socket.getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
            )
        else:
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        self._found, self._found_until_s = [*found], loop.time() + NAMES_KEPT_S
        return self._found

    def _looked_up(self, lookup: "asyncio.Task[list[AddrInfoType]]") -> None:
        self._lookup = None
        if not lookup.cancelled():
            lookup.exception()  # those who wait for it get it; where nobody does any more, it is of no use


def _peer(connected: socket.socket) -> tuple[str, int] | tuple[str, int, int, int] | None:
    """Gives the address of the other side; None where it has gone already."""
    try:
        peer: tuple[str, int] | tuple[str, int, int, int] = connected.getpeername()
    except OSError:
        return None
    return peer


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
