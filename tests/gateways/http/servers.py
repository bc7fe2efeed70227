"""A server on a real socket that does on each connection what a test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol


class Link:
    """One connection, as the server has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def take(self) -> bytes:
        """Reads one whole request."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return head + await self.reader.readexactly(length)

    async def say(self, raw: bytes) -> None:
        """Writes bytes as they are."""
        self.writer.write(raw)
        await self.writer.drain()

    async def answer(self, body: bytes, headers: str = "") -> None:
        """Writes a whole reply."""
        await self.say(f"HTTP/1.1 200 OK\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def stay(self) -> None:
        """Says nothing more until the other side goes away."""
        await self.reader.read()


class Connected(Protocol):
    """What serves connections at an address of its own."""

    url: str

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""

    async def end(self) -> None:
        """Ends what is still going on."""


@asynccontextmanager
async def listening(server: Connected) -> AsyncIterator[None]:
    """Gives a server a real socket and its address while the context is open."""
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    yield
    await server.end()
    listener.close()
    await listener.wait_closed()


Step = Callable[[Link], Awaitable[None]]


class Server:
    """Does on each connection what the script says; the last step is repeated. Notes the requests that it read."""

    def __init__(self) -> None:
        self.script: list[Step] = []
        self.requests: list[bytes] = []
        self.connections = 0
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def read(self, link: Link) -> None:
        """Reads a request and notes it."""
        self.requests.append(await link.take())

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            await step(Link(reader, writer))
        writer.close()
        self._tasks.discard(task)

    async def end(self) -> None:
        """Ends what is still going on."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
