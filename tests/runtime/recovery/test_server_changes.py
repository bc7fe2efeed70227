"""What follows where another server takes the writes."""

import pytest
from tests.flows.world import World

from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation
from payrelay.errors import Code, Refusal, StoreUnavailable
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.runtime.database.server_changes import ServerChanges


class Remembered:
    """Remembers a server as the database does."""

    def __init__(self) -> None:
        self.server: str | None = None

    async def read(self) -> str | None:
        """Reads the last server."""
        return self.server

    async def put(self, server: str) -> None:
        """Stores another one."""
        self.server = server


class Database:
    """A database that can be away, with the alerts that were stored in it."""

    def __init__(self) -> None:
        self.last_server = Remembered()
        self.lists_compared = 0
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

    async def compare_list(self) -> None:
        """Compares what is listed outside."""
        self.lists_compared += 1

    async def report(self, name: str, _: int) -> None:
        """Stores an alert."""
        self.alerts.append(name)


def changes_of(database: Database, lost: LostCommits, world: World) -> ServerChanges:
    """Hears of the servers of a database."""
    return ServerChanges(
        lost,
        world.clock,
        world.relay.log,
        last_server=database.last_server,
        compare=database.compare,
        compare_list=database.compare_list,
        report=database.report,
    )


async def test_another_server_is_compared_and_told_of_once_it_can_be_reached(world: World) -> None:
    """The alert is stored where operators look from now on, and no failure on the way loses it."""
    database = Database()
    lost = LostCommits(database.identity, world.clock, world.relay.log)
    changes = changes_of(database, lost, world)
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
    changes = changes_of(database, lost, world)
    await changes.compare()
    assert (database.alerts, database.comparisons, changes.behind) == ([], 1, None)

    lost.fall_behind(1, "op_1 is missing")
    assert changes.behind == "op_1 is missing"


async def test_the_server_of_the_last_start_is_remembered(world: World) -> None:
    """A process that starts just after a promotion saw nothing of it: only what is stored says that there was one."""
    database = Database()
    changes = changes_of(database, LostCommits(database.identity, world.clock, world.relay.log), world)

    assert await changes.is_familiar("timeline 1")
    assert not await changes.is_familiar("timeline 2")
    assert database.last_server.server == "timeline 1", "what isn't settled is forgotten by no start"
    await changes.settled("timeline 2")
    assert await changes.is_familiar("timeline 2")


async def test_while_a_server_is_settling_nothing_is_denied_and_nothing_goes_out(world: World) -> None:
    """An id of a lost commit isn't there yet, or any more. A final 404 would let a client pay again elsewhere."""
    database = Database()
    lost = LostCommits(database.identity, world.clock, world.relay.log)
    changes = changes_of(database, lost, world)
    changes.unsettled()

    assert (await lost.is_behind(), lost.behind) == (True, None)
    for asked in (lost.require_effects_allowed(), lost.require_known(None, "operation")):
        with pytest.raises(Refusal) as caught:
            await asked
        assert (caught.value.code, caught.value.retry_after_s is not None) == (Code.UNAVAILABLE, True)
    await changes.settled("timeline 2")
    assert await lost.require_effects_allowed() is None
    assert database.lists_compared == 1, "a promotion may have lost nothing but a revocation"
