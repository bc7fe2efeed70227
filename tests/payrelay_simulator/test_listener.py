import aiohttp
import pytest
from aiohttp import ClientSession

from payrelay_simulator import Running

PATH = "/merchant/v1/subscription"


async def is_refused(session: ClientSession) -> bool:
    """Say whether a connection cannot be made."""
    try:
        async with session.get(PATH) as response:
            assert response.status == 200
    except aiohttp.ClientConnectorError:
        return True
    return False


async def test_closed_socket_refuses_and_opens_again(running: Running, session: ClientSession) -> None:
    """A client can be sure that nothing was sent; kept connections are gone as well."""
    assert not await is_refused(session)
    running.listener.close()
    assert [await is_refused(session), running.listener.is_open] == [True, False]

    await running.listener.open()

    assert not await is_refused(session)


async def test_closing_twice_is_closing_once(running: Running, session: ClientSession) -> None:
    """Orders to the listener may be repeated."""
    running.listener.close()
    running.listener.close()
    await running.listener.open()
    await running.listener.open()

    assert not await is_refused(session)


async def test_next_connections_are_reset(running: Running, session: ClientSession) -> None:
    """A connection that is made and at once lost leaves the client in doubt."""
    running.listener.reset_next(1)
    with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
        # A POST is not repeated by the client on its own.
        await session.post(PATH)

    assert not await is_refused(session)


async def test_port_stays_taken_while_closed(running: Running) -> None:
    """Nobody else can take the address of a simulator that is out for a while."""
    host, port = running.listener.address
    running.listener.close()

    assert running.listener.address == (host, port)
    await running.listener.open()
    assert running.base_url == f"http://{host}:{port}"


async def test_socket_opens_again_by_itself(running: Running) -> None:
    """An outage that was ordered for a while is over after it."""
    running.listener.close_for(60)
    running.listener.close_for(0.001)
    await running.listener.wait_open()

    assert running.listener.is_open
