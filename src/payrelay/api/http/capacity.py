"""Limits on connections and held answers, computed from how many files the process may open."""

import resource
import sys
from contextlib import suppress
from typing import Final

from payrelay.runtime.held_responses import WAITERS_MAX

CONNECTIONS_MAX: Final = 16_384
"""Connections at once, so that thousands of phones can follow their payments; further ones wait in the backlog until
one closes."""
CONNECTIONS_BESIDE_MAX: Final = 512
"""Connections at once on each address beside the API's, where collectors and a few people come. With fewer, a flood
would fill all places between two looks at the connections."""
ADDRESSES_BESIDE: Final = 2
"""The metrics' own address, and the console's."""
FILES_RESERVED: Final = 256
"""Open files that are reserved for the store, the gateway and the log, however many clients connect."""
CONNECTIONS_MIN: Final = 64
"""The connections that are served however few files the process may open."""
HELD_PART: Final = 4
"""One in so many connections may wait for an outcome, so that waiting clients never block all others."""
FOLLOWERS_PART: Final = 2
"""One in so many connections may follow events: with those who wait, a quarter is left to all others."""


def files_max() -> int:
    """Gives how many files, including sockets, this process may have open."""
    return _at_most(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def raise_files_max() -> None:
    """Lets this process open as many files as its connections need, or as many as the machine allows it.

    Most systems start a process with 1,024 and allow it far more: they wait for it to ask.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(CONNECTIONS_MAX + ADDRESSES_BESIDE * CONNECTIONS_BESIDE_MAX + FILES_RESERVED, _at_most(hard))
    if _at_most(soft) < wanted:
        with suppress(OSError, ValueError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _at_most(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def connections_max(files: int) -> int:
    """Gives how many connections are served at once by a process that may open so many files."""
    return max(CONNECTIONS_MIN, min(CONNECTIONS_MAX, files - FILES_RESERVED))


def connections_beside_max(files: int) -> int:
    """Gives how many connections each address beside the API's serves at once.

    Where the process may open fewer files than it wants, these few come out of what is reserved.
    """
    spare = files - FILES_RESERVED - CONNECTIONS_MAX
    return max(CONNECTIONS_MIN, min(CONNECTIONS_BESIDE_MAX, spare // ADDRESSES_BESIDE))


def followers_max(files: int) -> int:
    """Gives how many may follow events at once in a process that may open so many files."""
    return connections_max(files) // FOLLOWERS_PART


def held_max(files: int) -> int:
    """Gives how many answers are held at once by a process that may open so many files."""
    return min(WAITERS_MAX, connections_max(files) // HELD_PART)
