"""One call to a gateway: what is sent, and what comes back: a reply, or a loss that says whether it was sent."""

from enum import StrEnum
from typing import Final, Protocol

import msgspec

USER_AGENT: Final = "payrelay"
"""Without a version: readers of the gateway's logs need to know who we are, and attackers should learn nothing."""


class LossCause(StrEnum):
    """The reasons why there is no reply, as an operation's evidence has them."""

    NAME_NOT_FOUND = "name_not_found"
    NO_CONNECTION = "no_connection"
    TLS_FAILED = "tls_failed"
    CONNECT_TIMEOUT = "connect_timeout"
    TOO_LATE = "too_late"
    STALE_CONNECTION = "stale_connection"
    CLOSED = "closed"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection_lost"
    HALF_REPLY = "half_reply"
    NOT_HTTP = "not_http"
    TOO_LARGE = "too_large"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A complete reply, whatever it says."""

    http_status: int
    body: bytes


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """No complete reply; ``is_sent`` is False only where no byte of the request was sent."""

    is_sent: bool
    cause: LossCause


class OutgoingRequest(Protocol):
    """One request: ``path`` is ASCII, has its query, and begins with a slash; ``body`` is None for a GET."""

    @property
    def method(self) -> str:
        """The method, in capitals."""

    @property
    def path(self) -> str:
        """Where it goes, below the pool's address."""

    @property
    def body(self) -> bytes | None:
        """What it carries."""


class CallHeaders:
    """The headers of calls with one authorization, or without one, rendered once. Its ``repr`` hides them.

    Raises ValueError for a value that would end its line, and UnicodeEncodeError for one that isn't ASCII.
    """

    __slots__ = ("authorization", "content_type", "lines")

    def __init__(self, authorization: str | None, content_type: str) -> None:
        self.authorization = authorization
        self.content_type = content_type
        named = {
            "Authorization": authorization,
            "Content-Type": content_type,
            "Accept": "application/json",
            # A compressed reply isn't worth the gateway's or our time, and is refused.
            "Accept-Encoding": "identity",
            "User-Agent": USER_AGENT,
        }
        if not all(value is None or value.isprintable() for value in named.values()):
            raise ValueError("not a value of a header")
        self.lines = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value is not None).encode(
            "ascii"
        )


class Exchanger(Protocol):
    """Sends one call and gives its reply: a ``ConnectionPool``, or a simulation of one."""

    async def exchange(
        self, request: OutgoingRequest, headers: CallHeaders, *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Sends one request once, and not after ``send_by_s`` (by ``clock.boot_s``). Raises only CancelledError."""


class Network(Protocol):
    """The connections to one gateway account: ``GatewayConnections``, or a simulation of them."""

    @property
    def effects(self) -> Exchanger:
        """Carries effects and token requests."""

    @property
    def reads(self) -> Exchanger:
        """Carries reads."""

    async def close(self) -> None:
        """Closes all connections; calls under way are lost."""
