"""A relay whose database loses commits: what the tests of recoveries have in common."""

from typing import Final

import msgspec
from tests.flows.world import START_MS, World

from payrelay.core.recovery.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.runtime.recovery.lost_commits import IDENTITY_KEPT_MS, LostCommits

FIRST: Final = Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=0)
MINUTE_MS: Final = 60_000


class Losing:
    """A world with the incarnations of its database."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.incarnations = [FIRST]

    def lost_commits(self) -> LostCommits:
        """Gives what reads these incarnations."""
        return LostCommits(self._read, self.world.clock, self.world.relay.log)

    def lose(self, since_ms: int = START_MS - MINUTE_MS, until_ms: int = START_MS) -> None:
        """Begins the recovery of a lost window; the processes learn of it."""
        number = len(self.incarnations) + 1
        lost = LostWindow(since_ms=since_ms, until_ms=until_ms)
        began = Incarnation(number=number, reason=Beginning.RECOVERED, began_at_ms=until_ms, lost=lost)
        self.incarnations.append(began)
        self.world.clock.passed_ms += IDENTITY_KEPT_MS

    def end(self) -> None:
        """Ends the recovery; the processes learn of it."""
        self.incarnations[-1] = msgspec.structs.replace(
            self.incarnations[-1], ended_recovery_at_ms=self.world.clock.now_ms()
        )
        self.world.clock.passed_ms += IDENTITY_KEPT_MS

    async def _read(self) -> DatabaseIdentity:
        return DatabaseIdentity(id="0" * 32, incarnations=tuple(self.incarnations))
