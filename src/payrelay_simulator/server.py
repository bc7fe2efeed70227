"""Serving the simulator: inside a program's event loop, or as a program of its own."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from payrelay_simulator.listener import Listener
from payrelay_simulator.records import Merchant
from payrelay_simulator.sender import Sender
from payrelay_simulator.simulator import Simulator
from payrelay_simulator.switches import Switches, in_profile

HOST_DEFAULT = "127.0.0.1"

PORT_DEFAULT = 8600

# Of a request's first line; the search for the longest order has 3,112. aiohttp looks up a path of nothing but slashes
# in a time that grows with its square.
REQUEST_LINE_BYTES_MAX = 3_200

# Handlers answer at once or wait on purpose; nothing needs longer to end.
SHUTDOWN_TIMEOUT_S = 1.0


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A simulator that is being served."""

    base_url: str
    simulator: Simulator

    @property
    def listener(self) -> Listener:
        """The listening socket, to be closed and opened."""
        return self.simulator.stage.listener


@asynccontextmanager
async def serve(simulator: Simulator, host: str = HOST_DEFAULT, port: int = 0) -> AsyncIterator[Running]:
    """Serve a simulator in the running event loop; port 0 takes any free one. A simulator is served once."""
    runner = web.AppRunner(
        simulator.app,
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        max_line_size=REQUEST_LINE_BYTES_MAX,
        auto_decompress=False,  # a compressed body is none that the gateway knows, and may be very long
    )
    await runner.setup()
    server = runner.server
    if server is None:
        raise RuntimeError("the runner was set up and has no server")
    listener = simulator.stage.listener

    def connections() -> list[asyncio.BaseTransport]:
        return [each.transport for each in server.connections if each.transport is not None]

    # The runner has no site of its own: the listening socket must be closable while the server goes on.
    sending = asyncio.create_task(Sender(simulator.stage).run())
    try:
        await listener.bind(host, port, server, connections)
        shown_host = f"[{host}]" if ":" in host else host
        yield Running(base_url=f"http://{shown_host}:{listener.address[1]}", simulator=simulator)
    finally:
        sending.cancel()
        await asyncio.wait([sending])
        await listener.end()
        simulator.stage.hangs.release()
        await runner.cleanup()
        # A sender that ended by itself is a fault that nobody may miss.
        if not sending.cancelled():
            sending.result()


def run(
    host: str = HOST_DEFAULT,
    port: int = PORT_DEFAULT,
    *,
    merchant: Merchant | None = None,
    prepare: Callable[[Simulator], object] | None = None,
    profile: str = "docs",
) -> None:
    """Serve until SIGINT or SIGTERM, having printed one line with the address and the credentials.

    `prepare` may fill the simulator before it is served; `profile` is one of `switches.PROFILES`. Raises OSError where
    the address cannot be had.
    """
    merchants = () if merchant is None else (merchant,)
    simulator = Simulator(*merchants, switches=in_profile(Switches(), profile))
    if prepare is not None:
        prepare(simulator)
    asyncio.run(_serve_until_signal(simulator, host, port))


async def _serve_until_signal(simulator: Simulator, host: str, port: int) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with serve(simulator, host, port) as running:
        sys.stdout.write(introduction(running) + "\n")
        sys.stdout.flush()
        await stopped.wait()


def introduction(running: Running) -> str:
    """Return the line that tells all that a client has to be given."""
    merchant = running.simulator.merchant
    return (
        f"PayHere simulator at {running.base_url} app_id={merchant.app_id} app_secret={merchant.app_secret} "
        f"merchant_id={merchant.merchant_id} merchant_secret={merchant.merchant_secret}"
    )
