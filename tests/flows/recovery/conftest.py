from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.databases import sqlite_url
from tests.flows.recovery.lost import Losing
from tests.flows.world import World
from tests.relays import CHAIN_KEY

from payrelay.clock import Clock
from payrelay.runtime.recovery.revocation_list import RevocationList
from payrelay.store.engine.opening import open_database


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
        lost_commits=losing.lost_commits(),
        revocations=RevocationList(tmp_path / "marks", CHAIN_KEY, world.relay.log),
    )
    yield losing
    await world.relay.background.finish(0)
    await database.close()
