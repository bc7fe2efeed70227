from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.flows.world import World, opened

from payrelay.flows.audit.audit import Audit


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Gives a relay with one account that has no limit. Whatever a flow did, the audit must find no change."""
    world = World(await opened(tmp_path / "payrelay.db"), tmp_path / "payrelay.db")
    yield world
    await world.relay.background.finish(0)
    audit = Audit(world.journal.trail, 0, lambda *_: None, rows=world.relay.checkouts.rows)
    found = [finding async for finding in audit.findings()]
    assert found == []
    await world.database.close()
