"""All open connections of this process: what requests tell of them, and what their sockets show.

Rules:

1. A connection counts for its address until a request on it has a valid credential, and for that principal from then
   on. A trusted proxy's connection counts for whoever makes the request that is under way on it.
2. Of one principal, and of each customer's apps, only so many requests are under way at once (``shares``): 429 for one
   more, before its body is read. Of the shares that a request counts in, the last one is its caller's own.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from payrelay.api.connections.connection import Connection, ConnectionOwner, Peer, owner_at
from payrelay.api.connections.limits import Closing, ConnectionLimits, closings, limits_beside
from payrelay.api.connections.shares import Share
from payrelay.api.connections.sockets import SocketState
from payrelay.clock import Clock
from payrelay.errors import Code, Refusal

CLOSE: Final = (("Connection", "close"),)
LARGE_BYTES: Final = 65_536
"""Only what describes the API has so many bytes, of all that a stranger may get."""
RETRY_AFTER_S: Final = 1
"""When a principal with too many requests should try again; when one of them ends is unknown."""


class OpenConnections:
    """The connections by their peers.

    Args:
        limits: of this service.
        clock: tells the time.
        is_proxy: tells whether an address is a trusted proxy's.
    """

    def __init__(self, limits: ConnectionLimits, clock: Clock, is_proxy: Callable[[str], bool]) -> None:
        self.limits = limits
        self.is_crowded = asyncio.Event()
        """Set when an owner, or all strangers, may have left too much unread: the sockets should be looked at now."""
        self._clock = clock
        self._is_proxy = is_proxy
        self._by_peer: dict[Peer, Connection] = {}
        self._under_way: Counter[str] = Counter()
        self._answered: Counter[ConnectionOwner] = Counter()
        """Bytes of answers since the last look, most of which are usually read at once."""
        self._answered_strangers = 0
        self._large: Counter[ConnectionOwner] = Counter()
        """Bytes of large answers to strangers since the last look."""
        self._next_look = asyncio.Event()
        self._looked_s = 0.0

    def beside(self, places: int, is_proxy: Callable[[str], bool]) -> "OpenConnections":
        """Makes those of another address of this process, with so many places."""
        return OpenConnections(limits_beside(self.limits, places), self._clock, is_proxy)

    @property
    def count(self) -> int:
        """How many connections are known."""
        return len(self._by_peer)

    def begin(self, peer: Peer, client: str) -> Connection:
        """Notes that a request of a client's address begins; the caller ends with ``end``."""
        connection = self._connection(peer)
        if connection.is_shared:
            connection.owner = owner_at(client)
        connection.active_s = self._clock.boot_s()
        connection.under_way += 1
        connection.answer_bytes = 0
        return connection

    def admit(self, connection: Connection, shares: tuple[Share, ...]) -> None:
        """Notes that a request has a valid credential, which counts in these shares; ``end`` is then given them too.

        Raises Refusal (rate_limited) where one of them has too many requests under way.
        """
        connection.owner = ConnectionOwner(shares[0].name, is_principal=True)
        for share in shares:
            self._under_way[share.name] += 1
        own = self._under_way[shares[-1].name]
        for share in shares:
            most = share.most_beside(own)
            if self._under_way[share.name] > most:
                msg = f"{most} requests of {share.whose} are under way already"
                raise Refusal(Code.RATE_LIMITED, msg, retry_after_s=RETRY_AFTER_S, headers=CLOSE)

    def end(self, connection: Connection, size: int, shares: tuple[Share, ...]) -> None:
        """Notes that a request has its answer of ``size`` bytes; it has ``shares`` where it was admitted."""
        connection.note_answer(size, self._clock.boot_s())
        for share in shares:
            self._under_way[share.name] -= 1
            if not self._under_way[share.name]:
                del self._under_way[share.name]
        owner = connection.owner
        if owner is not None:
            self._answered[owner] += size
            self._answered_strangers += 0 if owner.is_principal else size
            is_much_of_strangers = self._answered_strangers > self.limits.strangers_unread_max
            if is_much_of_strangers or self._answered[owner] > self.limits.unread_of(owner):
                self.is_crowded.set()

    async def room(self, connection: Connection, size: int) -> None:
        """Waits until an answer of so many bytes may be sent, and counts it then.

        What strangers leave unread shows at the next look alone. Until then they get as much as they may leave, or one
        answer.
        """
        owner = connection.owner
        if size < LARGE_BYTES or owner is None or owner.is_principal:
            return
        own_max, all_max = self.limits.address_unread_max, self.limits.strangers_unread_max
        while _is_too_much(self._large[owner], size, own_max) or _is_too_much(self._large.total(), size, all_max):
            self.is_crowded.set()
            await self._next_look.wait()
        self._large[owner] += size

    def look(self, states: Iterable[SocketState]) -> list[Closing]:
        """Compares what is known with the open sockets, and gives the connections that are to be closed now.

        Forgets connections whose sockets are gone. A closed one is given once.
        """
        now_s = self._clock.boot_s()
        present: dict[Peer, Connection] = {}
        for state in states:
            connection = self._connection(state.peer)
            if state.is_new and connection.under_way == 0 and connection.active_s < self._looked_s:
                # Another connection from the same port, opened since the last look.
                connection = self._new(state.peer, now_s)
            connection.note_queue(state.waiting, state.taken, now_s)
            present[state.peer] = connection
        self._by_peer = present | {
            peer: connection for peer, connection in self._by_peer.items() if connection.under_way > 0
        }
        self._looked_s = now_s
        self._answered.clear()
        self._answered_strangers = 0
        self._large.clear()
        self._next_look.set()
        self._next_look = asyncio.Event()
        self.is_crowded.clear()
        found = closings((each for each in present.values() if not each.is_closing), self.limits, now_s)
        for connection, _ in found:
            connection.is_closing = True
        return found

    def _connection(self, peer: Peer) -> Connection:
        connection = self._by_peer.get(peer)
        if connection is None:
            connection = self._by_peer[peer] = self._new(peer, self._clock.boot_s())
        return connection

    def _new(self, peer: Peer, now_s: float) -> Connection:
        is_shared = self._is_proxy(peer[0])
        return Connection(peer, None if is_shared else owner_at(peer[0]), now_s, is_shared=is_shared)


def _is_too_much(sent: int, size: int, most: int) -> bool:
    return sent > 0 and sent + size > most
