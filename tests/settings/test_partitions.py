"""Accounts that are divided among installations: what an installation serves, and which divisions are refused."""

from pathlib import Path

import pytest

from payrelay.errors import SettingsError
from payrelay.settings import read_settings, require_serving

SHOP = {"PAYRELAY_GATEWAYS__SHOP__APP_ID": "a", "PAYRELAY_GATEWAYS__SHOP__APP_SECRET": "s"}
CLUB = {"PAYRELAY_GATEWAYS__CLUB__APP_ID": "b", "PAYRELAY_GATEWAYS__CLUB__APP_SECRET": "s"}
PARTITIONS = {
    "PAYRELAY_PARTITIONS__EAST__ADDRESS": "http://127.0.0.1:8081, http://127.0.0.1:8082",
    "PAYRELAY_PARTITIONS__EAST__ACCOUNTS": "shop",
    "PAYRELAY_PARTITIONS__WEST__ADDRESS": "https://west.internal",
    "PAYRELAY_PARTITIONS__WEST__ACCOUNTS": "club",
}
WHOLE = SHOP | CLUB | PARTITIONS


def test_an_installation_has_the_accounts_of_its_partition(tmp_path: Path) -> None:
    """One file may configure all: an account that two installations served would have its orders in two databases."""
    east = read_settings(WHOLE | {"PAYRELAY_PARTITION": "east"}, tmp_path)

    assert set(east.gateways) == {"shop"}
    assert east.partitions["east"].address == ("http://127.0.0.1:8081", "http://127.0.0.1:8082")


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
    east = read_settings(WHOLE | identity | {"PAYRELAY_PARTITION": "east"}, tmp_path)

    require_serving(east)
    assert (None if east.identity is None else set(east.identity.accounts)) == left


def test_a_service_must_know_which_partition_it_is(tmp_path: Path) -> None:
    """Else it would serve the accounts of all."""
    with pytest.raises(SettingsError, match="PAYRELAY_PARTITION is missing: which of east, west"):
        require_serving(read_settings(WHOLE, tmp_path))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"PAYRELAY_PARTITION": "north"}, "PARTITION names north"),
        ({"PAYRELAY_PARTITIONS__WEST__ACCOUNTS": "club,shop"}, "the account shop is in two partitions: east, west"),
        ({"PAYRELAY_PARTITIONS__WEST__ACCOUNTS": "other"}, "the account club is in no partition"),
        (
            {"PAYRELAY_PARTITION": "east", "PAYRELAY_PARTITIONS__EAST__ACCOUNTS": "shop,more"},
            "partition east has the account more, but no gateway has that name",
        ),
        (
            {
                "PAYRELAY_GATEWAYS__SHOP__MERCHANT_ID": "1200001",
                "PAYRELAY_GATEWAYS__CLUB__MERCHANT_ID": "1200001",
            },
            "club and shop are accounts of one merchant, and in two partitions: west, east",
        ),
        ({"PAYRELAY_PARTITIONS__WEST__ADDRESS": "west.internal"}, "PAYRELAY_PARTITIONS__WEST__ADDRESS"),
        ({"PAYRELAY_PARTITIONS__WEST__COLOUR": "red"}, "PAYRELAY_PARTITIONS__WEST__COLOUR"),
    ],
    ids=["unknown", "two", "none", "not configured", "one merchant", "no address", "mistyped"],
)
def test_a_division_that_could_charge_twice_is_refused(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    """Each of them would have one merchant's orders in two databases, or in none."""
    with pytest.raises(SettingsError, match=said):
        read_settings(WHOLE | changes, tmp_path)


def test_a_partition_without_partitions_is_a_mistake(tmp_path: Path) -> None:
    """Somebody believes that the accounts are divided, and they aren't."""
    with pytest.raises(SettingsError, match="PAYRELAY_PARTITION is set, and no"):
        read_settings(SHOP | {"PAYRELAY_PARTITION": "east"}, tmp_path)
