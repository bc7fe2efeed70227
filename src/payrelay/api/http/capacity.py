"""Limits on connections and held answers, computed from how many files the process may open."""

import resource
from typing import Final

from payrelay.runtime.held_responses import WAITERS_MAX

CONNECTIONS_MAX: Final = 4096
"""Connections at once; further ones wait in the backlog until one closes."""
FILES_RESERVED: Final = 256
"""Open files that are reserved for the store, the gateway and the log, however many clients connect."""
CONNECTIONS_MIN: Final = 64
"""The connections that are served however few files the process may open."""
HELD_PART: Final = 4
"""One in so many connections may wait for an outcome, so that waiting clients never block all others."""


def files_max() -> int:
    """Gives how many files, including sockets, this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def connections_max(files: int) -> int:
    """Gives how many connections are served at once by a process that may open so many files."""
    return max(CONNECTIONS_MIN, min(CONNECTIONS_MAX, files - FILES_RESERVED))


def held_max(files: int) -> int:
    """Gives how many answers are held at once by a process that may open so many files."""
    return min(WAITERS_MAX, connections_max(files) // HELD_PART)
