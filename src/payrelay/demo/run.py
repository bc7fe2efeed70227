"""The demo: a gateway simulator and the service in one process, a key, and a call to copy for each operation."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from payrelay.api import serving
from payrelay.api.http.request_log import json_log
from payrelay.app import Service, running
from payrelay.cli.terminal.pages import Page
from payrelay.clock import Clock
from payrelay.demo.introduction import introduce
from payrelay.demo.parts import FOLDER, LOG, DemoAddresses, addresses_on, settings_of, write_config
from payrelay.demo.shop import running_shop
from payrelay.demo.standing import (
    begun,
    gone_on,
    keep_standing,
    kept_or_cleared,
    listeners_of,
    require_same_place,
    simulated,
    simulator_of,
)
from payrelay.server import stopped_by_signals

DRAIN_S: Final = 1.0
"""Nothing in a demo is worth waiting for."""


async def run_demo(host: str, port: int, shop: Path | None = None, *, keep: bool = False) -> None:
    """Runs until SIGTERM or SIGINT, with a shop beside it where one is named.

    With ``keep`` it goes on with the world, the ports and the key of the last start that was kept, and keeps them.
    Raises SettingsError or StoreUnusable where it can't start.
    """
    page = Page()
    FOLDER.mkdir(exist_ok=True)
    kept = kept_or_cleared(keep=keep)
    listener, shop_listener = listeners_of(kept, host, port)
    addresses = addresses_on(host, listener, shop, shop_listener)
    require_same_place(kept, addresses)
    with stopped_by_signals() as signals, LOG.open("wb") as log_file:
        stop = signals.asked
        simulator = simulator_of(kept)
        async with simulated(simulator, host, kept) as gateway:
            settings = settings_of(gateway, addresses)
            write_config(gateway, addresses)
            async with running(settings, clock=Clock(), log=json_log(log_file, Clock())) as service:
                if kept is None:
                    standing = await begun(service, addresses, simulator)
                else:
                    standing = await gone_on(service, addresses, kept)
                if keep:
                    keep_standing(standing, addresses, gateway, is_new=kept is None)
                at_gateway, own = addresses.gateway(gateway), standing.secrets_of_shop
                async with (
                    _serving(service, addresses, listener, stop),
                    running_shop(addresses, standing.issued.key, at_gateway, own, shop_listener),
                ):
                    introduce(page, addresses, at_gateway, standing, is_kept=keep)
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
