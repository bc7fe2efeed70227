"""The fastest relay that an expert would write without a journal: bare protocols on uvloop and llhttp, no framework.

It checks what it must: the caller's key, the body's types, that the gateway's reply is whole. It keeps its connections
open, and the gateway's token. The gateway's bytes go through as they came. It stores nothing, so a repeated request
charges again, and a lost reply is an error whose outcome nobody finds out. What Payrelay costs beside it is the price
of its promises.
"""

import asyncio
import base64
import hmac
import os
import sys
import time
from collections import deque
from typing import cast
from urllib.parse import quote, unquote_to_bytes, urlsplit

import httptools
import msgspec
import uvloop

API_KEY = os.environ["BARE_API_KEY"].encode()
BASE_URL = urlsplit(os.environ["BARE_BASE_URL"])
BASIC = base64.b64encode(f"{os.environ['BARE_APP_ID']}:{os.environ['BARE_APP_SECRET']}".encode())

TIMEOUT_S = 30
TOKEN_MARGIN_S = 30
HOST = b"Host: " + BASE_URL.netloc.encode() + b"\r\n"
READY = b"/health/ready"
CHARGE = b"/gateway/api/payments/charge"
PAYMENTS = b"/gateway/api/payments/"
REASONS = {200: b"200 OK", 400: b"400 Bad Request", 401: b"401 Unauthorized", 404: b"404 Not Found"}


class Item(msgspec.Struct):
    """One line of a charge's item list."""

    name: str
    number: str
    quantity: int
    unit_amount: float


class ChargeRequest(msgspec.Struct):
    """The body of a charge."""

    type: str
    order_id: str
    items: str
    currency: str
    amount: float
    customer_token: str
    custom_1: str | None = None
    custom_2: str | None = None
    notify_url: str | None = None
    itemList: list[Item] | None = None  # noqa: N815 - the interface's spelling


class Token(msgspec.Struct):
    """The gateway's answer to a request for a token."""

    access_token: str
    expires_in: int


_charge = msgspec.json.Decoder(ChargeRequest).decode
_token = msgspec.json.Decoder(Token).decode


class Lost(Exception):
    """The connection to the gateway was lost before the reply was whole."""


class Upstream(asyncio.Protocol):
    """One connection to the gateway, for one call at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._reply: asyncio.Future[tuple[int, bytes]] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []

    @property
    def is_open(self) -> bool:
        """Whether a call can be made on it."""
        return self._transport is not None and not self._transport.is_closing()

    def call(self, request: bytes) -> "asyncio.Future[tuple[int, bytes]]":
        """Sends a request, and gives what becomes its status and body."""
        assert self._transport is not None
        self._reply = asyncio.get_running_loop().create_future()
        self._body = []
        self._transport.write(request)
        return self._reply

    def abort(self) -> None:
        """Gives the call up."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Is connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has another base

    def connection_lost(self, _: Exception | None) -> None:
        """Tells the caller, where one waits."""
        self._transport = None
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(Lost())

    def data_received(self, data: bytes) -> None:
        """Reads on."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def on_body(self, body: bytes) -> None:
        """Keeps a piece of the reply."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Hands the reply over."""
        if self._reply is not None and not self._reply.done():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._reply.set_result((self._parser.get_status_code(), body))


class Gateway:
    """The gateway's connections, and its token."""

    def __init__(self) -> None:
        self._idle: deque[Upstream] = deque()
        self._token = b""
        self._token_ends_s = 0.0
        self._renewing = asyncio.Lock()

    async def call(self, head: bytes, body: bytes = b"") -> tuple[int, bytes]:
        """Makes a call with the token; ``head`` has the request line."""
        if time.monotonic() >= self._token_ends_s:
            await self._renew()
        return await self._send(b"%bAuthorization: Bearer %b\r\n" % (head, self._token), body)

    async def _send(self, head: bytes, body: bytes) -> tuple[int, bytes]:
        connection = await self._connection()
        kind = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body) if body else b""
        reply = connection.call(head + HOST + kind + b"\r\n" + body)
        timer = asyncio.get_running_loop().call_later(TIMEOUT_S, connection.abort)
        try:
            status, content = await reply
        finally:
            timer.cancel()
        self._idle.append(connection)
        return status, content

    async def _connection(self) -> Upstream:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(Upstream, BASE_URL.hostname or "", BASE_URL.port or 80)
        return made

    async def _renew(self) -> None:
        async with self._renewing:
            if time.monotonic() < self._token_ends_s:
                return
            head = b"POST /merchant/v1/oauth/token HTTP/1.1\r\nAuthorization: Basic %b\r\n" % BASIC
            status, content = await self._send(head, b"grant_type=client_credentials")
            if status != 200:
                raise Lost
            token = _token(content)
            self._token = token.access_token.encode()
            self._token_ends_s = time.monotonic() + token.expires_in - TOKEN_MARGIN_S


class Front(asyncio.Protocol):
    """One connection of a client; its requests are answered one after the other."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[bytes, bytes, bytes, bytes]] = deque()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Is connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has another base

    def connection_lost(self, _: Exception | None) -> None:
        """Forgets the client; a call that was made goes on."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Reads on."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._transport is not None:
                self._transport.abort()

    def on_message_begin(self) -> None:
        """Begins a request."""
        self._url = self._key = b""
        self._body: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        """Keeps a piece of the address."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keeps the caller's key."""
        if name.lower() == b"authorization":
            self._key = value.removeprefix(b"Bearer ")

    def on_body(self, body: bytes) -> None:
        """Keeps a piece of the body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Answers, once the requests before it are answered."""
        self._waiting.append((self._parser.get_method(), self._url, self._key, b"".join(self._body)))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._answer_all())

    async def _answer_all(self) -> None:
        while self._waiting:
            request = self._waiting.popleft()
            try:
                status, body = await self._answered(*request)
            except (Lost, OSError):
                status, body = 502, b'{"status":-1,"msg":"no answer came from the gateway","data":null}'
            if self._transport is not None:
                line = REASONS.get(status) or b"%d Status" % status
                head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
                    line,
                    len(body),
                )
                self._transport.write(head + body)
        self._task = None

    async def _answered(self, method: bytes, url: bytes, key: bytes, body: bytes) -> tuple[int, bytes]:
        if url == READY:
            return 200, b"{}"
        if not hmac.compare_digest(key, API_KEY):
            return 401, b"{}"
        if method == b"POST" and url == CHARGE:
            try:
                _charge(body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                return 400, b"{}"
            return await self._gateway.call(b"POST /merchant/v1/payment/charge HTTP/1.1\r\n", body)
        if method == b"GET" and url.startswith(PAYMENTS):
            order = quote(unquote_to_bytes(url[len(PAYMENTS) :]), safe="").encode()
            return await self._gateway.call(b"GET /merchant/v1/payment/search?order_id=%b HTTP/1.1\r\n" % order)
        return 404, b"{}"


async def main(host: str, port: int) -> None:
    """Serves until it is ended."""
    gateway = Gateway()
    server = await asyncio.get_running_loop().create_server(lambda: Front(gateway), host, port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
