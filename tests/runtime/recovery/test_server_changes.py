"""What follows where another server takes the writes."""

import pytest
from tests.flows.world import World

from payrelay.core.recovery.incarnations import Beginning, DatabaseIdentity, Incarnation
from payrelay.errors import StoreUnavailable
from payrelay.runtime.recovery.lost_commits import LostCommits
from payrelay.runtime.recovery.server_changes import ServerChanges


class Database:
    """A database that can be away, with the alerts that were stored in it."""

    def __init__(self) -> None:
        self.is_away = False
        self.alerts: list[str] = []
        self.comparisons = 0

    async def identity(self) -> DatabaseIdentity:
        """Reads the identity."""
        first = Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=0)
        return DatabaseIdentity(id="one", incarnations=(first,))

    async def compare(self) -> None:
        """Compares what is remembered."""
        if self.is_away:
            raise StoreUnavailable("away")
        self.comparisons += 1

    async def report(self, name: str, _: int) -> None:
        """Stores an alert."""
        self.alerts.append(name)


async def test_another_server_is_compared_and_told_of_once_it_can_be_reached(world: World) -> None:
    """The alert is stored where operators look from now on, and no failure on the way loses it."""
    database = Database()
    lost = LostCommits(database.identity, world.clock, world.relay.log)
    changes = ServerChanges(lost, world.clock, world.relay.log, compare=database.compare, report=database.report)
    changes.server_changed("timeline 1", "timeline 2")
    database.is_away = True
    with pytest.raises(StoreUnavailable):
        await changes.compare()
    database.is_away = False
    await changes.compare()
    await changes.compare()

    assert (database.alerts, database.comparisons) == (["servers/timeline 2"], 2)
    assert world.log_events == ["database_server_changed", "database_compared"]


async def test_a_restart_is_compared_and_nobody_is_alerted(world: World) -> None:
    """Servers restart for updates; only what is missing concerns anybody."""
    database = Database()
    lost = LostCommits(database.identity, world.clock, world.relay.log)
    changes = ServerChanges(lost, world.clock, world.relay.log, compare=database.compare, report=database.report)
    await changes.compare()
    assert (database.alerts, database.comparisons, changes.behind) == ([], 1, None)

    lost.fall_behind(1, "op_1 is missing")
    assert changes.behind == "op_1 is missing"
