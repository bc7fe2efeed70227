"""Looks at the open connections now and then, and closes those that are too many or too slow."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from payrelay.api.connections.limits import ClosingReason
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.connections.sockets import AcceptedSockets

LOOK_EVERY_S: Final = 1.0
"""Between two looks. Each costs some microseconds a connection."""
CROWDED_EVERY_S: Final = 0.2
"""Between two looks where half of the places are taken: a new caller may have to wait as long for a place."""
REST: Final = 9
"""So many times as long as a look took is rested after it: with thousands of connections, looks take at most a tenth of
the time."""

Note: TypeAlias = Callable[[ClosingReason, str, int], None]


async def limit_connections(
    connections: OpenConnections,
    sockets: AcceptedSockets,
    *,
    note: Note,
) -> None:
    """Looks, and closes, until it is cancelled.

    Args:
        connections: what is known of the connections.
        sockets: those of the server.
        note: is told why connections were closed, whose they were, and how many.
    """
    time_s = asyncio.get_running_loop().time
    while True:
        began_s = time_s()
        with suppress(OSError):  # the process has no file left: the next look may find one
            _close_some(connections, sockets, note)
        is_crowded = connections.count * 2 >= connections.limits.places
        await asyncio.sleep(max(CROWDED_EVERY_S, REST * (time_s() - began_s)))
        if not is_crowded:
            with suppress(TimeoutError):
                await asyncio.wait_for(connections.is_crowded.wait(), LOOK_EVERY_S - CROWDED_EVERY_S)


def _close_some(connections: OpenConnections, sockets: AcceptedSockets, note: Note) -> None:
    closed: Counter[tuple[ClosingReason, str]] = Counter()
    for connection, reason in connections.look(sockets.states()):
        sockets.close(connection.peer)
        closed[reason, connection.owner.name if connection.owner else connection.peer[0]] += 1
    for address, _ in sockets.close_twins():
        closed[ClosingReason.TOO_MANY_OF_ADDRESS, address] += 1
    for (reason, owner), count in closed.items():
        note(reason, owner, count)
