"""A server on a real socket that answers whatever is asked with the bytes that a test scripts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{"is":"done  "}'


@dataclass
class ScriptedPeer:
    """What is answered from now on.

    Attributes:
        reply: the bytes of the answer.
        is_cut: hangs up behind the reply.
    """

    address: str = ""
    reply: bytes = OK
    is_cut: bool = False

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
        await reader.readexactly(int(named[0]) if named else 0)
        writer.write(self.reply)
        await writer.drain()
        return not self.is_cut


@asynccontextmanager
async def scripted_peer() -> AsyncIterator[ScriptedPeer]:
    """Listens while the context is open."""
    peer = ScriptedPeer()
    async with await asyncio.start_server(peer.converse, "127.0.0.1", 0) as server:
        peer.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield peer
        server.close()
