"""Health checks: live while the process answers, ready while the store can be used. The gateway has no part in them."""

from typing import Final, Protocol

import msgspec

from payrelay.errors import StoreError


class Pingable(Protocol):
    """A store that tells whether it can be used."""

    async def ping(self) -> None:
        """Returns when the store can be used; raises StoreUnavailable otherwise."""


LIVE: Final = msgspec.json.encode({"status": "live"})
READY: Final = msgspec.json.encode({"status": "ready"})
BEHIND: Final = msgspec.json.encode(
    {"status": "ready", "effects": "refused", "reason": "the database may lack commits: run payrelay check"}
)
STOPPING: Final = msgspec.json.encode({"status": "not_ready", "reason": "the service is about to stop"})
"""Answered before the listener closes, so that a load balancer sends new requests elsewhere."""
NOT_READY: Final = msgspec.json.encode({"status": "not_ready", "reason": "the store can't be used"})


async def readiness(database: Pingable, *, is_behind: bool) -> tuple[int, bytes]:
    """Gives the HTTP status and the body that say whether requests can be served.

    A database that is behind still serves reads and repeats, so that the status is 200.
    """
    try:
        await database.ping()
    except StoreError:
        return 503, NOT_READY
    return 200, BEHIND if is_behind else READY
