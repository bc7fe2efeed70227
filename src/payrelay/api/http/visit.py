"""A request on its way through the API, with its log fields and the headers of its answer."""

from typing import Final

import msgspec

from payrelay.api.connections.connection import Connection
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.connections.shares import Share
from payrelay.api.http.incoming_request import Headers, Networks, Receive, Scope, client_address, peer_of, request_id_of
from payrelay.api.http.request_log import RequestLogRecord
from payrelay.api.metrics.counters import METHODS, OTHER_METHOD
from payrelay.core.access.credential import Scope as Permission

UNMATCHED: Final = "unmatched"
"""The route of requests that match none, in the log and the metrics."""


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
    scope_needed: Permission | None = None

    def own_headers(self) -> list[tuple[bytes, bytes]]:
        """Gives the headers that every answer to this request has."""
        return [(b"x-request-id", self.log_record.request_id.encode()), *self.quota_headers, *self.page_headers]


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
