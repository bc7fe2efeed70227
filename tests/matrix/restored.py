"""A database that was put back to an earlier time: what was lost since is at the gateway, and in nobody's books."""

import asyncio
from pathlib import Path
from typing import Final

from payrelay.app import opened_resources
from payrelay.clock import Clock
from payrelay.core.database.schema_changes import ANY
from payrelay.flows.database.begin_recovery import begin_recovery
from payrelay.settings import read_settings
from payrelay.store.database.identity import IdentityStore

LATE_S: Final = 900
"""How much later than the loss a service begins by its clock: a sending and the lag of ten minutes are over."""
LOST_FOR_MS: Final = 600_000


def begin_recovery_of(environment: dict[str, str], folder: Path) -> None:
    """Begins the recovery of a database whose last ten minutes are lost; nothing serves from it meanwhile."""

    async def begin() -> None:
        clock = Clock()
        async with opened_resources(read_settings(environment, folder), clock, changes=ANY) as shared:
            identities = IdentityStore(shared.database, shared.seal)
            since_ms = clock.now_ms() - LOST_FOR_MS
            await begin_recovery(identities, clock, lost_since_ms=since_ms, operator="ann", note="restored")

    asyncio.run(begin())
