from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.operations.world import World, opened


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Gives a relay with one account that has no limit."""
    world = World(await opened(tmp_path / "payrelay.db"), tmp_path / "payrelay.db")
    yield world
    await world.relay.background.finish(0)
    await world.database.close()
