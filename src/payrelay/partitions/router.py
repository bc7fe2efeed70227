"""The router as an ASGI callable: a request comes in, goes to the partition of its account, and the answer goes out.

Rules:

1. A request goes on when its body is there as a whole, so that nothing is sent of one that breaks off.
2. An answer goes out as it comes in, piece by piece.
3. The router checks no credential and stores nothing: the partition does.
4. A client that leaves ends the connection to the partition. What the partition has begun, it ends by itself.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from time import monotonic
from typing import Final

import aiohttp
import msgspec
from structlog.typing import FilteringBoundLogger

from payrelay.api.address import ServedAddress
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.http.incoming_request import (
    BodyTimeout,
    Networks,
    Receive,
    Scope,
    Send,
    disconnected,
    peer_of,
    read_body,
)
from payrelay.api.http.sampled_lines import LineKind, RequestLines
from payrelay.api.http.visit import Visit, visit_of
from payrelay.api.metrics.health import LIVE, STOPPING
from payrelay.core.answers import Answer, Trace, failed, of_refusal
from payrelay.errors import Code, Refusal
from payrelay.partitions.metrics import RouterMetrics, RoutingOutcome
from payrelay.partitions.table import Partition, PartitionTable
from payrelay.partitions.upstream import READS, AnswerLostError, UnreachableError, Upstream, passed_on

OWN: Final = frozenset({"x-forwarded-for", "x-forwarded-proto", "x-request-id", "content-length"})
"""Headers that the router writes anew."""
_READY: Final = msgspec.json.encode({"status": "ready"})
_JSON: Final = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), (b"server", b"payrelay")]


class _Request(msgspec.Struct, frozen=True, kw_only=True):
    """A whole request, with the partition that it goes to."""

    partition: Partition
    visit: Visit
    body: bytes
    trace: Trace

    def has_shown_credential(self, status: int) -> bool:
        """True where an answer with this status proves that the request had a valid credential."""
        scope, headers = self.visit.scope, self.visit.headers
        is_checked = _target(scope).split("/")[2:3] == ["api"] and scope["method"] != "OPTIONS"
        return is_checked and status < HTTPStatus.BAD_REQUEST and headers.get(b"authorization") is not None


class PartitionRouter(ServedAddress):
    """The ASGI callable.

    Args:
        table: the partitions by their accounts.
        upstream: the connections to them.
        metrics: counts what becomes of requests.
        connections: those of the callers.
        log: gets a line for each request without a whole answer, in part.
        trusted: the proxies whose X-Forwarded-For counts.
        is_stopping: tells whether the router is about to stop.
    """

    def __init__(
        self,
        table: PartitionTable,
        upstream: Upstream,
        metrics: RouterMetrics,
        connections: OpenConnections,
        log: FilteringBoundLogger,
        *,
        trusted: Networks,
        is_stopping: Callable[[], bool],
    ) -> None:
        super().__init__(connections, RequestLines(log, metrics.connections_closed))
        self._table = table
        self._body_timeout = BodyTimeout()
        self._upstream = upstream
        self._metrics = metrics
        self._log = log
        self._trusted = trusted
        self._is_stopping = is_stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            raise NotImplementedError(f"only HTTP is supported, not {scope['type']}")
        visit = visit_of(scope, receive, self._trusted, self.connections)
        try:
            await self._answer(visit, send)
        finally:
            self.connections.end(visit.connection, 0, ())

    async def _answer(self, visit: Visit, send: Send) -> None:
        scope = visit.scope
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        if raw_path == b"/health/live":
            await _send(send, 200, LIVE)
        elif raw_path == b"/health/ready":
            # A partition that is away must not take the router away from all others.
            await (_send(send, 503, STOPPING) if self._is_stopping() else _send(send, 200, _READY))
        else:
            await self._routed(visit, raw_path, send)

    async def _routed(self, visit: Visit, raw_path: bytes, send: Send) -> None:
        trace = Trace(request_id=visit.log_record.request_id)
        partition = self._table.partition_of(raw_path)
        if partition is None:
            self._metrics.unknown()
            await _send_answer(send, failed(Code.NOT_FOUND, "no partition has an account of this name", trace), trace)
            return
        try:
            body = await read_body(visit.receive, visit.headers, self._body_timeout)
        except Refusal as refusal:
            await _send_answer(send, of_refusal(refusal, trace.request_id), trace)
            return
        request = _Request(partition=partition, visit=visit, body=body, trace=trace)
        passing = asyncio.ensure_future(self._passed(request, send))
        leaving = asyncio.ensure_future(disconnected(visit.receive))
        try:
            await asyncio.wait({passing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not passing.done():
                self._metrics.ended(partition.name, RoutingOutcome.LEFT)
                passing.cancel()
            await asyncio.gather(passing, return_exceptions=not passing.done())
        finally:
            leaving.cancel()
            passing.cancel()

    async def _passed(self, request: _Request, send: Send) -> None:
        began_s = monotonic()
        visit, partition, trace = request.visit, request.partition, request.trace
        scope, client = visit.scope, visit.log_record.client
        method = scope["method"]
        is_answering = False
        try:
            async with self._upstream.answered(
                partition, method, _target(scope), self._forwarded(request), request.body
            ) as response:
                if request.has_shown_credential(response.status):
                    self.connections.show_credential(visit.connection, f"{client} with a credential")
                self._metrics.began_answer(partition.name, monotonic() - began_s)
                is_answering = True
                await _relayed(response, send)
        except UnreachableError as error:
            self._note("partition_unreachable", request, str(error))
            self._metrics.ended(partition.name, RoutingOutcome.UNREACHABLE)
            msg = f"partition {partition.name} can't be reached; nothing was sent to it"
            await _send_answer(send, failed(Code.UNAVAILABLE, msg, trace), trace)
        except AnswerLostError as error:
            self._note("answer_lost", request, str(error))
            self._metrics.ended(partition.name, RoutingOutcome.LOST)
            await _send_answer(send, _lost(partition, method, trace), trace)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if not is_answering:
                raise
            # The client sees an answer without its end, as it would from the partition itself.
            self._note("answer_cut", request, f"{type(error).__qualname__}: {error}")
            self._metrics.ended(partition.name, RoutingOutcome.CUT)
            raise
        else:
            self._metrics.ended(partition.name, RoutingOutcome.ANSWERED)

    def _note(self, event: str, request: _Request, reason: str) -> None:
        """Logs a request without a whole answer, unless there are too many of its kind."""
        record, partition = request.visit.log_record, request.partition.name
        if self.lines.takes(LineKind(event, record.client, route=partition)):
            self._log.error(
                event, request_id=record.request_id, partition=partition, method=record.method, reason=reason
            )

    def _forwarded(self, request: _Request) -> list[tuple[str, str]]:
        """Gives the headers for the partition: the client's, and in place of the router's own what is true."""
        scope, headers = request.visit.scope, request.visit.headers
        given = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        pairs = passed_on(given, without=OWN)
        pairs.append(("X-Request-Id", request.trace.request_id))
        pairs.append(("X-Forwarded-For", request.visit.log_record.client))
        proto = headers.get(b"x-forwarded-proto")
        if proto is not None and self._trusted.has(peer_of(scope)):
            pairs.append(("X-Forwarded-Proto", proto.decode("latin-1")))
        if request.body or scope["method"] not in READS:
            pairs.append(("Content-Length", str(len(request.body))))
        return pairs


def _target(scope: Scope) -> str:
    """Gives the path and the query as they came, byte for byte."""
    raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string") or b""
    return (raw_path + (b"?" + query if query else b"")).decode("latin-1")


async def _relayed(response: aiohttp.ClientResponse, send: Send) -> None:
    """Sends an answer on, piece by piece."""
    given = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers]
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in passed_on(given)]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    async for piece in response.content.iter_any():
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _lost(partition: Partition, method: str, trace: Trace) -> Answer:
    """Says what is known: a read changed nothing, and of anything else it isn't known whether it was done."""
    if method in READS:
        return failed(Code.UNAVAILABLE, f"the answer of partition {partition.name} was lost; read again", trace)
    msg = (
        f"the answer of partition {partition.name} was lost, and whether it did what was asked is not known;"
        " repeat the same request with the same Idempotency-Key to learn it"
    )
    return failed(Code.INTERNAL, msg, trace)


async def _send_answer(send: Send, answer: Answer, trace: Trace) -> None:
    more = [(b"x-request-id", trace.request_id.encode())]
    if answer.retry_after_s is not None:
        more.append((b"retry-after", b"%d" % answer.retry_after_s))
    more += [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers]
    await _send(send, answer.http_status, answer.body, *more)


async def _send(send: Send, status: int, body: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [*_JSON, (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
