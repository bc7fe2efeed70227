"""Where the parts of a demo stand, what the service is set to, and the file by which commands find all of it."""

import errno
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import payrelay_simulator
from payrelay.api import serving
from payrelay.core.secret import Secret
from payrelay.errors import SettingsError
from payrelay.server import address_of
from payrelay.settings import Settings, is_loopback

FOLDER: Final = Path(".payrelay")
"""Below the working directory; nothing is written elsewhere."""
PORTS_TRIED: Final = 20
"""From the wanted port on; who has more of them taken names one."""
ACCOUNT: Final = "gateway"
SHOP_HOST: Final = "127.0.0.1"
DATABASE: Final = FOLDER / "demo.db"
LOG: Final = FOLDER / "demo.log"
CONFIG: Final = FOLDER / "payrelay.toml"
_OWN: Final = 0o600


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoAddresses:
    """Where the parts of a demo stand: each must know the others' addresses before it starts.

    Attributes:
        host, port: of the service.
        shop: the program that is run beside it; None for none.
        shop_port: where that listens, on this machine alone.
    """

    host: str
    port: int
    shop: Path | None
    shop_port: int

    @property
    def service(self) -> str:
        """The service's address."""
        return address_of(self.host, self.port)

    @property
    def shop_address(self) -> str | None:
        """The shop's address, where there is one."""
        return None if self.shop is None else address_of(SHOP_HOST, self.shop_port)


def gateway_settings(simulated: payrelay_simulator.Running) -> dict[str, object]:
    """Gives the settings of the account at the simulator."""
    merchant = simulated.simulator.merchant
    return {
        "base_url": simulated.base_url,
        "app_id": merchant.app_id,
        "app_secret": merchant.app_secret,
        "merchant_id": merchant.merchant_id,
        "merchant_secret": merchant.merchant_secret,
        "signs_elsewhere": False,
    }


def write_config(simulated: payrelay_simulator.Running, path: Path = CONFIG) -> None:
    """Writes what commands need to work on the demo's database, beside its service; others can't read it."""
    lines = [f"database_url = {json.dumps(f'sqlite:///{DATABASE}')}", "", f"[gateways.{ACCOUNT}]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in gateway_settings(simulated).items()]
    path.unlink(missing_ok=True)
    path.touch(mode=_OWN)
    path.write_text("\n".join([*lines, ""]))


def settings_of(simulated: payrelay_simulator.Running, addresses: DemoAddresses) -> Settings:
    """Gives the service's settings."""
    own: dict[str, object] = {
        "database_url": Secret(f"sqlite:///{DATABASE}"),
        "gateways": {ACCOUNT: gateway_settings(simulated)},
        "public_url": addresses.service,
        "console": {"enabled": is_loopback(addresses.host), "second_factor": "optional"},
    }
    if addresses.shop_address is not None:
        own |= {
            "browser_origins": [addresses.shop_address],
            "return_links": [f"{addresses.shop_address}/*"],
            "events": {"allowed_hosts": SHOP_HOST},
        }
    return Settings.model_validate(own)


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
