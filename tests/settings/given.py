"""Settings as the tests give them, and the error line of a wrong one."""

import base64
from pathlib import Path

import pytest

from payrelay.errors import SettingsError
from payrelay.gateways.payhere.settings import PayHereSettings
from payrelay.settings import Settings, read_settings

KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()
GATEWAY = {"PAYRELAY_GATEWAYS__GATEWAY__APP_ID": "4OVx", "PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET": "hush-hush"}
PROVIDER = {
    "IDENTITY__JWKS_URL": "https://login.example/jwks.json",
    "IDENTITY__ISSUER": "https://login.example/",
    "IDENTITY__AUDIENCE": "payrelay",
    "IDENTITY__PRINCIPAL": "shop",
}


def of(directory: Path, **variables: str) -> Settings:
    """Reads settings given by their names without PAYRELAY_."""
    return read_settings({f"PAYRELAY_{name}": value for name, value in variables.items()}, directory)


def payhere(settings: Settings) -> PayHereSettings:
    """Gives what only PayHere has of the account called "a"."""
    own: object = settings.gateways["a"]
    assert isinstance(own, PayHereSettings)
    return own


def error_line(directory: Path, **variables: str) -> str:
    """Gives the line of the error that ends the start."""
    with pytest.raises(SettingsError) as caught:
        of(directory, **variables)
    return str(caught.value)
