"""A request on its way through the API, with its log fields, its span and the headers of its answer."""

from collections.abc import Awaitable
from typing import Final, TypeVar

import msgspec

from payrelay.api.connections.connection import Connection
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.connections.shares import Share
from payrelay.api.http.incoming_request import Headers, Networks, Receive, Scope, client_address, peer_of, request_id_of
from payrelay.api.http.request_log import RequestLogRecord
from payrelay.api.metrics.counters import METHODS, OTHER_METHOD
from payrelay.core.access.credential import Scope as Permission
from payrelay.tracing.spans import Spans

T = TypeVar("T")

UNMATCHED: Final = "unmatched"
"""The route of requests that match none, in the log and the metrics."""
UNTRACED: Final = ("/health/", "/metrics")
"""Asked for every few seconds by machines: spans of these would hide the others."""
SERVER_ERROR: Final = 500


class Visit(msgspec.Struct, gc=False):
    """A request, with its log fields and the headers that every answer to it has."""

    scope: Scope
    receive: Receive
    headers: Headers
    log_record: RequestLogRecord
    connection: Connection
    admitted: tuple[Share, ...] = ()
    """The shares that a valid credential counts in; none where there is no valid one."""
    quota_headers: tuple[tuple[bytes, bytes], ...] = ()
    page_headers: tuple[tuple[bytes, bytes], ...] = ()
    trace_headers: tuple[tuple[bytes, bytes], ...] = ()
    scope_needed: Permission | None = None

    def own_headers(self) -> list[tuple[bytes, bytes]]:
        """Gives the headers that every answer to this request has."""
        request_id = self.log_record.request_id.encode()
        return [(b"x-request-id", request_id), *self.quota_headers, *self.page_headers, *self.trace_headers]


def visit_of(scope: Scope, receive: Receive, trusted: Networks, connections: OpenConnections) -> Visit:
    """Makes the visit of a request, which begins on its connection.

    ``trusted`` are the proxies whose X-Forwarded-For counts.
    """
    headers = Headers(scope["headers"])
    method = scope["method"]
    log_record = RequestLogRecord(
        request_id=request_id_of(headers),
        method=method if method in METHODS else OTHER_METHOD,
        client=client_address(peer_of(scope), headers, trusted),
        route=UNMATCHED,
    )
    host, port = scope.get("client") or ("", 0)  # the server gives the port as a text
    return Visit(scope, receive, headers, log_record, connections.begin((host, int(port)), log_record.client))


async def answer_in_span(spans: Spans, visit: Visit, answering: Awaitable[T]) -> T:
    """Answers a request inside of a span, which has the route, the status and the request id, but no personal data.

    Takes ``traceparent`` and ``tracestate`` from the request, and gives ``traceresponse`` with the answer.
    """
    if visit.scope["path"].startswith(UNTRACED):
        return await answering
    with spans.of_request(_header(visit, b"traceparent"), _header(visit, b"tracestate")) as span:
        visit.trace_headers = ((b"traceresponse", span.traceparent.encode()),)
        try:
            return await answering
        finally:
            record = visit.log_record
            span.note(
                f"{record.method} {record.route}",
                has_failed=record.status >= SERVER_ERROR,
                http__request__method=record.method,
                http__route=record.route,
                http__response__status_code=record.status,
                error__type=record.code,
                payrelay__account=record.account,
                payrelay__operation__id=record.operation_id,
                payrelay__request_id=record.request_id,
            )


def _header(visit: Visit, name: bytes) -> str | None:
    value = visit.headers.get(name)
    return None if value is None or visit.headers.is_doubled(name) else value.decode("latin-1")
