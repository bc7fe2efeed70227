"""One connection of a caller: whose it is, what is under way on it, and what of its answers was not read yet."""

from typing import Final, TypeAlias

import msgspec

from payrelay.core.access.networks import network_of

Peer: TypeAlias = tuple[str, int]
"""The address and the port at the other end, which name a connection while it is open."""

WRITTEN_AFTER_S: Final = 0.2
"""The server writes an answer to the socket in another thread. An empty socket proves nothing until this is over."""


class ConnectionOwner(msgspec.Struct, frozen=True):
    """Whom a connection counts for: a principal, or an address on which no valid credential was seen."""

    name: str
    is_principal: bool


def owner_at(address: str) -> ConnectionOwner:
    """Gives the owner that an address is, where no credential was seen."""
    return ConnectionOwner(network_of(address), is_principal=False)


class Connection:
    """A connection, as it changes; times in seconds by ``Clock.boot_s``.

    Attributes:
        peer: the other end.
        owner: None for a trusted proxy's connection on which nothing is under way or unread.
        is_shared: True for a trusted proxy's: each request on it may be another caller's.
        active_s: when it was opened, or last began or ended a request.
        under_way: how many requests are being answered.
        answer_bytes: the size of the newest answer; 0 once a further request begins, or everything was read.
        unread_bytes: what waits in the socket, and the newest answer; an upper bound of what is unread. The server
            hands a request on when the answer before it is in the socket.
        unread_since_s: since when the same bytes wait to be read; None where nothing does.
        is_closing: True once it was told to close.
    """

    __slots__ = (
        "_read_to",
        "_waiting_bytes",
        "active_s",
        "answer_bytes",
        "is_closing",
        "is_shared",
        "owner",
        "peer",
        "under_way",
        "unread_bytes",
        "unread_since_s",
    )

    def __init__(self, peer: Peer, owner: ConnectionOwner | None, now_s: float, *, is_shared: bool = False) -> None:
        self.peer = peer
        self.owner = owner
        self.is_shared = is_shared
        self.active_s = now_s
        self.under_way = 0
        self.unread_bytes = 0
        self.unread_since_s: float | None = None
        self.is_closing = False
        self.answer_bytes = 0
        self._read_to = 0
        self._waiting_bytes = 0

    def note_answer(self, size: int, now_s: float) -> None:
        """Notes that a request has its answer, of so many bytes."""
        self.active_s = now_s
        self.under_way -= 1
        self.answer_bytes = size
        self.unread_bytes = self._waiting_bytes + size

    def note_queue(self, waiting: int, taken: int, now_s: float) -> None:
        """Notes that so many bytes wait in the socket, and that the other end has taken so many in all."""
        self._waiting_bytes = waiting
        self.unread_bytes = waiting + self.answer_bytes
        if waiting > 0:
            if self.unread_since_s is None or taken >= self._read_to:
                self.unread_since_s, self._read_to = now_s, taken + waiting
            return
        self.unread_since_s = None
        if self.under_way == 0 and now_s - self.active_s >= WRITTEN_AFTER_S:
            self.unread_bytes = self.answer_bytes = 0
            if self.is_shared:
                self.owner = None
