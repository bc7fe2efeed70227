"""Streams: answers of server-sent events (WHATWG HTML, "Server-sent events").

Rules:

1. A stream begins at once with its status and a keep-alive comment, so that proxies and browsers see it open.
2. A stream ends with the client, the program or the credential that opened it, and after a while by itself. The client
   reconnects with the id of the last event that it received.
3. The end of a stream waits for no client: one that reads nothing loses its stream all the same.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from payrelay.api.http.incoming_request import Message, Receive, Send, disconnected
from payrelay.core.answers import Answer
from payrelay.errors import StoreError
from payrelay.flows.events.event_views import EventView
from payrelay.flows.events.read_events import EventStream

RETRY_MS: Final = 2_000
"""How long a browser waits before it reconnects."""
POLL_EVERY_S: Final = 3.0
"""The time between two checks that a stream may go on. A revocation ends a stream within this time, and the second for
which a credential is cached. Each check costs up to one read of the store for each stream."""
END_WITHIN_S: Final = 1.0
"""How long sending the end of a stream may take, where the service ends it."""
KEEP_ALIVE: Final = b": here\n\n"
ENDING: Final = b"retry: %d\n: this stream ends; connect again with the id of the last event\n\n" % RETRY_MS
"""Sent where the service ends a stream: a browser comes back by itself, and whoever reads along learns why."""
HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
    (b"server", b"payrelay"),
)

_LAST: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}

_encode: Final = msgspec.json.Encoder().encode


class StreamedAnswer(Answer, frozen=True, kw_only=True):
    """An open stream, as an answer; ``send_stream`` sends it, once."""

    stream: EventStream
    http_status: int = 200
    body: bytes = b""


def written(event: EventView) -> bytes:
    """Writes an event as a server-sent event."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.position, event.type.encode(), _encode(event))


MayGoOn = Callable[[], Awaitable[bool]]
"""Tells whether the caller of a stream still has its permission."""


async def send_stream(
    send: Send,
    receive: Receive,
    streamed: StreamedAnswer,
    headers: Sequence[tuple[bytes, bytes]],
    *,
    may_go_on: MayGoOn,
    poll_every_s: float = POLL_EVERY_S,
) -> None:
    """Sends a stream until it ends, the client disconnects, or ``may_go_on`` is False."""
    sending = asyncio.ensure_future(_send_pieces(send, streamed, headers))
    leaving = asyncio.ensure_future(disconnected(receive))
    ending = asyncio.ensure_future(_ended(streamed.stream, may_go_on, poll_every_s))
    try:
        await asyncio.wait({sending, leaving, ending}, return_when=asyncio.FIRST_COMPLETED)
        is_cut = not (sending.done() or leaving.done())
    finally:
        for task in (sending, leaving, ending):
            task.cancel()
        await asyncio.gather(leaving, ending, return_exceptions=True)
        # A client may disconnect during a write; where the store fails, the client reconnects.
        with suppress(asyncio.CancelledError, OSError, RuntimeError, StoreError):
            await sending
        streamed.stream.close()
    if is_cut or _has_failed(sending):
        with suppress(OSError, RuntimeError, TimeoutError):
            await asyncio.wait_for(send(_LAST), END_WITHIN_S)


def _has_failed(sending: "asyncio.Future[None]") -> bool:
    """True where the store failed, so that the client still needs the end of the stream."""
    return not sending.cancelled() and isinstance(sending.exception(), StoreError)


async def _ended(stream: EventStream, may_go_on: MayGoOn, poll_every_s: float) -> None:
    """Returns when nothing more may be sent; the last events have one more ``poll_every_s`` to be sent."""
    was_ended = False
    while not was_ended:
        was_ended = stream.is_over
        await asyncio.sleep(poll_every_s)
        if not await may_go_on():
            return


async def _send_pieces(send: Send, streamed: StreamedAnswer, headers: Sequence[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": streamed.http_status, "headers": [*headers, *HEADERS]})
    async for piece in _pieces(streamed.stream):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send(_LAST)


async def _pieces(stream: EventStream) -> AsyncIterator[bytes]:
    yield b"retry: %d\n" % RETRY_MS + KEEP_ALIVE
    async for event in stream.events():
        yield KEEP_ALIVE if event is None else written(event)
    yield ENDING
