"""The readers of what other machines send back, beside the gateway: receivers, providers, and ourselves.

The last ones are the readers of the Python client, which gets what the service or a proxy answers, and what anybody
posts to a shop as a webhook.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import httpx
from tests.readers.reader import Reader, Shape
from tests.scripted_peer import OK, ScriptedPeer, scripted_peer

from payrelay.clock import Clock
from payrelay.core.access.signatures import is_identity_token, key_id_of
from payrelay.core.events.delivery import judged
from payrelay.core.events.destinations import AllowedDestinations
from payrelay.runtime.clients.receiver_names import GuardedResolver, NameThreads
from payrelay.runtime.clients.webhooks import WebhookClient
from payrelay.runtime.identity_provider_keys import ANSWER_BYTES_MAX, Jwks
from payrelay_client import verify_webhook
from payrelay_client.events import EventLines
from payrelay_client.models import Event, OperationDetail
from payrelay_client.replies import error_of, next_cursor, read_reply, seconds_of
from payrelay_client.wire import fields_of

ANSWER_BYTES: Final = 128 * 1024
"""Of an answer as HTTP. The HTTP library has limits for a header and for their number, and none for a body."""
FIELD_BYTES_MAX: Final = 8_190
"""Of a header in what the HTTP library of our servers and clients reads."""
NAMES_BYTES_MAX: Final = 65_535
"""Of an answer of a name server."""
NAME_BYTES: Final = 16
"""Of each address in it, at least."""
CLIENT_BYTES: Final = 64 * 1024
"""Of an answer that the Python client reads: a part of its limit of 16 MiB, which would take minutes."""
CLIENT_HEAD_BYTES: Final = 100 * 1024
"""Of the head of an answer that the client's HTTP library reads, and of the head that a shop's server may let pass."""
PUBLIC: Final = AllowedDestinations()
SECRET: Final = "whsec_" + "A" * 32

HTTP: Final = (
    Shape("many headers", b"a:\r\n", OK_HEAD := b"HTTP/1.1 200 OK\r\n", b"\r\n"),
    Shape("a header without an end", b"a", OK_HEAD + b"A: "),
    Shape("chunks of a byte", b"1\r\na\r\n", OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n"),
    Shape("a long body", b"a", OK_HEAD + b"\r\n"),
    Shape("interim answers", b"HTTP/1.1 103 Early\r\n\r\n", b"", OK),
)
COOKIES: Final = (
    Shape("quotes", b'\\"', OK_HEAD + b'Set-Cookie: a="', b'"\r\n\r\n'),
    Shape("attributes", b"; path=/", OK_HEAD + b"Set-Cookie: a=b", b"\r\n\r\n"),
    Shape("white space", b" ", OK_HEAD + b"Set-Cookie: a", b"=b\r\n\r\n"),
)
DATES: Final = (
    Shape("many words", b"1 "),
    Shape("many commas", b",", after=b" Jan 2026 10:00:00 GMT"),
    Shape("many colons", b":", before=b"1 Jan 2026 "),
    Shape("digits", b"9"),
    Shape("digits of a zone", b"9", before=b"1 Jan 2026 10:00:00 +"),
)


def _asked(ask: Callable[[ScriptedPeer], Awaitable[object]]) -> Callable[[bytes], object]:
    """Gives a reader of what comes back on a real socket."""

    async def answered(text: bytes) -> None:
        async with scripted_peer() as peer:
            peer.reply, peer.is_cut = text, True
            await ask(peer)

    return lambda text: asyncio.run(answered(text))


async def _webhook(receiver: ScriptedPeer) -> None:
    client = WebhookClient(PUBLIC, Clock(), limit_s=60.0, resolver=None, spans=None)
    await client.post(receiver.address, b"{}", {})
    await client.close()


async def _fetched(provider: ScriptedPeer) -> None:
    await Jwks(provider.address, limit_s=60.0)()


def _named(text: bytes) -> None:
    """Resolves a name that has these addresses, the last four bytes of each record."""
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (socket.inet_ntoa(text[end - 4 : end]), 443))
        for end in range(NAME_BYTES, len(text) + 1, NAME_BYTES)
    ]

    async def resolved() -> None:
        await GuardedResolver(PUBLIC, NameThreads(lambda *_, **__: found)).resolve("receiver.example", 443)

    asyncio.run(resolved())


def _signed(text: bytes) -> None:
    """Verifies a webhook with this header of signatures, which are all wrong."""
    named = {"webhook-id": "evt_1", "webhook-timestamp": str(Clock().now_ms() // 1000)}
    verify_webhook(SECRET, named | {"webhook-signature": text.decode("latin-1")}, b"{}")


def _answer(text: bytes) -> None:
    """Reads an answer of the service's as the Python client does, and makes of it whatever it may be."""
    for status in (200, 409):
        error_of(read_reply(status, {}, text))
    reply = read_reply(200, {}, text)
    for kind in (Event, OperationDetail):
        kind.of(getattr(reply, "data", None))


