"""The listening socket, which can be closed and opened again at the same address."""

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable

# Connections of tests, no more; the system's own limit is often the same.
BACKLOG = 128


class Listener:
    """Accepts connections for a protocol factory, or refuses them while it is closed.

    While closed the address stays bound, so that nobody else can take it.
    """

    def __init__(self) -> None:
        self._factory: Callable[[], asyncio.BaseProtocol] | None = None
        self._connections: Callable[[], Iterable[asyncio.BaseTransport]] = tuple
        self._address: tuple[str, int] = ("", 0)
        self._server: asyncio.Server | None = None
        self._placeholder: socket.socket | None = None
        self._resets_left = 0
        self._reopening: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a connection would be accepted now."""
        return self._server is not None

    @property
    def address(self) -> tuple[str, int]:
        """The host and port that it is bound to."""
        return self._address

    async def bind(
        self,
        host: str,
        port: int,
        factory: Callable[[], asyncio.BaseProtocol],
        connections: Callable[[], Iterable[asyncio.BaseTransport]],
    ) -> None:
        """Begin to listen; port 0 takes any free one. `connections` tells which are open."""
        self._factory, self._connections = factory, connections
        self._placeholder = _bound_socket(host, port)
        self._address = (host, self._placeholder.getsockname()[1])
        await self.open()

    async def open(self) -> None:
        """Accept connections again; nothing happens where it is open."""
        if self._placeholder is None:
            return
        placeholder, self._placeholder = self._placeholder, None
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, sock=placeholder, backlog=BACKLOG)

    def close(self, *, keep: asyncio.BaseTransport | None = None) -> None:
        """Refuse connections from now on and reset those that are open, all but `keep`."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        # Bound without listening: the system refuses connections and gives the port to nobody.
        self._placeholder = _bound_socket(*self._address)
        # A kept connection would still be served, and its client would not notice that nobody listens.
        for transport in list(self._connections()):
            if transport is not keep:
                reset(transport)

    def close_for(self, seconds: float, *, keep: asyncio.BaseTransport | None = None) -> None:
        """Close, and open again after so many seconds of the real clock."""
        self.close(keep=keep)
        if self._reopening is not None:
            self._reopening.cancel()
        self._reopening = asyncio.create_task(self._reopen(seconds))

    async def _reopen(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.open()

    async def wait_open(self) -> None:
        """Return when a closure for a while is over."""
        if self._reopening is not None:
            await self._reopening

    def reset_next(self, connections: int) -> None:
        """Accept that many of the next connections only to reset them before a byte is read."""
        self._resets_left = connections

    async def end(self) -> None:
        """Stop listening for good."""
        if self._reopening is not None:
            self._reopening.cancel()
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._placeholder is not None:
            self._placeholder.close()
            self._placeholder = None

    def _protocol(self) -> asyncio.BaseProtocol:
        if self._resets_left > 0:
            self._resets_left -= 1
            return _ResettingProtocol()
        if self._factory is None:
            raise RuntimeError("the listener accepts before it is bound")
        return self._factory()


class _ResettingProtocol(asyncio.Protocol):
    """Ends its connection as soon as it is made."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Reset at once."""
        reset(transport)


def reset(transport: asyncio.BaseTransport) -> None:
    """End a connection with a reset, dropping whatever was not sent."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        # Lingering for no time makes the system send a reset where it would else say goodbye.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()


def _bound_socket(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    bound.settimeout(0)
    return bound
