"""How many clients are served at once, and how many of them may be held, by what the process is allowed to open."""

import resource
from typing import Final

from payrelay.runtime.held_responses import WAITERS_MAX

CONNECTIONS_MAX: Final = 4096
"""Connections at once; further ones wait in the backlog until one closes."""
FILES_RESERVED: Final = 256
"""Of the process's open files: for the store, the gateway and the log, which must not starve when clients crowd in."""
CONNECTIONS_MIN: Final = 64
"""However few files the process may open, it serves."""
HELD_PART: Final = 4
"""One connection in so many may wait for an outcome, so that those who wait never keep out all others."""


def files_max() -> int:
    """Gives how many files, sockets among them, this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def connections_max(files: int) -> int:
    """Gives how many connections are served at once by a process that may open so many files."""
    return max(CONNECTIONS_MIN, min(CONNECTIONS_MAX, files - FILES_RESERVED))


def held_max(files: int) -> int:
    """Gives how many answers are held at once by a process that may open so many files."""
    return min(WAITERS_MAX, connections_max(files) // HELD_PART)
