"""Decides which connections are closed, so that no caller takes the places or the memory of the others.

Rules:

1. A new connection is never refused: it may bring a valid credential. Where there are too many, the one that has done
   nothing for longest is closed.
2. An address counts for connections on which no valid credential was seen. All others count for their principal, and
   no number of strangers closes one of them.
3. What the service wrote must be read in time, whoever asked for it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from payrelay.api.connections.connection import Connection, ConnectionOwner

ADDRESS_CONNECTIONS_MAX: Final = 256
"""Connections of one address without a credential: a thousand phones behind one carrier open fewer at one moment."""
PRINCIPAL_CONNECTIONS_MAX: Final = 512
"""Connections of one principal, where nothing else is set; its apps have half as many of their own."""
STRANGERS_PART: Final = 2
"""One in so many places may have connections without a credential, from all addresses together."""
STRANGERS_MAX: Final = 2_048
"""However many places there are: each takes memory, and a stranger needs no credential for it."""
ONE_OWNER_PART: Final = 8
"""One in so many places may be one address's or one principal's, where the process may open few files."""
LEFT_TO_OTHERS_PART: Final = 4
"""One in so many places is left to others, however many connections of a principal are set."""
ONE_OWNER_MIN: Final = 16
"""What an address or a principal may have in any case, unless it is set lower."""
UNREAD_MAX_S: Final = 60.0
"""How long the service waits until what it wrote is read: some 4 KiB a second, less than any phone manages."""
ADDRESS_UNREAD_MAX: Final = 16 * 2**20
"""Bytes of answers that one address without a credential may leave unread: some 30 of the largest."""
PRINCIPAL_UNREAD_MAX: Final = 64 * 2**20
STRANGERS_UNREAD_MAX: Final = 64 * 2**20
"""Of all addresses without a credential together: 2,000 of them, with one large answer each, took 0.9 GB."""


class ClosingReason(StrEnum):
    """Why a connection is closed, as log and metrics name it."""

    NOT_READ_IN_TIME = "not_read_in_time"
    TOO_MUCH_UNREAD = "too_much_unread"
    TOO_MANY_OF_ADDRESS = "too_many_of_address"
    TOO_MANY_OF_PRINCIPAL = "too_many_of_principal"
    TOO_MANY_WITHOUT_CREDENTIAL = "too_many_without_credential"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionLimits:
    """The limits of one address that listens, which serves ``places`` connections; times in seconds, sizes in bytes."""

    places: int = 4096
    address_connections_max: int = ADDRESS_CONNECTIONS_MAX
    principal_connections_max: int = PRINCIPAL_CONNECTIONS_MAX
    strangers_max: int = 4096 // STRANGERS_PART
    unread_max_s: float = UNREAD_MAX_S
    address_unread_max: int = ADDRESS_UNREAD_MAX
    principal_unread_max: int = PRINCIPAL_UNREAD_MAX
    strangers_unread_max: int = STRANGERS_UNREAD_MAX

    def connections_of(self, owner: ConnectionOwner) -> int:
        """Gives how many connections an owner may have."""
        return self.principal_connections_max if owner.is_principal else self.address_connections_max

    def unread_of(self, owner: ConnectionOwner) -> int:
        """Gives how many bytes an owner may leave unread."""
        return self.principal_unread_max if owner.is_principal else self.address_unread_max


def limits_within(connections: int, *, address_max: int, principal_max: int) -> ConnectionLimits:
    """Gives the limits of a service with so many places, where the two maxima are set as given.

    Who sets more for a principal than is usual wants these for it, and has one principal rather than many.
    """
    part = max(ONE_OWNER_MIN, connections // ONE_OWNER_PART)
    is_wanted = principal_max > PRINCIPAL_CONNECTIONS_MAX
    of_principal = max(part, connections - connections // LEFT_TO_OTHERS_PART) if is_wanted else part
    return ConnectionLimits(
        places=connections,
        address_connections_max=min(address_max, part),
        principal_connections_max=min(principal_max, of_principal),
        strangers_max=min(STRANGERS_MAX, connections // STRANGERS_PART),
    )


def limits_beside(limits: ConnectionLimits, places: int) -> ConnectionLimits:
    """Gives the limits of an address beside the API's; nobody shows a credential of the API there."""
    few = limits_within(places, address_max=limits.address_connections_max, principal_max=ONE_OWNER_MIN)
    return replace(
        limits,
        places=places,
        address_connections_max=few.address_connections_max,
        strangers_max=few.strangers_max,
    )


