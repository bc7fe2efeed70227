"""An address that listens: its callers' connections are limited, and each request on it leaves its line in the log.

Everything that the server runs on a socket is a ``ServedAddress``; so no address is without the limits.
"""

import asyncio
from functools import partial
from time import perf_counter
from typing import Final

from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.http.capacity import connections_beside_max, files_max
from payrelay.api.http.failures import cut_short, safely_answered
from payrelay.api.http.incoming_request import Network, Networks, Receive, Scope, Send
from payrelay.api.http.outgoing import AnyAnswer, StreamedPage, send_answer, send_pieces
from payrelay.api.http.sampled_lines import RequestLines
from payrelay.api.http.streams import StreamedAnswer, send_stream
from payrelay.api.http.visit import Visit, answer_in_span, visit_of
from payrelay.api.public.site import FurtherPages
from payrelay.tracing.spans import Spans

HEADERS_BYTES: Final = 512
"""About the size of an answer's headers."""


class ServedAddress:
    """The ASGI callable of an address, with what is known of its connections.

    Args:
        connections: those of this address alone; each request begins and ends on one of them.
        lines: logs what the callers do, in part.
    """

    def __init__(self, connections: OpenConnections, lines: RequestLines) -> None:
        self.connections = connections
        self.lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        raise NotImplementedError

    def answer_held_responses(self) -> None:
        """Gives all held answers as they stand, ends the streams, and holds no answer from now on.

        Called when the program is about to end.
        """

    def leave(self) -> None:
        """Answers the requests under way with what is known of them, and begins nothing more: the program ends now."""


class LoggedAddress(ServedAddress):
    """An address whose requests are answered by ``_answered``.

    Args:
        connections: those of this address.
        lines: the log of the requests.
        trusted: the proxies whose X-Forwarded-For counts.
        spans: records each request; None where tracing is off.
    """

    def __init__(
        self, connections: OpenConnections, lines: RequestLines, *, trusted: Networks, spans: Spans | None = None
    ) -> None:
        super().__init__(connections, lines)
        self._trusted = trusted
        self._spans = spans
        self._under_way: set[asyncio.Task[object] | None] = set()
        self._is_leaving = False

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

    def leave(self) -> None:
        """Answers the requests under way with what is known of them."""
        self._is_leaving = True
        for task in self._under_way:
            if task is not None:
                task.cancel()

    async def _answered(self, visit: Visit) -> AnyAnswer:
        """Gives the answer; raises nothing but a cancellation."""
        raise NotImplementedError

    async def _answer(self, visit: Visit, send: Send, started_s: float) -> int:
        """Answers a request, and gives the size of the answer in bytes; that of a stream counts as 0."""
        task = asyncio.current_task()
        self._under_way.add(task)
        try:
            answer = await self._answered(visit)
        except asyncio.CancelledError:
            if not self._is_leaving:
                raise
            answer = cut_short(visit)
        finally:
            self._under_way.discard(task)
        if isinstance(answer, StreamedAnswer | StreamedPage):
            self.lines.answered(visit, answer, perf_counter() - started_s)
            await self._stream(visit, send, answer)
            return 0
        try:
            await self.connections.room(visit.connection, len(answer.body))
            await send_answer(send, visit, answer)
        finally:
            self.lines.answered(visit, answer, perf_counter() - started_s)
        return HEADERS_BYTES + len(answer.body)

    async def _stream(self, visit: Visit, send: Send, answer: StreamedAnswer | StreamedPage) -> None:
        """Sends what goes on piece by piece."""
        if isinstance(answer, StreamedAnswer):
            may_go_on = partial(self._may_go_on, visit)
            await send_stream(send, visit.receive, answer, visit.own_headers(), may_go_on=may_go_on)
        else:
            headers = [*visit.own_headers(), *answer.raw_headers]
            await send_pieces(send, visit.receive, answer.http_status, headers, answer.pieces)

    async def _may_go_on(self, visit: Visit) -> bool:
        """Tells whether the caller of a stream of events still has its permission."""
        raise NotImplementedError


class AddressBeside(LoggedAddress):
    """An address with some pages alone: the metrics' own, or the console's.

    Args:
        pages: answer the requests.
        beside: the address beside which it is; it has the same limits, with fewer places, and the same log.
        trusted: the proxies whose X-Forwarded-For counts here.
    """

    def __init__(self, pages: FurtherPages, beside: ServedAddress, trusted: tuple[Network, ...] = ()) -> None:
        networks = Networks(trusted)
        connections = beside.connections.beside(connections_beside_max(files_max()), networks.has)
        super().__init__(connections, beside.lines, trusted=networks)
        self._pages = pages

    async def _answered(self, visit: Visit) -> AnyAnswer:
        return await safely_answered(visit, self._pages.answered(visit), self.lines.log)
