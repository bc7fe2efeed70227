"""What the simulator's tests share: a world that stands still, a merchant who calls it, and a served simulator."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from tests.payrelay_simulator.shop import Receiver, receiving

from payrelay_simulator import (
    Caller,
    Clock,
    DemoWorld,
    Running,
    Simulator,
    Switches,
    World,
    demo_world,
    serve,
)


@pytest.fixture
def simulator() -> Simulator:
    """Return a simulator whose clock stands and which counts no calls."""
    return Simulator(clock=Clock.standing(), switches=Switches(rate_limit_calls=0))


@pytest.fixture
def world(simulator: Simulator) -> World:
    """Return the simulator's world."""
    return simulator.world


@pytest.fixture
def demo(simulator: Simulator) -> DemoWorld:
    """Fill the world with the demonstration's records."""
    return demo_world(simulator)


@pytest.fixture
def caller(world: World) -> Caller:
    """Return the merchant's side of the API."""
    return Caller(world)


@pytest.fixture
def charge_body(demo: DemoWorld) -> dict[str, object]:
    """Return a charge that succeeds."""
    return {
        "order_id": "Order12345",
        "items": "Taxi Hire 123",
        "currency": "LKR",
        "amount": 345.67,
        "customer_token": demo.customer_token,
    }


@pytest.fixture
async def running(simulator: Simulator, demo: DemoWorld) -> AsyncIterator[Running]:
    """Serve the simulator on a free port."""
    assert demo.customer_token in simulator.world.state.customers
    async with serve(simulator) as running:
        yield running


@pytest.fixture
async def session(running: Running, caller: Caller) -> AsyncIterator[aiohttp.ClientSession]:
    """Return a real client that is signed in and gives up after two seconds."""
    caller.sign_in()
    timeout = aiohttp.ClientTimeout(total=2)
    headers = {"Authorization": caller.authorization}
    async with aiohttp.ClientSession(running.base_url, headers=headers, timeout=timeout) as session:
        yield session


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Return a merchant's server that notifications can be sent to."""
    async with receiving() as receiver:
        yield receiver
