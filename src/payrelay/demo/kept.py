"""What a demo that is kept goes on with at its next start: its ports, its key and secrets, and what it prints.

The books are in the database, and what happened at the gateway is in the simulator's own file. This file is written
last: where it is missing, a first start was interrupted, and the next one begins anew.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from payrelay.demo.parts import DATABASE, FOLDER
from payrelay.errors import SettingsError
from payrelay_simulator import DemoWorld

KEPT: Final = FOLDER / "demo-kept.json"
WORLD: Final = FOLDER / "demo-world"
_OWN: Final = 0o600
BEGIN_ANEW: Final = "start without --keep to begin anew"


class KeptDemo(msgspec.Struct, frozen=True, kw_only=True):
    """A demo as it is kept.

    Attributes:
        reached_at: the host by which it is reached, which is a part of the merchant's identity.
        port, shop_port, gateway_port: where its parts listen.
        key: the key that is printed; ``credential_id`` names its row.
        webhook_secret, shop_secret: what its shop was given; None where it has had no shop.
        world: the samples at the gateway.
    """

    reached_at: str
    port: int
    shop_port: int
    gateway_port: int
    key: str
    credential_id: str
    world: DemoWorld
    webhook_secret: str | None = None
    shop_secret: str | None = None

    def write(self) -> None:
        """Replaces the file; nobody else can read it."""
        draft = KEPT.with_name(f"{KEPT.name}.new")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWN), "wb") as file:  # noqa: PTH123  its mode
            file.write(msgspec.json.encode(self))
        draft.replace(KEPT)


def read_kept() -> KeptDemo | None:
    """Reads the demo that is kept in the working directory; None where none is.

    Raises SettingsError where a part of it is missing or can't be read: a part that began anew would tell something
    else than the others.
    """
    try:
        kept = msgspec.json.decode(KEPT.read_bytes(), type=KeptDemo)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise SettingsError(f"{KEPT} can't be read ({type(error).__name__}): {BEGIN_ANEW}") from None
    missing: list[Path] = [path for path in (DATABASE, WORLD) if not path.is_file()]
    if missing:
        raise SettingsError(f"the demo is kept, but {missing[0]} isn't there: {BEGIN_ANEW}")
    return kept


def forget_kept() -> None:
    """Removes what is kept, the file that says so first."""
    for path in (KEPT, WORLD):
        path.unlink(missing_ok=True)
