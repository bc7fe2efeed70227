"""How a demo comes to stand: anew, or as the last one was that was kept."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, NamedTuple

import payrelay_simulator
from payrelay.api import serving
from payrelay.app import Service, remove_database
from payrelay.clock import Clock
from payrelay.demo.kept import BEGIN_ANEW, WORLD, KeptDemo, forget_kept, read_kept
from payrelay.demo.parts import DATABASE, DemoAddresses, listener_near
from payrelay.demo.shop import ShopSecrets, new_secrets
from payrelay.errors import SettingsError
from payrelay.flows.access.issue_key import IssuedKey, KeyRequest, issue_key

SHOP_PORT: Final = 8090


class StandingDemo(NamedTuple):
    """What a demo is, once it stands: what it prints, and what its shop is given."""

    issued: IssuedKey
    world: payrelay_simulator.DemoWorld
    secrets_of_shop: ShopSecrets | None


def kept_or_cleared(*, keep: bool) -> KeptDemo | None:
    """Gives the demo that is kept, and is to go on; None where a new one begins, and then the old one is removed.

    Raises SettingsError where the kept one isn't whole; StoreUnusable where another demo runs.
    """
    kept = read_kept() if keep else None
    if kept is None:
        # The books go last: what is left of a demo whose removal was interrupted is then no kept one.
        forget_kept()
        remove_database(DATABASE)
    return kept


def listeners_of(kept: KeptDemo | None, host: str, port: int) -> tuple[socket.socket, socket.socket]:
    """Listens for the service and for its shop: on the kept ports, or on those from the wanted ones on.

    Raises SettingsError where there is none.
    """
    if kept is not None:
        return serving.listener_on(host, kept.port), serving.listener_on(host, kept.shop_port)
    # Any port for the service means any port for the shop, which can't be given the socket: it is held until then.
    return listener_near(host, port), listener_near(host, SHOP_PORT if port else 0)


def require_same_place(kept: KeptDemo | None, addresses: DemoAddresses) -> None:
    """Raises SettingsError where a kept demo would be reached elsewhere: the merchant of its books is another then."""
    if kept is not None and kept.reached_at != addresses.reached_at:
        raise SettingsError(f"this demo is kept at {kept.reached_at}: start it there, or without --keep to begin anew")


def simulator_of(kept: KeptDemo | None) -> payrelay_simulator.Simulator:
    """Gives a new simulator, or the kept one. Raises SettingsError where that can't be read."""
    if kept is None:
        return payrelay_simulator.Simulator()
    try:
        return payrelay_simulator.Simulator.go_on_from(WORLD)
    except payrelay_simulator.KeptWorldError as error:
        raise SettingsError(f"what happened at the kept gateway isn't known: {error}; {BEGIN_ANEW}") from None


@asynccontextmanager
async def simulated(
    simulator: payrelay_simulator.Simulator, host: str, kept: KeptDemo | None
) -> AsyncIterator[payrelay_simulator.Running]:
    """Serves the simulator. Raises SettingsError where its kept port is taken."""
    port = 0 if kept is None else kept.gateway_port
    async with AsyncExitStack() as entered:
        try:
            running = await entered.enter_async_context(payrelay_simulator.serve(simulator, host, port))
        except OSError as error:
            raise SettingsError(f"the gateway's port {port} can't be had: {error.strerror}; {BEGIN_ANEW}") from None
        yield running


async def begun(service: Service, addresses: DemoAddresses, simulator: payrelay_simulator.Simulator) -> StandingDemo:
    """Makes the world, the key and the shop's endpoint of a new demo."""
    world = payrelay_simulator.demo_world(simulator)
    issued = await issue_key(service.credentials, Clock(), KeyRequest(principal="demo", environment="sandbox"))
    return StandingDemo(issued, world, await new_secrets(service, addresses, issued))


async def gone_on(service: Service, addresses: DemoAddresses, kept: KeptDemo) -> StandingDemo:
    """Gives what a kept demo was; one that gets its first shop now gets an endpoint for it.

    Raises SettingsError where its key isn't in the database; StoreError.
    """
    credential = await service.credentials.get(kept.credential_id)
    if credential is None:
        raise SettingsError(f"the kept demo's key isn't in its database: {BEGIN_ANEW}")
    issued = IssuedKey(key=kept.key, credential=credential)
    own = None
    if kept.shop_secret is not None and kept.webhook_secret is not None:
        own = ShopSecrets(kept.shop_secret, kept.webhook_secret)
    own = own or await new_secrets(service, addresses, issued)
    return StandingDemo(issued, kept.world, own)


def keep_standing(
    standing: StandingDemo, addresses: DemoAddresses, running: payrelay_simulator.Running, *, is_new: bool
) -> None:
    """Keeps a demo from now on: the simulator's world first, and last what says that there is one."""
    if is_new:
        running.simulator.keep_in(WORLD)
    own = standing.secrets_of_shop
    KeptDemo(
        reached_at=addresses.reached_at,
        port=addresses.port,
        shop_port=addresses.shop_port,
        gateway_port=running.listener.address[1],
        key=standing.issued.key,
        credential_id=standing.issued.credential.id,
        world=standing.world,
        webhook_secret=None if own is None else own.webhooks,
        shop_secret=None if own is None else own.own,
    ).write()
