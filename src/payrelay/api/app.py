"""The API as an ASGI callable: a request comes in, an answer goes out, and the log gets one line.

Rules:

1. Nothing under ``/{account}/api/`` answers without a credential (``account_routes``).
2. ``http.failures`` is the one place that makes answers of errors.
3. The log gets chosen fields; a header, a body or an address never gets there whole.
4. A client that disconnects cancels nothing: an effect runs in a task of its own (``flows.payments.carry_out``).
"""

from typing import Final

from payrelay.api.account_routes import AccountRoutes
from payrelay.api.address import LoggedAddress
from payrelay.api.auth.admission import CallerAdmission
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.context import ApiContext
from payrelay.api.http.cross_origin import Browsers
from payrelay.api.http.failures import safely_answered
from payrelay.api.http.incoming_request import Networks
from payrelay.api.http.outgoing import AnyAnswer, PlainAnswer
from payrelay.api.http.sampled_lines import RequestLines
from payrelay.api.http.visit import Visit
from payrelay.api.public.open_pages import OpenPages

API_SEGMENT: Final = b"api"
"""The segment that follows the name of an account."""
CONSOLE_SEGMENT: Final = b"console"
"""The first segment of the console's paths, where it is served here."""


class Api(LoggedAddress):
    """The ASGI callable that the server runs on the API's address."""

    def __init__(self, context: ApiContext) -> None:
        trusted = Networks(context.trusted_proxies)
        super().__init__(
            OpenConnections(context.limits, context.relay.clock, trusted.has),
            RequestLines(context.log, context.metrics.connections_closed, context.metrics),
            trusted=trusted,
            spans=context.relay.hooks.spans,
        )
        self._relay = context.relay
        self._log = context.log
        self._browsers = Browsers(context.browser_origins)
        self._admission = CallerAdmission(
            context.credentials, context.identity_provider, context.relay, context.metrics, self.connections
        )
        self._routes = AccountRoutes(context.routes, context.relay, self._admission, context.body_timeout_s)
        self._pages = OpenPages(context.relay, context.pages(), context.body_timeout_s, context.shops)
        self.metrics = context.metrics_page()
        self._console = context.console

    def answer_held_responses(self) -> None:
        """Gives all held answers as they stand, ends the streams, and holds no answer from now on."""
        self._relay.held_responses.close()
        self._relay.dispatch.followers.close()

    def leave(self) -> None:
        """Answers the requests under way with what is known of them, and begins nothing more: the program ends now."""
        self._relay.background.leave()
        super().leave()

    async def _may_go_on(self, visit: Visit) -> bool:
        return await self._admission.is_still_admitted(visit)

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
