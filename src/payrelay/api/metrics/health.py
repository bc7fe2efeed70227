"""Health checks: live while the process answers, ready while the store takes writes. The gateway has no part."""

from typing import Final, Protocol

import msgspec

from payrelay.errors import StoreFault
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.runtime.health.store_heartbeat import StoreHealth

LIVE: Final = msgspec.json.encode({"status": "live"})


class HealthSource(Protocol):
    """Tells whether the store takes writes: ``runtime.health.store_heartbeat.StoreHeartbeat``, or a test's."""

    async def health(self) -> StoreHealth:
        """Gives what a recent write showed; raises nothing, and returns within a few seconds."""


class Readiness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of ``/health/ready``; the causes are for programs, the reasons for people."""

    status: str
    effects: str | None = None
    cause: str | None = None
    reason: str | None = None


READY: Final = Readiness(status="ready")
BEHIND: Final = Readiness(
    status="ready",
    effects="refused",
    cause="behind",
    reason="the database may lack commits: run payrelay check",
)
COPIED: Final = Readiness(
    status="ready",
    effects="refused",
    cause="copied",
    reason="another database took the place of this one",
)
RECOVERY: Final = Readiness(
    status="ready",
    effects="held",
    cause="recovery",
    reason="a recovery from lost commits is under way: what may be lost is held",
)
REASONS: Final = {
    StoreFault.DISK_FULL: "the disk of the database is full",
    StoreFault.READ_ONLY: "the database takes no writes",
    StoreFault.UNREACHABLE: "the database can't be reached",
    StoreFault.TIMEOUT: "the database didn't answer in time",
    StoreFault.NO_CONNECTION_FREE: "all connections to the database are in use",
    StoreFault.BUSY: "the database is locked, or takes no more connections",
    StoreFault.LOGIN_REFUSED: "the database refused the login",
    StoreFault.OTHER_SERVER: "another server takes the writes, or none does",
    StoreFault.IO_ERROR: "the disk or the file of the database can't be read or written",
    StoreFault.OTHER: "the database can't be used; the log says why",
}
"""They say nothing of addresses or names, because anybody may read them."""

_encode: Final = msgspec.json.Encoder().encode
STOPPING: Final = _encode(Readiness(status="not_ready", cause="stopping", reason="the service is about to stop"))
"""Answered before the listener closes, so that a load balancer sends new requests elsewhere."""


async def readiness(source: HealthSource, lost_commits: LostCommits) -> tuple[int, bytes]:
    """Gives the HTTP status and the body that say whether requests can be served.

    A database that is behind, or in a recovery, still serves reads and repeats, so that the status is 200.
    """
    fault = (await source.health()).fault
    if fault is not None:
        return 503, _encode(Readiness(status="not_ready", cause=fault, reason=REASONS[fault]))
    return 200, _encode(_of_effects(lost_commits))


def _of_effects(lost_commits: LostCommits) -> Readiness:
    if lost_commits.behind is not None:
        return BEHIND
    known = lost_commits.known
    if known is not None and known.copied_to:
        return COPIED
    return RECOVERY if known is not None and known.current.is_recovering else READY
