import pytest
from tests.flows.losing import losing, url
from tests.flows.recovery.lost_world import LostWorld
from tests.flows.world import World

__all__ = ["losing", "url"]


@pytest.fixture
async def lost(world: World) -> LostWorld:
    """Gives a world that knows a paid order and a subscription; a test says when its newest commits are lost."""
    lost = LostWorld(world)
    await lost.begin()
    return lost
