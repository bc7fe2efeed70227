"""Health: live while the process answers, ready while the store can be used; the gateway's state is not ours."""

from typing import Final, Protocol

import msgspec

from payrelay.errors import StoreError


class Pingable(Protocol):
    """A store that can be asked whether it is usable."""

    async def ping(self) -> None:
        """Returns when it is; raises StoreUnavailable otherwise."""
        ...


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
