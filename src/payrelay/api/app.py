"""The API as an ASGI callable: known caller, checked request, one story, one answer, one line in the log.

Rules:

1. Nothing under ``/{account}/api/`` answers without a credential, not even that there is nothing.
2. Errors are rendered at two places: what is expected in ``_answered``, everything else in ``_safely_answered``.
3. What is logged is chosen here field by field; a header, a body or an address never gets there whole.
4. A client that goes away cancels nothing: an effect runs in a task of its own (``flows.payments.carry_out``).
"""

import asyncio
from functools import partial
from time import perf_counter
from typing import Final

import msgspec

from payrelay.api.auth.authentication import AuthenticationFailure, Doorkeeper, TokenReaders, Unauthenticated
from payrelay.api.auth.client_tokens import TokenDoor, TokenSources
from payrelay.api.auth.failed_credentials import FailedCredentials
from payrelay.api.auth.quota import Quota
from payrelay.api.context import ApiContext
from payrelay.api.http.cross_origin import Browsers
from payrelay.api.http.freshness import insists_on_new
from payrelay.api.http.incoming import (
    Headers,
    Networks,
    Receive,
    Scope,
    Send,
    client_address,
    read_body,
    request_id_of,
    require_json,
)
from payrelay.api.http.preferences import preferred_wait_s
from payrelay.api.http.queries import decoded, parse_query
from payrelay.api.http.request_log import RequestLine, describe
from payrelay.api.http.streams import Streamed, send_stream
from payrelay.api.metrics.counters import METHODS, OTHER_METHOD
from payrelay.api.metrics.exposition import Exposition
from payrelay.api.openapi.document import describe_api
from payrelay.api.pages.public import Caller, Public, PublicPath
from payrelay.api.pages.site import Pages, PlainAnswer
from payrelay.api.routes.bodies import EmptyBody
from payrelay.api.routes.handlers import Asked
from payrelay.api.routes.parameters import query_errors
from payrelay.api.routes.policies import narrowed, require_open
from payrelay.api.routes.table import API_SEGMENT, Matcher, Route
from payrelay.core.access.credential import Credential, require
from payrelay.core.access.credential import Scope as Permission
from payrelay.core.answers import OPERATION_HEADER, REPLAYED, Answer, Trace, failed, of_refusal
from payrelay.core.payments.idempotency import parse_key
from payrelay.errors import Code, Refusal, StoreError, StoreUnavailable, wrong_fields
from payrelay.flows.payments.await_outcome import Patience, answer_when_known
from payrelay.flows.payments.carry_out import ENDING_SENTENCE
from payrelay.flows.relay import Request

UNMATCHED: Final = "unmatched"
"""The route of what no route fits, in the log and the metrics."""

_FIXED: Final = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"server", b"payrelay"),
)
_PAGE_METHODS: Final = ("GET", "HEAD")


class Visit(msgspec.Struct, gc=False):
    """A request on its way through the door, and what is to be told of it afterwards."""

    scope: Scope
    receive: Receive
    headers: Headers
    line: RequestLine
    quota_headers: tuple[tuple[bytes, bytes], ...] = ()
    page_headers: tuple[tuple[bytes, bytes], ...] = ()
    scope_needed: Permission | None = None


