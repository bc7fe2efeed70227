import aiohttp
import pytest

from payrelay_simulator import Rule, Running, Simulator, serve
from payrelay_simulator.server import introduction


async def test_served_on_any_free_port() -> None:
    """Two simulators can be served in one test."""
    async with serve(Simulator()) as one, serve(Simulator()) as other:
        assert one.base_url != other.base_url


async def test_taken_port_is_an_os_error(running: Running) -> None:
    """Whoever starts a second simulator on the same port is told."""
    host, port = running.listener.address
    with pytest.raises(OSError, match="in use"):
        async with serve(Simulator(), host, port):
            pass


async def test_nobody_listens_afterwards() -> None:
    """A test leaves nothing behind, a hanging call and a closed listener included."""
    simulator = Simulator()
    simulator.world.faults.add_rules(Rule(fault="hang_before"))
    async with serve(simulator) as running, aiohttp.ClientSession(running.base_url) as session:
        with pytest.raises(TimeoutError):
            await session.get("/merchant/v1/subscription", timeout=aiohttp.ClientTimeout(total=0.05))
        running.listener.close_for(60)

    async with aiohttp.ClientSession(running.base_url) as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get("/_sim/clock")


async def test_search_for_the_longest_order_is_read(running: Running) -> None:
    """An order's id may have 255 characters of any script, each of twelve in an address."""
    async with aiohttp.ClientSession(running.base_url) as session:
        found = await session.get("/merchant/v1/payment/search", params={"order_id": "\U0001f375" * 255})

    assert found.status == 401  # for want of a token


def test_introduction_tells_all_that_a_client_needs() -> None:
    """One line holds the address and the credentials."""
    simulator = Simulator()
    line = introduction(Running(base_url="http://127.0.0.1:8600", simulator=simulator))

    assert all(word in line for word in ("http://127.0.0.1:8600", simulator.merchant.app_secret, "merchant_id="))
    assert "\n" not in line
