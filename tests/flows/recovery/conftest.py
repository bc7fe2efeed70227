import pytest
from tests.flows.recovery.lost_world import LostWorld
from tests.flows.world import World


@pytest.fixture
async def lost(world: World) -> LostWorld:
    """Gives a world that knows a paid order and a subscription; a test says when its newest commits are lost."""
    lost = LostWorld(world)
    await lost.begin()
    return lost
