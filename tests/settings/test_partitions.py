"""Accounts that are divided among installations: what an installation serves, and which divisions are refused."""

from pathlib import Path

import pytest

from payrelay.errors import SettingsError
from payrelay.settings import Settings, read_settings, require_serving

SHOP = {"PAYRELAY_GATEWAYS__SHOP__APP_ID": "a", "PAYRELAY_GATEWAYS__SHOP__APP_SECRET": "s"}
CLUB = {"PAYRELAY_GATEWAYS__CLUB__APP_ID": "b", "PAYRELAY_GATEWAYS__CLUB__APP_SECRET": "s"}
MAP = "# which account is where\nshop east\n\n  club \t west  \n"
ONE_MERCHANT = {f"PAYRELAY_GATEWAYS__{name}__MERCHANT_ID": "1200001" for name in ("SHOP", "CLUB")}


def read(folder: Path, text: str | bytes = MAP, partition: str = "east", **more: str) -> Settings:
    """Reads the settings of an installation that has both accounts, and this map."""
    file = folder / "partitions.map"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    named = {"PAYRELAY_PARTITION_MAP": str(file), "PAYRELAY_PARTITION": partition}
    return read_settings(SHOP | CLUB | named | more, folder)


@pytest.mark.parametrize(("partition", "accounts"), [("east", {"shop"}), ("west", {"club"})])
def test_an_installation_has_the_accounts_of_its_partition(tmp_path: Path, partition: str, accounts: set[str]) -> None:
    """One file may configure all: an account that two installations served would have its orders in two databases."""
    assert set(read(tmp_path, partition=partition).gateways) == accounts


@pytest.mark.parametrize(
    ("accounts", "left"), [("shop,club", {"shop"}), ("shop", {"shop"}), ("club", None), ("", set())]
)
def test_an_identity_provider_opens_no_account_more(tmp_path: Path, accounts: str, left: set[str] | None) -> None:
    """No account named stands for all: whose only account is elsewhere must not open all that are here."""
    identity = {
        "PAYRELAY_IDENTITY__JWKS_URL": "https://login.example/keys",
        "PAYRELAY_IDENTITY__ISSUER": "https://login.example",
        "PAYRELAY_IDENTITY__AUDIENCE": "pay",
        "PAYRELAY_IDENTITY__PRINCIPAL": "shop",
        "PAYRELAY_IDENTITY__ACCOUNTS": accounts,
    }
    east = read(tmp_path, **identity)

    require_serving(east)
    assert (None if east.identity is None else set(east.identity.accounts)) == left


@pytest.mark.parametrize(
    ("text", "changes", "said"),
    [
        (MAP, {"PAYRELAY_PARTITION": ""}, "are set together or not at all"),
        (MAP, {"PAYRELAY_PARTITION_MAP": ""}, "are set together or not at all"),
        (MAP, {"PAYRELAY_PARTITION_MAP": "/nowhere"}, "PARTITION_MAP names a file that can't be read"),
        (b"shop east\xff", {}, "PARTITION_MAP names a file that is not text"),
        (MAP, {"PAYRELAY_PARTITION": "north"}, "PARTITION names north, which has no account"),
        ("", {}, "the account club is in no partition"),
        (f"{MAP}shop west", {}, "PARTITION_MAP has the account shop twice: east, west"),
        (f"{MAP}shop east", {}, "PARTITION_MAP has the account shop twice: east, east"),
        ("shop east\nclub", {}, "something else in line 2"),
        ("shop east\nclub west as well", {}, "something else in line 2"),
        ("shop east\nClub west", {}, "something else in line 2"),
        (" # HAProxy takes this for an account\nshop east", {}, "something else in line 1"),
        ("shop east\nother west", {}, "the account club is in no partition"),
        (f"{MAP}more east", {}, "partition east has the account more, but no gateway has that name"),
        (MAP, ONE_MERCHANT, "club and shop are accounts of one merchant, and in two partitions: west, east"),
    ],
)
def test_a_division_that_could_charge_twice_is_refused(
    tmp_path: Path, text: str | bytes, changes: dict[str, str], said: str
) -> None:
    """Each of them would have one merchant's orders in two databases, or in none, or leaves that open."""
    with pytest.raises(SettingsError, match=said):
        read(tmp_path, text, **changes)


def test_a_map_that_others_may_change_is_refused(tmp_path: Path) -> None:
    """Whoever moves an account to another installation in it has its orders charged in two databases."""
    read(tmp_path)
    (tmp_path / "partitions.map").chmod(0o664)
    with pytest.raises(SettingsError, match=r"PARTITION_MAP is not safe: .* mode 0664"):
        read(tmp_path)