class Api:
    """The callable that a server is given."""

    def __init__(self, context: ApiContext) -> None:
        self._relay = context.relay
        self._clock = context.clock
        self._accounts = context.relay.accounts
        self._log = context.log
        self._metrics = context.metrics
        self._body_timeout_s = context.body_timeout_s
        self._trusted = Networks(context.trusted_proxies)
        self._matcher = Matcher(context.routes)
        self._doorkeeper = Doorkeeper(context.credentials, context.clock, _doors(context))
        self._quota = Quota(context.clock)
        self._failed_credentials = FailedCredentials(context.clock)
        self._pages = Pages(
            database=context.database,
            exposition=Exposition(context.metrics, context.counts, context.relay),
            metrics_networks=context.metrics_networks,
            describe=partial(describe_api, context.routes, context.environments),
        )
        self._public = Public(context.relay.accounts)
        self._browsers = Browsers(context.browser_origins)
        self._api_hint = f"/{next(iter(self._accounts), 'gateway')}/api/"
        self._under_way: set[asyncio.Task[object] | None] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            raise NotImplementedError(f"only HTTP is spoken here, not {scope['type']}")
        started_s = perf_counter()
        visit = self._arrived(scope, receive)
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        segments = raw_path.split(b"/")
        task = asyncio.current_task()
        self._under_way.add(task)
        try:
            if segments[2:3] == [API_SEGMENT]:
                visit.page_headers = self._browsers.headers_for(visit.headers)
                allowing = self._browsers.preflight(scope["method"], visit.headers)
                answer: Answer | PlainAnswer = (
                    await self._safely_answered(visit, segments)
                    if allowing is None
                    else PlainAnswer(http_status=204, body=b"", raw_headers=allowing)
                )
            else:
                answer = await self._page(visit, raw_path, segments)
        except asyncio.CancelledError:
            if not self._relay.background.is_leaving:
                raise
            answer = of_refusal(Refusal(Code.UNAVAILABLE, ENDING_SENTENCE), visit.line.request_id)
        finally:
            self._under_way.discard(task)
        if isinstance(answer, Streamed):
            self._record(visit.line, answer, perf_counter() - started_s)
            may_go_on = partial(self._is_still_let_in, visit)
            await send_stream(send, visit.receive, answer, _own_headers(visit), may_go_on=may_go_on)
            return
        try:
            await _send(send, visit, answer)
        finally:
            self._record(visit.line, answer, perf_counter() - started_s)

    def hold_no_longer(self) -> None:
        """Gives the answers that are held back, as they are, and holds none from now on: the program is to end.

        Streams end too.
        """
        self._relay.waiters.close()
        self._relay.dispatch.followers.close()

    def leave(self) -> None:
        """Answers what is still under way with what is known of it: the program ends now, and begins nothing more."""
        self._relay.background.leave()
        for task in self._under_way:
            if task is not None:
                task.cancel()

    def _arrived(self, scope: Scope, receive: Receive) -> Visit:
        headers = Headers(scope["headers"])
        method = scope["method"]
        line = RequestLine(
            request_id=request_id_of(headers),
            method=method if method in METHODS else OTHER_METHOD,
            client=client_address(_peer(scope), headers, self._trusted),
            route=UNMATCHED,
        )
        return Visit(scope, receive, headers, line)

    async def _safely_answered(self, visit: Visit, segments: list[bytes]) -> Answer:
        try:
            return await self._answered(visit, segments)
        except Exception as error:  # noqa: BLE001 - the outermost place: whatever it was, the client gets an answer
            return self._fault(visit.line, error)

    async def _answered(self, visit: Visit, segments: list[bytes]) -> Answer:
        try:
            credential = await self._admitted(visit)
            visit.line.principal, visit.line.credential_id = credential.principal, credential.id
            visit.quota_headers = self._quota.take(credential)
            route, account, segment = self._routed(visit, segments)
            visit.scope_needed = route.scope
            require(credential, route.scope, account)
            if credential.bound is not None:
                require_open(route.bound)
            asked = Asked(
                request=Request(
                    account=account,
                    credential=credential,
                    request_id=visit.line.request_id,
                    idempotency_key=_idempotency_key(visit.headers) if route.is_effect or route.takes_key else None,
                    is_insisting=route.is_read and insists_on_new(visit.headers),
                ),
                id=segment,
                query=_query(route, visit.scope["query_string"]),
                patience=self._patience(visit) if route.can_wait else None,
                body=b"" if route.body is None else await self._body(route, visit),
                last_event_id=_last_event_id(visit.headers) if route.is_stream else None,
            )
            asked = await narrowed(route.bound, self._relay, asked)
            if asked.patience is None:
                return await route.handler(self._relay, asked)
            if not route.is_effect:
                answer = await route.handler(self._relay, asked)
                # What was read after a wait is for those who may read it then.
                require(await self._admitted(visit), route.scope, account)
                return answer
            ask = partial(route.handler, self._relay, asked)
            return await answer_when_known(self._relay, asked.request, asked.patience, ask)
        except Refusal as refusal:
            return of_refusal(refusal, visit.line.request_id)
        except StoreUnavailable:
            trace = Trace(request_id=visit.line.request_id)
            return failed(Code.UNAVAILABLE, "the store can't be used now; nothing was done", trace)

    async def _admitted(self, visit: Visit) -> Credential:
        """Gives the caller's credential; raises Refusal (unauthenticated, rate_limited for too many wrong ones)."""
        try:
            return await self._doorkeeper.admit(visit.headers)
        except Unauthenticated as refused:
            self._metrics.credential_failed(refused.failure)
            if refused.reason is not None:
                self._metrics.token_refused(refused.reason)
            if refused.failure is AuthenticationFailure.WRONG:
                self._failed_credentials.note(visit.line.client)
            raise

    async def _is_still_let_in(self, visit: Visit) -> bool:
        """Tells whether the credential of a request still opens what it asked for; it does while nobody can tell."""
        try:
            credential = await self._doorkeeper.admit(visit.headers)
            if visit.scope_needed is not None and visit.line.account is not None:
                require(credential, visit.scope_needed, visit.line.account)
        except StoreError:
            return True
        except Refusal as refusal:
            return refusal.code is Code.UNAVAILABLE
        return True

    def _patience(self, visit: Visit) -> Patience | None:
        wait_s = preferred_wait_s(visit.headers)
        if not wait_s:
            return None
        return Patience(
            wait_s=wait_s,
            arrived_ms=self._clock.now_ms(),
            until_s=self._clock.boot_s() + wait_s,
            gone=partial(_gone, visit.receive),
        )

    def _routed(self, visit: Visit, segments: list[bytes]) -> tuple[Route, str, str]:
        """Finds the route, the account and the segment that varies; raises Refusal (not_found, method_not_allowed)."""
        account = decoded(segments[1])
        found = self._matcher.find(segments[3:])
        if found is None or account not in self._accounts:
            raise Refusal(Code.NOT_FOUND, "there is nothing at this address; /docs tells what there is")
        visit.line.account = account
        route = found.methods.get(visit.scope["method"])
        if route is None:
            visit.line.route = next(iter(found.methods.values())).template
            msg = f"this address takes {found.allow} only"
            raise Refusal(Code.METHOD_NOT_ALLOWED, msg, headers=(("Allow", found.allow),))
        visit.line.route = route.template
        return route, account, found.segment

    async def _body(self, route: Route, visit: Visit) -> bytes:
        headers, may_lack = visit.headers, route.body is EmptyBody
        if not may_lack:
            require_json(headers)
        elif not headers.has_body():
            return b""
        body = await read_body(visit.receive, headers, self._body_timeout_s)
        if may_lack and body:
            require_json(headers)
        return body

    async def _public_answer(self, visit: Visit, door: PublicPath) -> Answer | PlainAnswer:
        """Answers for what stands under an account and needs no credential; raises Refusal."""
        visit.line.account = door.account
        visit.line.route = next(iter(door.routes.values())).template
        route = door.route(visit.scope["method"])
        visit.line.route = route.template
        caller = Caller(
            account=door.account,
            segments=door.segments,
            headers=visit.headers,
            receive=visit.receive,
            query_string=visit.scope["query_string"],
            request_id=visit.line.request_id,
            body_timeout_s=self._body_timeout_s,
        )
        return await route.handler(self._relay, caller)

    async def _page(self, visit: Visit, raw_path: bytes, segments: list[bytes]) -> Answer | PlainAnswer:
        """Answers for what stands outside the accounts (health, metrics, docs), and for their public addresses."""
        line = visit.line
        try:
            door = self._public.find(segments)
            if door is not None:
                return await self._public_answer(visit, door)
            page = self._pages.find(raw_path)
            if page is None:
                msg = f"there is nothing at this address; the API begins at {self._api_hint}, its docs at /docs"
                return of_refusal(Refusal(Code.NOT_FOUND, msg), line.request_id)
            line.route = raw_path.decode()
            if visit.scope["method"] not in _PAGE_METHODS:
                allow = ", ".join(_PAGE_METHODS)
                refusal = Refusal(
                    Code.METHOD_NOT_ALLOWED, f"this address takes {allow} only", headers=(("Allow", allow),)
                )
                return of_refusal(refusal, line.request_id)
            # Where somebody speaks for a client that can't be told from its word, the client is not the speaker.
            is_known = not visit.headers.is_forwarded() or line.client != _peer(visit.scope)
            return await page(line.client, is_known=is_known)
        except Refusal as refusal:
            return of_refusal(refusal, line.request_id)
        except StoreUnavailable:
            trace = Trace(request_id=line.request_id)
            return failed(Code.UNAVAILABLE, "the store can't be used now; nothing was done", trace)
        except Exception as error:  # noqa: BLE001 - the outermost place for pages
            return self._fault(line, error)

    def _fault(self, line: RequestLine, error: Exception) -> Answer:
        self._log.error("request_failed", request_id=line.request_id, route=line.route, errors=describe(error))
        msg = "something went wrong here; the log has it under the request id"
        return failed(Code.INTERNAL, msg, Trace(request_id=line.request_id))

    def _record(self, line: RequestLine, answer: Answer | PlainAnswer, duration_s: float) -> None:
        for name, value in answer.headers:
            if name == OPERATION_HEADER:
                line.operation_id = value
            elif (name, value) == REPLAYED:
                line.is_replayed = True
        line.status, line.code = answer.http_status, answer.code
        line.duration_ms = round(duration_s * 1000, 3)
        self._metrics.seen(line.route, line.method, line.status, duration_s, is_replayed=line.is_replayed)
        self._log.info("request", line=line)


