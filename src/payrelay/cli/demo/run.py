"""The demo: a gateway simulator and the service in one process, a key, and a call to copy for each operation."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Final

import payrelay_simulator
from payrelay.api import serving
from payrelay.api.http.request_log import json_log
from payrelay.app import Service, remove_database, running
from payrelay.cli.demo.case import make_case
from payrelay.cli.demo.introduction import introduce
from payrelay.cli.demo.parts import (
    DATABASE,
    FOLDER,
    LOG,
    DemoAddresses,
    addresses_on,
    listener_near,
    settings_of,
    write_config,
)
from payrelay.cli.demo.people import key_of, operator_of
from payrelay.cli.demo.shop import running_shop
from payrelay.cli.demo.yesterday import Past, yesterday
from payrelay.cli.terminal.pages import Page
from payrelay.clock import Clock
from payrelay.server import stopped_by_signals

DRAIN_S: Final = 1.0
"""Nothing in a demo is worth waiting for."""
SHOP_PORT: Final = 8090
SECOND_HOLD: Final = payrelay_simulator.Seed(
    holds=[
        payrelay_simulator.HoldSeed(
            order_id="DemoHold2",
            amount=Decimal("150.00"),
            description="Hotel room 4",
            authorization_token="d3a0d3a0-0000-4000-8000-000000000002",  # noqa: S106 - known to all
        )
    ]
)
"""What the example of a void in the docs names: the demonstration world's only hold is captured by another example."""


async def run_demo(host: str, port: int, shop: Path | None = None) -> None:
    """Runs until SIGTERM or SIGINT, with a shop beside it where one is named.

    Raises SettingsError or StoreUnusable where it can't start.
    """
    page = Page()
    FOLDER.mkdir(exist_ok=True)
    # The simulator forgets its world at the end, so that what is known of it would be wrong at the next start.
    remove_database(DATABASE)
    listener = listener_near(host, port)
    # Any port for the service means any port for the shop, which can't be given the socket: it is held until then.
    shop_listener = listener_near(host, SHOP_PORT if port else 0)
    addresses = addresses_on(host, listener, shop, shop_listener)
    with stopped_by_signals() as signals, LOG.open("wb") as log_file:
        stop = signals.asked
        past = Past.begun(Clock())
        simulator = payrelay_simulator.Simulator(clock=past.of_gateway)
        async with payrelay_simulator.serve(simulator, host) as simulated:
            settings = settings_of(simulated, addresses)
            write_config(simulated, addresses)
            day = await yesterday(settings, simulator, past, log=json_log(log_file, past.of_service))
            past.end()
            world = payrelay_simulator.demo_world(simulator)
            payrelay_simulator.plant(simulator.world, SECOND_HOLD)
            async with running(settings, clock=Clock(), log=json_log(log_file, Clock())) as service:
                issued = await key_of(service)
                operator = await operator_of(settings)
                if operator is not None:
                    await make_case(service.relay, issued.credential, simulator, world.customer_token)
                async with (
                    _serving(service, addresses, listener, stop),
                    running_shop(service, addresses, issued, shop_listener),
                ):
                    introduce(
                        page, addresses, addresses.gateway(simulated), issued.key, world, day=day, operator=operator
                    )
                    await stop.wait()
    page.write_line("")
    page.write_line("The demo has ended.")


@asynccontextmanager
async def _serving(
    service: Service, addresses: DemoAddresses, listener: socket.socket, stop: asyncio.Event
) -> AsyncIterator[None]:
    """Serves as long as the context is open, which opens when connections are taken."""
    has_started = asyncio.Event()
    work = asyncio.create_task(
        serving.serve(
            service.api,
            addresses.host,
            addresses.port,
            stop=stop,
            on_started=lambda _host, _port: has_started.set(),
            drain_s=DRAIN_S,
            listener=listener,
        )
    )
    starting = asyncio.create_task(has_started.wait())
    await asyncio.wait({work, starting}, return_when=asyncio.FIRST_COMPLETED)
    if not has_started.is_set():
        starting.cancel()
        await work  # it says why
    try:
        yield
    finally:
        stop.set()
        await work
