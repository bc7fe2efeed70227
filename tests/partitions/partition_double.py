"""A partition on a real socket: answers as a test scripts it, and keeps what came."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{"is":"done  "}'


@dataclass
class PartitionDouble:
    """What a partition answers with from now on, and the requests that came: head and body of each.

    Attributes:
        reply: the bytes of the answer; empty to hang up without one.
        is_cut: hangs up behind the reply.
        may_answer: an answer waits for it.
        left: set when a caller has ended its connection before the answer.
    """

    address: str = ""
    reply: bytes = OK
    is_cut: bool = False
    requests: list[tuple[str, bytes]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    def heads(self) -> list[str]:
        """Gives the first lines of the requests."""
        return [head.partition("\r\n")[0] for head, _ in self.requests]

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests of one connection."""
        try:
            while await self._answered(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        named = [line.partition(":")[2] for line in head.splitlines() if line.lower().startswith("content-length:")]
        self.requests.append((head, await reader.readexactly(int(named[0])) if named else b""))
        self.arrived.set()
        if not await self._awaits(reader) or not self.reply:
            return False
        writer.write(self.reply)
        await writer.drain()
        return not self.is_cut

    async def _awaits(self, reader: asyncio.StreamReader) -> bool:
        """Waits until it may answer; False where the caller leaves before."""
        allowed, gone = asyncio.ensure_future(self.may_answer.wait()), asyncio.ensure_future(reader.read(1))
        try:
            if self.may_answer.is_set():
                return True
            await asyncio.wait({allowed, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not allowed.done():
                self.left.set()
            return allowed.done()
        finally:
            allowed.cancel()
            gone.cancel()
            await asyncio.gather(allowed, gone, return_exceptions=True)


@asynccontextmanager
async def partition_at() -> AsyncIterator[PartitionDouble]:
    """Listens while the context is open; answers at once unless the test clears ``may_answer``."""
    double = PartitionDouble()
    double.may_answer.set()
    async with await asyncio.start_server(double.converse, "127.0.0.1", 0) as server:
        double.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield double
        server.close()


def nobody() -> str:
    """Gives an address on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def body_of(text: bytes) -> object:
    """Reads the JSON behind the head of a whole HTTP answer."""
    return json.loads(text.partition(b"\r\n\r\n")[2])