def _streamed(text: bytes) -> None:
    """Reads a stream of events, in pieces."""
    pieces = (text[begin : begin + 64] for begin in range(0, len(text), 64))
    events = EventLines()
    for line in httpx.Response(200, content=pieces).iter_lines():
        events.line(line)


def _envelope(name: str, piece: bytes, before: bytes, after: bytes) -> Shape:
    return Shape(name, piece, before=b'{"status":1,"msg":"","data":' + before, after=after + b"}")


READERS: Final = (
    Reader(name="the answer of a receiver", read=_asked(_webhook), longest=ANSWER_BYTES, shapes=HTTP),
    Reader(name="a cookie of a receiver", read=_asked(_webhook), longest=FIELD_BYTES_MAX, shapes=COOKIES),
    Reader(
        name="the answer of an identity provider",
        read=_asked(_fetched),
        longest=ANSWER_BYTES,
        shapes=HTTP[2:4],
    ),
    Reader(
        name="the wait that a receiver asks for",
        read=lambda text: judged(429, text.decode("latin-1"), 0),
        longest=FIELD_BYTES_MAX,
        shapes=DATES,
    ),
    Reader(
        name="the addresses of a receiver's name",
        read=_named,
        longest=NAMES_BYTES_MAX,
        shapes=(
            Shape("of many hosts", lambda number: b"\x08" * (NAME_BYTES - 4) + b"\x08%b\x08" % number.to_bytes(2)),
        ),
    ),
    Reader(
        name="the id token of a provider",
        read=lambda text: (is_identity_token(text.decode()), key_id_of(text.decode())),
        longest=ANSWER_BYTES_MAX,
        shapes=(
            Shape("points", b".", before=b"e30"),
            Shape("letters without a point", b"A"),
            Shape("words", b"a.a"),
        ),
    ),
    Reader(
        name="the signatures of a webhook, as a shop gets it",
        read=_signed,
        longest=CLIENT_HEAD_BYTES,
        shapes=(
            Shape("wrong ones", b"v1,%b " % (b"A" * 43 + b"="), after=b"v1,AAAA"),
            Shape("empty ones", b"v1, ", after=b"v1,AAAA"),
            Shape("of another version", b"v2, ", after=b"v1,AAAA"),
            Shape("commas", b",", before=b"v1"),
            Shape("one long one", b"A", before=b"v1,"),
        ),
    ),
    Reader(
        name="the wait that the client is asked for",
        read=lambda text: seconds_of(text.decode("latin-1")),
        longest=CLIENT_HEAD_BYTES,
        shapes=DATES,
    ),
    Reader(
        name="the headers of an answer to the client",
        read=lambda text: fields_of(
            httpx.Headers([(name, value) for name, _, value in (each.partition(b":") for each in text.split(b"\r\n"))])
        ),
        longest=CLIENT_HEAD_BYTES,
        shapes=(
            Shape("of one name", b"a:b\r\n"),
            Shape("of many names", lambda number: b"a%d:b\r\n" % number),
        ),
    ),
    Reader(
        name="the next page, as the client reads it",
        read=lambda text: next_cursor(text.decode("latin-1")),
        longest=CLIENT_HEAD_BYTES,
        shapes=(
            Shape("commas", b","),
            Shape("beginnings of an address", b"<"),
            Shape("other relations", b'<https://a/?cursor=b>; rel="prev",'),
            Shape("members of a query", b"a=&", before=b"<https://a/?", after=b'>; rel="next"'),
            Shape("percent signs", b"%", before=b"<https://a/?cursor=", after=b'>; rel="next"'),
        ),
    ),
    Reader(
        name="an answer to the client",
        read=_answer,
        longest=CLIENT_BYTES,
        shapes=(
            _envelope("many members", b'"a":1,', b"{", b'"b":1}'),
            _envelope("digits of an amount", b"9", b'{"amount":0.', b"}"),
            _envelope("an amount as a long text", b"9", b'{"amount":"', b'"}'),
            _envelope("a huge exponent", b"0", b'{"amount":1e', b"9}"),
            _envelope("digits of a number", b"9", b'{"payment_id":', b"}"),
            _envelope("changes of an operation", b'{"state":"sending"},', b'{"history":[', b"{}]}"),
            Shape("nested", b"["),
            Shape("a proxy's page", b"<p>", before=b"<html>"),
        ),
    ),
    Reader(
        name="a stream to the client",
        read=_streamed,
        longest=CLIENT_BYTES,
        shapes=(
            Shape("a line without an end", b"a", before=b"data: "),
            Shape("an event of many lines", b"data: {\n"),
            Shape("empty lines", b"\n"),
            Shape("ends of lines of two kinds", b"\r\r\n"),
            Shape("comments", b":\n"),
        ),
    ),
)
