"""Where the console comes in: at ``/console`` on the API's address, or on an address of its own.

The console is a callable that is passed in, and answers whatever happens. This layer reads the body within the usual
bounds, and knows the client behind trusted proxies.
"""

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.api.http.incoming_request import (
    BodyTimeout,
    Headers,
    Network,
    Networks,
    Receive,
    Scope,
    Send,
    client_address,
    peer_of,
    read_body,
    request_id_of,
)
from payrelay.api.http.outgoing import PlainAnswer, StreamedPage, send_pieces
from payrelay.api.http.visit import Visit
from payrelay.api.metrics.counters import METHODS, OTHER_METHOD
from payrelay.core.console.exchange import ConsoleAnswer, ConsoleRequest
from payrelay.errors import MEANINGS, Refusal

ConsolePages = Callable[[ConsoleRequest], Awaitable[ConsoleAnswer]]
"""Answers a request to the console; raises nothing."""

_PLAIN: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"server", b"payrelay"),
)


async def console_answer(
    pages: ConsolePages, scope: Scope, receive: Receive, body_timeout: BodyTimeout, *, client: str, request_id: str
) -> ConsoleAnswer:
    """Reads a request whole, and has the console answer it."""
    headers = Headers(scope["headers"])
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    try:
        body = await read_body(receive, headers, body_timeout) if headers.has_body() else b""
    except Refusal as refusal:
        status, text = MEANINGS[refusal.code].http_status, refusal.msg.encode()
        return ConsoleAnswer(status=status, headers=(*_PLAIN, (b"connection", b"close")), body=text, route="/console")
    request = ConsoleRequest(
        method=scope["method"],
        path=path,
        query=scope["query_string"],
        headers=dict(scope["headers"]),
        body=body,
        client=client,
        request_id=request_id,
    )
    return await pages(request)


class ConsoleDoor:
    """Answers the requests for the console on the API's address."""

    def __init__(self, pages: ConsolePages) -> None:
        self._pages = pages
        self._body_timeout = BodyTimeout()

    @classmethod
    def on(cls, pages: ConsolePages | None, own_address: object) -> "ConsoleDoor | None":
        """Makes one, unless the console is off, or has an address of its own."""
        return None if pages is None or own_address is not None else cls(pages)

    async def answered(self, visit: Visit) -> PlainAnswer:
        """Answers a request, and notes its route for the log."""
        record = visit.log_record
        answer = await console_answer(
            self._pages,
            visit.scope,
            visit.receive,
            self._body_timeout,
            client=record.client,
            request_id=record.request_id,
        )
        record.route = answer.route
        if answer.stream is not None:
            return StreamedPage(
                http_status=answer.status, body=answer.body, raw_headers=answer.headers, pieces=answer.stream
            )
        return PlainAnswer(http_status=answer.status, body=answer.body, raw_headers=answer.headers)


class ConsoleAddress:
    """The ASGI callable of the console's own address, with a line of the log for each request."""

    def __init__(self, pages: ConsolePages, trusted_proxies: tuple[Network, ...], log: FilteringBoundLogger) -> None:
        self._pages = pages
        self._body_timeout = BodyTimeout()
        self._trusted = Networks(trusted_proxies)
        self._log = log

    @classmethod
    def of(
        cls, pages: ConsolePages | None, trusted_proxies: tuple[Network, ...], log: FilteringBoundLogger
    ) -> "ConsoleAddress | None":
        """Makes one, unless the console is off."""
        return None if pages is None else cls(pages, trusted_proxies, log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            raise NotImplementedError(f"only HTTP is supported, not {scope['type']}")
        began_s = perf_counter()
        headers = Headers(scope["headers"])
        request_id = request_id_of(headers)
        client = client_address(peer_of(scope), headers, self._trusted)
        answer = await console_answer(
            self._pages, scope, receive, self._body_timeout, client=client, request_id=request_id
        )
        self._log.info(
            "console_request",
            request_id=request_id,
            method=scope["method"] if scope["method"] in METHODS else OTHER_METHOD,
            route=answer.route,
            status=answer.status,
            client=client,
            duration_ms=round((perf_counter() - began_s) * 1000, 3),
        )
        sent = [(b"x-request-id", request_id.encode()), *answer.headers]
        if answer.stream is not None:
            await send_pieces(send, receive, answer.status, sent, answer.stream)
            return
        sent.append((b"content-length", b"%d" % len(answer.body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": sent})
        await send({"type": "http.response.body", "body": answer.body})
