"""A relay whose database loses commits: what the tests of recoveries have in common."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.databases import sqlite_url
from tests.flows.world import START_MS, World
from tests.relays import CHAIN_KEY

from payrelay.clock import Clock
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.runtime.database.lost_commits import IDENTITY_KEPT_MS, LostCommits
from payrelay.runtime.database.revocation_list import RevocationList
from payrelay.store.opening import open_database

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

    def acknowledge(self, principal: str) -> None:
        """Acknowledges for a principal, so that its requests are new ones; the processes learn of it."""
        acknowledged = {principal: self.world.clock.now_ms()}
        self.incarnations[-1] = msgspec.structs.replace(self.incarnations[-1], acknowledged=acknowledged)
        self.world.clock.passed_ms += IDENTITY_KEPT_MS

    def end(self) -> None:
        """Ends the recovery; the processes learn of it."""
        self.incarnations[-1] = msgspec.structs.replace(
            self.incarnations[-1], ended_recovery_at_ms=self.world.clock.now_ms()
        )
        self.world.clock.passed_ms += IDENTITY_KEPT_MS

    async def _read(self) -> DatabaseIdentity:
        return DatabaseIdentity(id="0" * 32, incarnations=tuple(self.incarnations))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Gives the address of an empty database."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "payrelay.db")
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
async def losing(url: str, tmp_path: Path) -> AsyncIterator[Losing]:
    """Gives a relay on either database, with a list of revocations, whose incarnations a test begins."""
    database = await open_database(url, clock=Clock(), owner=True)
    world = World(database, tmp_path / "payrelay.db")
    losing = Losing(world)
    world.relay = replace(
        world.relay,
        database=replace(
            world.relay.database,
            lost_commits=losing.lost_commits(),
            revocations=RevocationList(tmp_path / "marks", CHAIN_KEY, world.relay.log),
        ),
    )
    yield losing
    await world.relay.background.finish(0)
    await database.close()
