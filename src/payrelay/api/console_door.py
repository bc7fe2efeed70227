"""Where the console comes in: at ``/console`` on the API's address, or on an address of its own.

The console is a callable that is passed in, and answers whatever happens. This layer reads the body within the usual
bounds, and knows the client behind trusted proxies.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from payrelay.api.console_exchange import ConsoleAnswer, ConsoleRequest
from payrelay.api.http.incoming_request import BodyTimeout, read_body
from payrelay.api.http.outgoing import PlainAnswer, StreamedPage
from payrelay.api.http.visit import Visit
from payrelay.errors import MEANINGS, Refusal

ConsolePages = Callable[[ConsoleRequest], Awaitable[ConsoleAnswer]]
"""Answers a request to the console; raises nothing."""

_PLAIN: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"server", b"payrelay"),
)


class ConsoleDoor:
    """Answers the requests for the console, each read whole."""

    def __init__(self, pages: ConsolePages) -> None:
        self._pages = pages
        self._body_timeout = BodyTimeout()

    async def answered(self, visit: Visit) -> PlainAnswer:
        """Answers a request, and notes its route for the log."""
        answer = await self._answered(visit)
        visit.log_record.route = answer.route
        if answer.stream is not None:
            return StreamedPage(
                http_status=answer.status, body=answer.body, raw_headers=answer.headers, pieces=answer.stream
            )
        return PlainAnswer(http_status=answer.status, body=answer.body, raw_headers=answer.headers)

    async def _answered(self, visit: Visit) -> ConsoleAnswer:
        scope, headers = visit.scope, visit.headers
        try:
            body = await read_body(visit.receive, headers, self._body_timeout) if headers.has_body() else b""
        except Refusal as refusal:
            status, text = MEANINGS[refusal.code].http_status, refusal.msg.encode()
            return ConsoleAnswer(
                status=status, headers=(*_PLAIN, (b"connection", b"close")), body=text, route="/console"
            )
        request = ConsoleRequest(
            method=scope["method"],
            path=scope.get("raw_path") or scope["path"].encode(),
            query=scope["query_string"],
            headers=dict(scope["headers"]),
            body=body,
            client=visit.log_record.client,
            request_id=visit.log_record.request_id,
        )
        return await self._pages(request)
