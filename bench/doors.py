"""Three doors that do nothing behind them: Granian as the service has it, uvicorn, and a bare protocol on llhttp.

    python bench/doors.py granian|uvicorn|protocol 127.0.0.1 8080

Each reads a request with its body, and gives the answer of a replay with its headers. The bare protocol has no limits
and no timeouts: it shows the least that a server of one's own could take.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Final, cast

import httptools
import uvicorn
import uvloop

from payrelay.api.address import ServedAddress
from payrelay.api.connections.limits import ConnectionLimits
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.http.incoming_request import Receive, Scope, Send
from payrelay.api.http.request_log import json_log
from payrelay.api.http.sampled_lines import RequestLines
from payrelay.api.serving import serve
from payrelay.clock import Clock

BODY: Final = b'{"status":1,"msg":"Payment is successfully charged","data":{"payment_id":320025021234,"amount":345.67}}'
HEADERS: Final = [
    (b"content-length", b"%d" % len(BODY)),
    (b"x-request-id", b"req_0123456789abcdef01234567"),
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"server", b"payrelay"),
    (b"payrelay-operation", b"op_0193f1a2b3c4d5e6f708192a3b4c5d6e"),
    (b"idempotent-replayed", b"true"),
]
WHOLE: Final = b"HTTP/1.1 200 OK\r\n%b\r\n%b" % (b"".join(b"%b: %b\r\n" % header for header in HEADERS), BODY)


class Bare(ServedAddress):
    """The application on an address that knows of no connection, and so limits none."""

    def __init__(self) -> None:
        lines = RequestLines(json_log(sys.stdout.buffer, Clock()), lambda *_: None)
        super().__init__(OpenConnections(ConnectionLimits(), Clock(), lambda _: True), lines)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers any request."""
        await answer(scope, receive, send)


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers any request, as an ASGI application."""
    assert scope["type"] == "http"
    while (await receive()).get("more_body", False):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})


class Front(asyncio.Protocol):
    """One connection, on which each whole request gets the answer."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Reads a part of a request."""
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes a header, as any application needs some."""

    def on_body(self, body: bytes) -> None:
        """Keeps a part of the body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Answers."""
        self._body.clear()
        if self._transport is not None:
            self._transport.write(WHOLE)


async def _on_granian(host: str, port: int) -> None:
    await serve(Bare(), host, port, stop=asyncio.Event(), drain_s=0)


async def _on_uvicorn(host: str, port: int) -> None:
    config = uvicorn.Config(answer, host, port, http="httptools", lifespan="off", access_log=False, log_level="warning")
    await uvicorn.Server(config).serve()


async def _on_protocol(host: str, port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Front, host, port, backlog=1024)
    await server.serve_forever()


DOORS: Final[dict[str, Callable[[str, int], Coroutine[object, object, None]]]] = {
    "granian": _on_granian,
    "uvicorn": _on_uvicorn,
    "protocol": _on_protocol,
}
"""The doors, by the names under which they are started."""


if __name__ == "__main__":
    uvloop.run(DOORS[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
