import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.gateways.http.servers import Server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """A server on a real socket."""
    served = Server()
    listener = await asyncio.start_server(served.connected, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    yield served
    await served.end()
    listener.close()
    await listener.wait_closed()
