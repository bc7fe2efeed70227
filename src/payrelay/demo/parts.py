"""Where the parts of a demo stand, what the service is set to, and the file by which commands find all of it."""

import errno
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

import payrelay_simulator
from payrelay.api import serving
from payrelay.core.secret import Secret
from payrelay.demo.reach import reached_at
from payrelay.errors import SettingsError
from payrelay.server import address_of
from payrelay.settings import Settings, is_loopback

FOLDER: Final = Path(".payrelay")
"""Below the working directory; nothing is written elsewhere."""
PORTS_TRIED: Final = 20
"""From the wanted port on; who has more of them taken names one."""
ACCOUNT: Final = "gateway"
DATABASE: Final = FOLDER / "demo.db"
LOG: Final = FOLDER / "demo.log"
CONFIG: Final = FOLDER / "payrelay.toml"
_OWN: Final = 0o600


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoAddresses:
    """Where the parts of a demo stand: each must know the others' addresses before it starts.

    Attributes:
        host, port: where the service listens; the others listen on the same host.
        reached_at: the host by which others reach it, such as a phone in the same network.
        shop: the program that is run beside it; None for none.
        shop_port: where that listens.
    """

    host: str
    reached_at: str
    port: int
    shop: Path | None
    shop_port: int

    @property
    def service(self) -> str:
        """The service's address."""
        return address_of(self.reached_at, self.port)

    @property
    def shop_address(self) -> str | None:
        """The shop's address, where there is one."""
        return None if self.shop is None else address_of(self.reached_at, self.shop_port)

    def gateway(self, simulated: payrelay_simulator.Running) -> str:
        """The simulator's address, as a customer's browser opens it too."""
        return address_of(self.reached_at, simulated.listener.address[1])


def addresses_on(host: str, service: socket.socket, shop: Path | None, shop_listener: socket.socket) -> DemoAddresses:
    """Gives where a demo stands whose parts listen on a host, by the sockets that hold their ports."""
    port, shop_port = (listener.getsockname()[1] for listener in (service, shop_listener))
    return DemoAddresses(host=host, reached_at=reached_at(host), port=port, shop=shop, shop_port=shop_port)


def gateway_settings(simulated: payrelay_simulator.Running, addresses: DemoAddresses) -> dict[str, object]:
    """Gives the settings of the account at the simulator."""
    merchant = simulated.simulator.merchant
    return {
        "simulator": True,
        "base_url": addresses.gateway(simulated),
        "app_id": merchant.app_id,
        "app_secret": merchant.app_secret,
        "merchant_id": merchant.merchant_id,
        "merchant_secret": merchant.merchant_secret,
        "signs_elsewhere": False,
    }


def write_config(simulated: payrelay_simulator.Running, addresses: DemoAddresses, path: Path = CONFIG) -> None:
    """Writes what commands need to work on the demo's database, beside its service; others can't read it."""
    lines = [f"database_url = {json.dumps(f'sqlite:///{DATABASE}')}", "", f"[gateways.{ACCOUNT}]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in gateway_settings(simulated, addresses).items()]
    # As the service may, which sends events to programs on its own machine.
    lines += ["", "[events]", f"allowed_hosts = {json.dumps(addresses.reached_at)}"]
    path.unlink(missing_ok=True)
    path.touch(mode=_OWN)
    path.write_text("\n".join([*lines, ""]))


def settings_of(simulated: payrelay_simulator.Running, addresses: DemoAddresses) -> Settings:
    """Gives the service's settings. Raises SettingsError for a host that the demo can't be reached at."""
    own: dict[str, object] = {
        "database_url": Secret(f"sqlite:///{DATABASE}"),
        "gateways": {ACCOUNT: gateway_settings(simulated, addresses)},
        "public_url": addresses.service,
        "console": {"enabled": is_loopback(addresses.host), "second_factor": "optional"},
        "events": {"allowed_hosts": addresses.reached_at},
    }
    if addresses.shop_address is not None:
        own |= {
            "browser_origins": [addresses.shop_address],
            "return_links": [f"{addresses.shop_address}/*"],
        }
    try:
        return Settings.model_validate(own)
    except ValidationError:
        raise SettingsError(
            f"the demo can't be opened at {addresses.reached_at}: --host takes a number of this machine's on a private"
            " network, such as 192.168.1.5, or 0.0.0.0"
        ) from None


def listener_near(host: str, port: int) -> socket.socket:
    """Listens on the wanted port, or on the next that is free. Raises SettingsError where none is."""
    for candidate in range(port, port + PORTS_TRIED):
        try:
            return serving.listener_on(host, candidate)
        except SettingsError as error:
            is_taken = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE
            if not is_taken or candidate == port + PORTS_TRIED - 1:
                raise
    raise SettingsError(f"no port is free on {host} from {port} on")
