"""Answers that are told bit by bit: server-sent events (WHATWG HTML, "Server-sent events").

Rules:

1. A stream begins with its status and a sign of life at once, so that proxies and browsers see it open.
2. It ends with the client, the program, the credential that opened it, and after a while by itself; the client comes
   again with the id of the last event that it saw.
3. Its end waits for no client: one that takes nothing of what it is sent loses its place all the same.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from payrelay.api.http.incoming_request import Message, Receive, Send, disconnected
from payrelay.core.answers import Answer
from payrelay.errors import StoreError
from payrelay.flows.events.read_events import EventStream, EventView

RETRY_MS: Final = 2_000
"""How long a browser waits before it comes again."""
POLL_EVERY_S: Final = 3.0
"""Between two looks at whether a stream may go on: with the second for which a credential is remembered, how late a
revocation ends it. It costs up to one read of the store for each stream."""
END_WITHIN_S: Final = 1.0
"""How long the end of a stream may take to be sent, once it was cut off."""
SIGN_OF_LIFE: Final = b": here\n\n"
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
    """A stream that has been opened, as an answer; whoever has it sends it by ``send_stream``, once."""

    stream: EventStream
    http_status: int = 200
    body: bytes = b""


def written(event: EventView) -> bytes:
    """Writes an event as it stands in a stream."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.position, event.type.encode(), _encode(event))


MayGoOn = Callable[[], Awaitable[bool]]
"""Tells whether whoever opened a stream might still open it."""


async def send_stream(
    send: Send,
    receive: Receive,
    streamed: StreamedAnswer,
    headers: Sequence[tuple[bytes, bytes]],
    *,
    may_go_on: MayGoOn,
    poll_every_s: float = POLL_EVERY_S,
) -> None:
    """Sends a stream to its end, until the client has gone, or until it may not go on."""
    telling = asyncio.ensure_future(_tell(send, streamed, headers))
    leaving = asyncio.ensure_future(disconnected(receive))
    ending = asyncio.ensure_future(_over(streamed.stream, may_go_on, poll_every_s))
    try:
        await asyncio.wait({telling, leaving, ending}, return_when=asyncio.FIRST_COMPLETED)
        is_cut = not (telling.done() or leaving.done())
    finally:
        for task in (telling, leaving, ending):
            task.cancel()
        await asyncio.gather(leaving, ending, return_exceptions=True)
        # A client that goes away in the middle of a write is no mistake of ours; without the store it comes again.
        with suppress(asyncio.CancelledError, OSError, RuntimeError, StoreError):
            await telling
        streamed.stream.close()
    if is_cut or _has_failed(telling):
        with suppress(OSError, RuntimeError, TimeoutError):
            await asyncio.wait_for(send(_LAST), END_WITHIN_S)


def _has_failed(telling: "asyncio.Future[None]") -> bool:
    """True where the store could not be asked, so that the client still waits for an end."""
    return not telling.cancelled() and isinstance(telling.exception(), StoreError)


async def _over(stream: EventStream, may_go_on: MayGoOn, poll_every_s: float) -> None:
    """Returns when nothing more may be sent; what a stream tells last has until the next look to get through."""
    was_over = False
    while not was_over:
        was_over = stream.is_over
        await asyncio.sleep(poll_every_s)
        if not await may_go_on():
            return


async def _tell(send: Send, streamed: StreamedAnswer, headers: Sequence[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": streamed.http_status, "headers": [*headers, *HEADERS]})
    async for piece in _pieces(streamed.stream):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send(_LAST)


async def _pieces(stream: EventStream) -> AsyncIterator[bytes]:
    yield b"retry: %d\n" % RETRY_MS + SIGN_OF_LIFE
    async for event in stream.events():
        yield SIGN_OF_LIFE if event is None else written(event)
