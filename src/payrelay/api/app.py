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
from payrelay.api.context import ApiContext
from payrelay.api.http.cross_origin import Browsers
from payrelay.api.http.failures import cut_short, safely_answered
from payrelay.api.http.incoming_request import Networks, Receive, Scope, Send
from payrelay.api.http.outgoing import PlainAnswer, note_answer, send_answer
from payrelay.api.http.streams import StreamedAnswer, send_stream
from payrelay.api.http.visit import Visit, visit_of
from payrelay.api.public.open_pages import OpenPages
from payrelay.core.answers import Answer

API_SEGMENT: Final = b"api"
"""The segment that follows the name of an account."""


class Api:
    """The ASGI callable that the server runs."""

    def __init__(self, context: ApiContext) -> None:
        self._relay = context.relay
        self._log = context.log
        self._metrics = context.metrics
        self._trusted = Networks(context.trusted_proxies)
        self._browsers = Browsers(context.browser_origins)
        self._admission = CallerAdmission(
            context.credentials, context.identity_provider, context.relay, context.metrics
        )
        self._routes = AccountRoutes(context.routes, context.relay, self._admission, context.body_timeout_s)
        self._pages = OpenPages(context.relay, context.pages(), context.body_timeout_s, context.shops)
        self._under_way: set[asyncio.Task[object] | None] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            raise NotImplementedError(f"only HTTP is supported, not {scope['type']}")
        started_s = perf_counter()
        visit = visit_of(scope, receive, self._trusted)
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
            self._record(visit, answer, perf_counter() - started_s)
            may_go_on = partial(self._admission.is_still_admitted, visit)
            await send_stream(send, visit.receive, answer, visit.own_headers(), may_go_on=may_go_on)
            return
        try:
            await send_answer(send, visit, answer)
        finally:
            self._record(visit, answer, perf_counter() - started_s)

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

    async def _answered(self, visit: Visit) -> Answer | PlainAnswer:
        scope = visit.scope
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        segments = raw_path.split(b"/")
        if segments[2:3] != [API_SEGMENT]:
            return await safely_answered(visit, self._pages.answered(visit, raw_path, segments), self._log)
        visit.page_headers = self._browsers.headers_for(visit.headers)
        preflight_headers = self._browsers.preflight(scope["method"], visit.headers)
        if preflight_headers is not None:
            return PlainAnswer(http_status=204, body=b"", raw_headers=preflight_headers)
        return await safely_answered(visit, self._routes.answered(visit, segments), self._log)

    def _record(self, visit: Visit, answer: Answer | PlainAnswer, duration_s: float) -> None:
        log_record = visit.log_record
        note_answer(log_record, answer, duration_s)
        self._metrics.seen(
            log_record.route, log_record.method, log_record.status, duration_s, is_replayed=log_record.is_replayed
        )
        self._log.info("request", record=log_record)
