"""Reads a request by its route: query, headers and body."""

import msgspec

from payrelay.api.http.incoming_request import BodyTimeout, Headers, read_body, require_json
from payrelay.api.http.preferences import insists_on_new, wait_preference_of
from payrelay.api.http.visit import Visit
from payrelay.api.requests.parameters import read_query
from payrelay.api.requests.route import EmptyBody, ParsedRequest, Route
from payrelay.clock import Clock
from payrelay.core.access.credential import Credential
from payrelay.core.payments.idempotency import parse_key
from payrelay.flows.relay import Request
from payrelay.gateways.gateway import Gateway


class AddressedRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The address of a request: its route, the account, and the variable segment."""

    route: Route
    gateway: Gateway
    segment: str


class RequestReader:
    """Reads requests as their handlers get them.

    Args:
        clock: tells the time.
        body_timeout_s: how long a body may take to arrive.
    """

    def __init__(self, clock: Clock, body_timeout_s: float) -> None:
        self._clock = clock
        self._body_timeout = BodyTimeout(body_timeout_s)

    async def read(self, visit: Visit, addressed: AddressedRequest, credential: Credential) -> ParsedRequest:
        """Gives the request as its handler gets it; raises Refusal where it can't be read, or a part of it is wrong."""
        route, headers = addressed.route, visit.headers
        return ParsedRequest(
            request=Request(
                gateway=addressed.gateway,
                credential=credential,
                request_id=visit.log_record.request_id,
                idempotency_key=_idempotency_key(headers) if route.is_effect or route.takes_key else None,
                is_insisting=route.is_read and insists_on_new(headers),
            ),
            id=addressed.segment,
            query=read_query(route.query, visit.scope["query_string"]),
            wait_preference=wait_preference_of(headers, visit.receive, self._clock) if route.can_wait else None,
            body=b"" if route.body is None else await self._body(route, visit),
            last_event_id=_last_event_id(headers) if route.is_stream else None,
        )

    async def _body(self, route: Route, visit: Visit) -> bytes:
        headers, is_optional = visit.headers, route.body is EmptyBody
        if not is_optional:
            require_json(headers)
        elif not headers.has_body():
            return b""
        body = await read_body(visit.receive, headers, self._body_timeout)
        if is_optional and body:
            require_json(headers)
        return body


def _idempotency_key(headers: Headers) -> str | None:
    return parse_key([value.decode("latin-1") for value in headers.every(b"idempotency-key")])


def _last_event_id(headers: Headers) -> str | None:
    value = headers.get(b"last-event-id")
    return None if value is None else value.decode("latin-1").strip()
