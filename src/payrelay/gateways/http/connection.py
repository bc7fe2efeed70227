"""One connection to a gateway, which carries one call at a time.

Rules:

1. A connection on which anything arrives while no call is under way is aborted at once: it would be read as the next
   call's reply. ``is_fit`` looks once more, into the socket itself, before a request is written.
2. A connection is never closed, which would still send what waits in it. It is aborted.
3. After ``write`` the request counts as sent, whatever happens.
"""

import asyncio
import select
import socket
from collections.abc import Callable
from typing import Final, cast

from payrelay.gateways.http.exchange import Loss, LossCause, Reply
from payrelay.gateways.http.reply_reader import ReplyReader

_ENDED: Final = select.POLLRDHUP | select.POLLHUP | select.POLLERR | select.POLLNVAL
_SAID: Final = select.POLLIN | select.POLLPRI


class GatewayConnection(asyncio.Protocol):
    """A connection that stands, or stood.

    Args:
        bytes_max: the longest body of a reply.
        gone: is called once, when the connection can carry no more calls.

    Attributes:
        idle_until_s: until when it may be used again (by the loop's clock), while it waits for a call.
        lost: is done once the socket is closed.
    """

    __slots__ = (
        "_gone",
        "_is_secret",
        "_is_used",
        "_loop",
        "_outcome",
        "_poll",
        "_reader",
        "_transport",
        "idle_until_s",
        "lost",
    )

    def __init__(self, bytes_max: int, gone: Callable[["GatewayConnection"], None]) -> None:
        self._reader = ReplyReader(bytes_max)
        self._gone: Callable[[GatewayConnection], None] | None = gone
        self._transport: asyncio.Transport | None = None
        self._poll: Callable[[int], list[tuple[int, int]]] | None = None
        self._outcome: asyncio.Future[Reply | Loss] | None = None
        self._is_secret = self._is_used = False
        self.idle_until_s = 0.0
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()

    def stands(self, connected: socket.socket, *, is_secret: bool) -> None:
        """Takes the connected socket, whose transport is ``connection_made``'s; ``is_secret`` for TLS."""
        poller = select.poll()
        poller.register(connected, _ENDED | _SAID)
        self._poll, self._is_secret = poller.poll, is_secret

    @property
    def is_gone(self) -> bool:
        """Whether it carries no more calls."""
        return self._gone is None

    def is_fit(self) -> bool:
        """Says whether a request may be written: nothing was said and nothing ended since the last reply.

        The first bytes on a connection with TLS are TLS's own. What they hold is checked when they are read.
        """
        if self._gone is None or self._poll is None:
            return False
        pending = self._poll(0)
        return not pending or (self._is_secret and not self._is_used and not pending[0][1] & _ENDED)

    def write(self, request: bytes) -> "asyncio.Future[Reply | Loss]":
        """Hands a request over, and gives the future of its reply. From here on the request counts as sent."""
        assert self._transport is not None  # noqa: S101, only a connection that is fit is written to
        self._is_used = True
        self._reader.begin()
        self._outcome = outcome = self._loop.create_future()
        self._transport.write(request)
        return outcome

    @property
    def date(self) -> bytes | None:
        """The ``Date`` header of the last reply."""
        return self._reader.date

    @property
    def is_free(self) -> bool:
        """Whether it may carry another call: the last one has its whole reply, and all of its request is written."""
        return (
            self._gone is not None
            and self._transport is not None
            and self._reader.is_reusable
            and self._transport.get_write_buffer_size() == 0
        )

    def give_up(self, loss: Loss) -> None:
        """Aborts the connection; a call under way gets ``loss``. May be repeated."""
        self._settle(loss)
        self.abort()

    def abort(self) -> None:
        """Ends the connection without a word, and sends nothing more. May be repeated."""
        gone, self._gone = self._gone, None
        self._outcome = None
        if self._transport is not None:
            self._transport.abort()
        if gone is not None:
            gone(self)

    # The event loop calls what follows.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the transport."""
        self._transport = cast("asyncio.Transport", transport)
        if self._gone is None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Reads a part of the reply."""
        if self._outcome is None:
            self.abort()
            return
        outcome = self._reader.feed(data)
        if outcome is not None:
            self._settle(outcome)
            if not self._reader.is_reusable:
                self.abort()

    def eof_received(self) -> None:
        """Ends the reply and the connection."""
        if self._outcome is not None:
            self._settle(self._reader.end())
        self.abort()

    def connection_lost(self, _: Exception | None) -> None:
        """Ends the connection."""
        if self._outcome is not None:
            self._settle(self._reader.broken())
        self.abort()
        if not self.lost.done():
            self.lost.set_result(None)

    def _settle(self, outcome: Reply | Loss) -> None:
        waiting, self._outcome = self._outcome, None
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)

    def expire(self) -> None:
        """Gives up the call under way, whose time is over."""
        self.give_up(Loss(is_sent=True, cause=LossCause.TIMEOUT))
