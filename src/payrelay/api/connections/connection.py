"""One connection of a caller: whose it is, what is under way on it, and what of its answers was not read yet."""

import ipaddress
from typing import Final, TypeAlias

import msgspec

Peer: TypeAlias = tuple[str, int]
"""The address and the port at the other end, which name a connection while it is open."""

WRITTEN_AFTER_S: Final = 0.2
"""The server writes an answer to the socket in another thread. An empty socket proves nothing until this is over."""


class ConnectionOwner(msgspec.Struct, frozen=True):
    """Whom a connection counts for: a principal, or an address on which no valid credential was seen."""

    name: str
    is_principal: bool


NETWORK_BITS: Final = 64
"""The prefix of an IPv6 address that counts: a customer of a network has at least that, and any address in it."""


def network_of(address: str) -> str:
    """Gives the key under which an address is counted: itself, or for IPv6 its network of NETWORK_BITS."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), NETWORK_BITS), strict=False))


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
        unread_bytes: the answers since everything was last read; an upper bound of what is unread.
        unread_since_s: since when the same bytes wait to be read; None where nothing does.
        is_closing: True once it was told to close.
    """

    __slots__ = (
        "_read_to",
        "active_s",
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
        self._read_to = 0

    def note_queue(self, waiting: int, taken: int, now_s: float) -> None:
        """Notes that so many bytes wait in the socket, and that the other end has taken so many in all."""
        if waiting > 0:
            if self.unread_since_s is None or taken >= self._read_to:
                self.unread_since_s, self._read_to = now_s, taken + waiting
            return
        self.unread_since_s = None
        if self.under_way == 0 and now_s - self.active_s >= WRITTEN_AFTER_S:
            self.unread_bytes = 0
            if self.is_shared:
                self.owner = None
