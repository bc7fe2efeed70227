from collections.abc import AsyncIterator

import pytest
from tests.gateways.http.servers import Server, listening


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """A server on a real socket."""
    served = Server()
    async with listening(served):
        yield served
