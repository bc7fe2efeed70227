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
NOT_READY: Final = msgspec.json.encode({"status": "not_ready", "reason": "the store can't be used"})


async def readiness(database: Pingable) -> tuple[int, bytes]:
    """Gives the HTTP status and the body that say whether requests can be served."""
    try:
        await database.ping()
    except StoreError:
        return 503, NOT_READY
    return 200, READY
