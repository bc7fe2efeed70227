import contextlib
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from payrelay.api.metrics.health import LIVE
from payrelay.cli.checks.public_address import PublicAddressState, try_public_address


class Loopback(AbstractResolver):
    """Leads every name to this machine, as the name of a public address leads to a proxy."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Gives the address of this machine."""
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        """Has nothing to let go of."""


@contextlib.asynccontextmanager
async def listening(body: bytes, status: int = 200) -> AsyncIterator[int]:
    """Answers every request with a body, on a port of its own."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body, status=status)

    application = web.Application()
    application.router.add_get("/health/live", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def tried(port: int) -> PublicAddressState:
    """Tries a name that leads to a port of this machine."""
    return await try_public_address(
        f"http://pay.example:{port}", connector=aiohttp.TCPConnector(resolver=Loopback(), force_close=True)
    )


@pytest.mark.parametrize(
    ("body", "status", "state"),
    [
        (LIVE, 200, PublicAddressState.ANSWERS),
        (b"<h1>Welcome to nginx!</h1>", 200, PublicAddressState.OTHER),
        (LIVE, 502, PublicAddressState.OTHER),
        (b"", 301, PublicAddressState.OTHER),
    ],
)
async def test_what_answers_at_the_address_is_told_apart(body: bytes, status: int, state: PublicAddressState) -> None:
    """An operator who put the wrong name into the settings would otherwise learn it from missing notifications."""
    async with listening(body, status) as port:
        assert await tried(port) is state


async def test_an_address_where_nothing_answers_is_silent() -> None:
    """The proxy is not set up yet, or the service does not run."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert await tried(taken.getsockname()[1]) is PublicAddressState.SILENT


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "https://10.0.0.8", "https://[::1]", "http://localhost:1", "http://pay.localhost:1"]
)
async def test_a_private_address_is_one_that_no_gateway_reaches(url: str) -> None:
    """That a service answers there says nothing, so it is not even called."""
    assert await try_public_address(url) is PublicAddressState.PRIVATE