class Closing(NamedTuple):
    """One connection that is to be closed, and why."""

    connection: Connection
    reason: ClosingReason


def closings(connections: Iterable[Connection], limits: ConnectionLimits, now_s: float) -> list[Closing]:
    """Gives the connections that are to be closed now."""
    slow, staying = _divided(connections, limits, now_s)
    found = [Closing(connection, ClosingReason.NOT_READ_IN_TIME) for connection in slow]
    strangers: list[Connection] = []
    for owner, own in _by_owner(staying).items():
        unread, rest = _too_much_unread(own, limits.unread_of(owner))
        many, rest = _too_many(rest, limits.connections_of(owner), may_end_requests=not owner.is_principal)
        of_owner = ClosingReason.TOO_MANY_OF_PRINCIPAL if owner.is_principal else ClosingReason.TOO_MANY_OF_ADDRESS
        found += [Closing(connection, ClosingReason.TOO_MUCH_UNREAD) for connection in unread]
        found += [Closing(connection, of_owner) for connection in many]
        if not owner.is_principal:
            strangers += rest
    unread, strangers = _too_much_unread(strangers, limits.strangers_unread_max)
    found += [Closing(connection, ClosingReason.TOO_MUCH_UNREAD) for connection in unread]
    many, _ = _too_many(strangers, limits.strangers_max, may_end_requests=True)
    return found + [Closing(connection, ClosingReason.TOO_MANY_WITHOUT_CREDENTIAL) for connection in many]


def _divided(
    connections: Iterable[Connection], limits: ConnectionLimits, now_s: float
) -> tuple[list[Connection], list[Connection]]:
    """Divides connections into those whose answers were not read in time, and the others."""
    slow: list[Connection] = []
    staying: list[Connection] = []
    for connection in connections:
        since_s = connection.unread_since_s
        is_slow = since_s is not None and now_s - since_s >= limits.unread_max_s
        (slow if is_slow else staying).append(connection)
    return slow, staying


def _by_owner(connections: Iterable[Connection]) -> dict[ConnectionOwner, list[Connection]]:
    owned: dict[ConnectionOwner, list[Connection]] = defaultdict(list)
    for connection in connections:
        if connection.owner is not None:
            owned[connection.owner].append(connection)
    return owned


def _too_much_unread(own: list[Connection], bytes_max: int) -> tuple[list[Connection], list[Connection]]:
    """Takes connections out, those with the most unread first, until what is left is not over the maximum."""
    total = sum(connection.unread_bytes for connection in own)
    if total <= bytes_max:
        return [], own
    leaving: list[Connection] = []
    staying = sorted(own, key=lambda connection: connection.unread_bytes)
    while total > bytes_max:
        leaving.append(staying.pop())
        total -= leaving[-1].unread_bytes
    return leaving, staying


def _too_many(
    own: list[Connection], count_max: int, *, may_end_requests: bool
) -> tuple[list[Connection], list[Connection]]:
    """Takes out as many as are too many: those without a request first, and of these the one that is idle for longest.

    Unless ``may_end_requests``, one with a request under way stays.
    """
    surplus = len(own) - count_max
    if surplus <= 0:
        return [], own
    ordered = sorted(own, key=lambda connection: (connection.under_way > 0, connection.active_s))
    if not may_end_requests:
        surplus = min(surplus, sum(connection.under_way == 0 for connection in own))
    return ordered[:surplus], ordered[surplus:]
