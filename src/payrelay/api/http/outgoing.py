"""Answers on their way to the client: an envelope or a plain answer, with its headers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from payrelay.api.http.incoming_request import Receive, Send, disconnected
from payrelay.api.http.request_log import RequestLogRecord
from payrelay.api.http.visit import Visit
from payrelay.core.answers import OPERATION_HEADER, REPLAYED, Answer
from payrelay.errors import Code

_NAMES_MAX: Final = 64
"""More names of headers than answers have."""
_FIXED: Final = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"server", b"payrelay"),
)


class PlainAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer without an envelope, such as a page."""

    http_status: int = 200
    body: bytes
    raw_headers: tuple[tuple[bytes, bytes], ...]
    headers: tuple[tuple[str, str], ...] = ()
    code: Code | None = None


class StreamedPage(PlainAnswer, frozen=True, kw_only=True):
    """The beginning of a page that goes on piece by piece; ``send_pieces`` sends it, once."""

    pieces: AsyncGenerator[bytes, None]


AnyAnswer: TypeAlias = Answer | PlainAnswer


def plain_answer(body: bytes, content_type: str, cache_control: str, *more: tuple[bytes, bytes]) -> PlainAnswer:
    """Makes an answer with status 200 of a body and its headers."""
    headers: tuple[tuple[bytes, bytes], ...] = (
        (b"content-type", content_type.encode()),
        (b"cache-control", cache_control.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"server", b"payrelay"),
        *more,
    )
    return PlainAnswer(body=body, raw_headers=headers)


async def send_answer(send: Send, visit: Visit, answer: Answer | PlainAnswer) -> None:
    """Sends an answer as a whole."""
    body = answer.body
    headers = [(b"content-length", b"%d" % len(body)), *visit.own_headers()]
    if isinstance(answer, PlainAnswer):
        headers += answer.raw_headers
        if visit.scope["method"] == "HEAD":
            # It gets the headers of the page, with the length of the body that GET would get.
            body = b""
    else:
        headers += _FIXED
        if answer.retry_after_s is not None:
            headers.append((b"retry-after", b"%d" % answer.retry_after_s))
        for name, value in answer.headers:
            headers.append((_raw_name(name), value.encode("latin-1")))
    await send({"type": "http.response.start", "status": answer.http_status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@lru_cache(maxsize=_NAMES_MAX)
def _raw_name(name: str) -> bytes:
    """Gives the name of a header as the server takes it."""
    return name.lower().encode()


async def send_pieces(
    send: Send,
    receive: Receive,
    status: int,
    headers: list[tuple[bytes, bytes]],
    pieces: AsyncGenerator[bytes, None],
) -> None:
    """Sends a page piece by piece, until it ends or the client disconnects; a client that reads nothing is closed."""
    sending = asyncio.ensure_future(_send_pieces(send, status, headers, pieces))
    leaving = asyncio.ensure_future(disconnected(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        with suppress(asyncio.CancelledError, OSError, RuntimeError):
            await sending


async def _send_pieces(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], pieces: AsyncGenerator[bytes, None]
) -> None:
    async with aclosing(pieces) as opened:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        async for piece in opened:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def note_answer(log_record: RequestLogRecord, answer: Answer | PlainAnswer, duration_s: float) -> None:
    """Fills the fields of the request log that an answer decides."""
    for name, value in answer.headers:
        if name == OPERATION_HEADER:
            log_record.operation_id = value
        elif (name, value) == REPLAYED:
            log_record.is_replayed = True
    log_record.status, log_record.code = answer.http_status, answer.code
    log_record.duration_ms = round(duration_s * 1000, 3)