def _doors(context: ApiContext) -> TokenReaders:
    sources = TokenSources(context.relay.signing_keys, context.relay.client_tokens)
    return TokenReaders(client_tokens=TokenDoor(sources, context.clock), provider=context.provider)


def _idempotency_key(headers: Headers) -> str | None:
    return parse_key([value.decode("latin-1") for value in headers.every(b"idempotency-key")])


def _last_event_id(headers: Headers) -> str | None:
    value = headers.get(b"last-event-id")
    return None if value is None else value.decode("latin-1").strip()


def _query(route: Route, query_string: bytes) -> dict[str, str]:
    if not query_string:
        return {}
    values = parse_query(query_string, frozenset(parameter.name for parameter in route.query))
    errors = query_errors(route.query, values)
    if errors:
        raise wrong_fields(errors)
    return values


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


async def _gone(receive: Receive) -> None:
    """Returns when the client has gone; whatever it still sends before that is not looked at."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _own_headers(visit: Visit) -> list[tuple[bytes, bytes]]:
    """Gives what every answer to this request has."""
    return [(b"x-request-id", visit.line.request_id.encode()), *visit.quota_headers, *visit.page_headers]


async def _send(send: Send, visit: Visit, answer: Answer | PlainAnswer) -> None:
    headers = [(b"content-length", b"%d" % len(answer.body)), *_own_headers(visit)]
    if isinstance(answer, PlainAnswer):
        headers += answer.raw_headers
    else:
        headers += _FIXED
        if answer.retry_after_s is not None:
            headers.append((b"retry-after", b"%d" % answer.retry_after_s))
        if answer.headers:
            headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": answer.http_status, "headers": headers})
    # To HEAD a page's headers are the answer, the length that its body would have among them.
    is_bodiless = visit.scope["method"] == "HEAD" and isinstance(answer, PlainAnswer)
    await send({"type": "http.response.body", "body": b"" if is_bodiless else answer.body})
