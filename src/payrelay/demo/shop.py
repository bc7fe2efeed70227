"""The shop beside the demo: a program of its own, with a key, an endpoint for its events, and a folder of its own."""

import asyncio
import secrets
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from payrelay.app import Service
from payrelay.demo.parts import ACCOUNT, FOLDER, DemoAddresses
from payrelay.flows.access.issue_key import IssuedKey
from payrelay.flows.events.manage_endpoints import NewEndpoint, Owner, create_endpoint
from payrelay.settings import child_environment

_LOG: Final = FOLDER / "shop.log"
_DATA: Final = FOLDER / "shop"


def command_of(shop: Path, host: str, port: int) -> list[str]:
    """Gives the command that runs a shop, by the language that its name tells."""
    if shop.suffix in {".mjs", ".js"}:
        return ["node", str(shop)]
    if shop.suffix == ".php":
        return ["php", "-S", f"{host}:{port}", str(shop)]
    return [sys.executable, str(shop)]


class ShopSecrets(NamedTuple):
    """What a shop signs its customers' cookies with, and what its webhooks are signed with."""

    own: str
    webhooks: str


def drawn_for(webhooks: str) -> ShopSecrets:
    """Draws a shop's own secret, beside that of its webhooks."""
    return ShopSecrets(secrets.token_hex(), webhooks)


def variables_of(addresses: DemoAddresses, key: str, gateway: str, secrets_of_shop: ShopSecrets) -> dict[str, str]:
    """Gives what a shop is told: where Payrelay and the simulator are, its key and secrets, and its folder."""
    return {
        "PAYRELAY": f"{addresses.service}/{ACCOUNT}/api",
        "PAYRELAY_KEY": key,
        "PAYRELAY_WEBHOOK_SECRET": secrets_of_shop.webhooks,
        "HOST": addresses.host,
        "PORT": str(addresses.shop_port),
        "SHOP_DATA": str(_DATA.resolve()),
        "SHOP_SECRET": secrets_of_shop.own,
        "SHOP_SIMULATOR": gateway,
    }


async def new_secrets(service: Service, addresses: DemoAddresses, issued: IssuedKey) -> ShopSecrets | None:
    """Registers the endpoint of a new shop, and forgets what an earlier one has kept; None where there is no shop."""
    if addresses.shop is None:
        return None
    owner = Owner(
        account=ACCOUNT,
        merchant=service.relay.account(ACCOUNT).merchant,
        principal=issued.credential.principal,
    )
    endpoint = NewEndpoint(url=f"{addresses.shop_address}/webhooks", types=("*",), label="The demo's shop")
    secret = (await create_endpoint(service.relay.dispatch, owner, endpoint)).secret
    # The database is new, so that what a shop has kept of an earlier one is of payments that nobody knows.
    shutil.rmtree(_DATA, ignore_errors=True)
    return drawn_for(secret)


@asynccontextmanager
async def running_shop(
    addresses: DemoAddresses, key: str, gateway: str, secrets_of_shop: ShopSecrets | None, held: socket.socket
) -> AsyncIterator[None]:
    """Runs the shop as long as the context is open, where there is one; what it says goes to a file.

    ``held`` holds its port until it starts.
    """
    held.close()
    if addresses.shop is None or secrets_of_shop is None:
        yield
        return
    environment = child_environment() | variables_of(addresses, key, gateway, secrets_of_shop)
    with _LOG.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command_of(addresses.shop, addresses.host, addresses.shop_port), env=environment, stdout=log, stderr=log
        )
        try:
            yield
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
