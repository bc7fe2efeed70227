"""The API as an ASGI callable: a request comes in, an answer goes out, and the log gets one line.

Rules:

1. Nothing under ``/{account}/api/`` answers without a credential (``account_routes``).
2. ``http.failures`` is the one place that makes answers of errors.
3. The log gets chosen fields; a header, a body or an address never gets there whole.
4. A client that disconnects cancels nothing: an effect runs in a task of its own (``flows.payments.carry_out``).
"""

import asyncio
from functools import partial
from time import perf_counter
from typing import Final

from payrelay.api.account_routes import AccountRoutes
from payrelay.api.auth.admission import CallerAdmission
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.context import ApiContext
from payrelay.api.http.cross_origin import Browsers
from payrelay.api.http.failures import cut_short, safely_answered
from payrelay.api.http.incoming_request import Networks, Receive, Scope, Send
from payrelay.api.http.outgoing import AnyAnswer, PlainAnswer, StreamedPage, send_answer, send_pieces
from payrelay.api.http.sampled_lines import RequestLines
from payrelay.api.http.streams import StreamedAnswer, send_stream
from payrelay.api.http.visit import Visit, answer_in_span, visit_of
from payrelay.api.public.open_pages import OpenPages

API_SEGMENT: Final = b"api"
"""The segment that follows the name of an account."""
CONSOLE_SEGMENT: Final = b"console"
"""The first segment of the console's paths, where it is served here."""
HEADERS_BYTES: Final = 512
"""About the size of an answer's headers."""


class Api:
    """The ASGI callable that the server runs."""

    def __init__(self, context: ApiContext) -> None:
        self._relay = context.relay
        self._log = context.log
        self._spans = context.relay.hooks.spans
        self.lines = RequestLines(context.log, context.metrics)
        self._trusted = Networks(context.trusted_proxies)
        self._browsers = Browsers(context.browser_origins)
        self.connections = OpenConnections(context.limits, context.relay.clock, self._trusted.has)
        self._admission = CallerAdmission(
            context.credentials, context.identity_provider, context.relay, context.metrics, self.connections
        )
        self._routes = AccountRoutes(context.routes, context.relay, self._admission, context.body_timeout_s)
        self._pages = OpenPages(context.relay, context.pages(), context.body_timeout_s, context.shops)
        self.metrics = context.metrics_page()
        self._console = context.console
        self._under_way: set[asyncio.Task[object] | None] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            raise NotImplementedError(f"only HTTP is supported, not {scope['type']}")
        started_s = perf_counter()
        visit = visit_of(scope, receive, self._trusted, self.connections)
        size = 0
        try:
            if self._spans is None:
                size = await self._answer(visit, send, started_s)
            else:
                size = await answer_in_span(self._spans, visit, self._answer(visit, send, started_s))
        finally:
            self.connections.end(visit.connection, size, visit.admitted)

    async def _answer(self, visit: Visit, send: Send, started_s: float) -> int:
        """Answers a request, and gives the size of the answer in bytes; that of a stream counts as 0."""
        task = asyncio.current_task()
        self._under_way.add(task)
        try:
            answer = await self._answered(visit)
        except asyncio.CancelledError:
            if not self._relay.background.is_leaving:
                raise
            answer = cut_short(visit)
        finally:
            self._under_way.discard(task)
        if isinstance(answer, StreamedAnswer):
            self.lines.answered(visit, answer, perf_counter() - started_s)
            may_go_on = partial(self._admission.is_still_admitted, visit)
            await send_stream(send, visit.receive, answer, visit.own_headers(), may_go_on=may_go_on)
            return 0
        if isinstance(answer, StreamedPage):
            self.lines.answered(visit, answer, perf_counter() - started_s)
            headers = [*visit.own_headers(), *answer.raw_headers]
            await send_pieces(send, visit.receive, answer.http_status, headers, answer.pieces)
            return 0
        try:
            await send_answer(send, visit, answer)
        finally:
            self.lines.answered(visit, answer, perf_counter() - started_s)
        return HEADERS_BYTES + len(answer.body)

    def answer_held_responses(self) -> None:
        """Gives all held answers as they stand, ends the streams, and holds no answer from now on.

        Called when the program is about to end.
        """
        self._relay.held_responses.close()
        self._relay.dispatch.followers.close()

    def leave(self) -> None:
        """Answers the requests under way with what is known of them, and begins nothing more: the program ends now."""
        self._relay.background.leave()
        for task in self._under_way:
            if task is not None:
                task.cancel()

    async def _answered(self, visit: Visit) -> AnyAnswer:
        scope = visit.scope
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        segments = raw_path.split(b"/")
        if self._console is not None and segments[1:2] == [CONSOLE_SEGMENT]:
            return await safely_answered(visit, self._console.answered(visit), self._log)
        if segments[2:3] != [API_SEGMENT]:
            return await safely_answered(visit, self._pages.answered(visit, raw_path, segments), self._log)
        visit.page_headers = self._browsers.headers_for(visit.headers)
        preflight_headers = self._browsers.preflight(scope["method"], visit.headers)
        if preflight_headers is not None:
            return PlainAnswer(http_status=204, body=b"", raw_headers=preflight_headers)
        return await safely_answered(visit, self._routes.answered(visit, segments), self._log)
