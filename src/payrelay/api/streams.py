"""Answers that are told bit by bit: server-sent events (WHATWG HTML, "Server-sent events").

Rules:

1. A stream begins with its status and a sign of life at once, so that proxies and browsers see it open.
2. It ends with the client, with the program, and after a while by itself; the client comes again with the id of the
   last event that it saw.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from payrelay.api.arrival import Receive, Send
from payrelay.core.answers import Answer
from payrelay.operations.read_events import EventStream, EventView

RETRY_MS: Final = 2_000
"""How long a browser waits before it comes again."""
SIGN_OF_LIFE: Final = b": here\n\n"
HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
    (b"server", b"payrelay"),
)

_encode: Final = msgspec.json.Encoder().encode


class Streamed(Answer, frozen=True, kw_only=True):
    """A stream that has been opened, as an answer; whoever has it sends it by ``send_stream``, once."""

    stream: EventStream
    http_status: int = 200
    body: bytes = b""


def written(event: EventView) -> bytes:
    """Writes an event as it stands in a stream."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.position, event.type.encode(), _encode(event))


async def send_stream(send: Send, receive: Receive, streamed: Streamed, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Sends a stream to its end, or until the client has gone."""
    telling = asyncio.ensure_future(_tell(send, streamed, headers))
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        telling.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        # A client that goes away in the middle of a write is no mistake of ours.
        with suppress(asyncio.CancelledError, OSError, RuntimeError):
            await telling
        streamed.stream.close()


async def _tell(send: Send, streamed: Streamed, headers: Sequence[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": streamed.http_status, "headers": [*headers, *HEADERS]})
    async for piece in _pieces(streamed.stream):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _pieces(stream: EventStream) -> AsyncIterator[bytes]:
    yield b"retry: %d\n" % RETRY_MS + SIGN_OF_LIFE
    async for event in stream.events():
        yield SIGN_OF_LIFE if event is None else written(event)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
