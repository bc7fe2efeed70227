"""A person whom an identity provider names pays with the version before, and goes on with this one."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from tests.matrix.version_before import VersionMissing, version_before
from tests.needed import lacking
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client
from tests.scenarios.identity_provider import IdentityProvider
from tests.scenarios.phones import data
from tests.scenarios.program import Program
from tests.scenarios.stories import charge_body, settings_for

PRICE: Final[dict[str, Any]] = {"amount": "345.67", "currency": "LKR"}
SCOPES: Final = "payments:charge,operations:read"
ANNA: Final = "anna@example.org"
WITH_NAMES: Final = "1c4a5745e1e63f934b183ff53b94d64da6df07e8"
"""The last commit that stored a person's name in clear, in the Idempotency-Keys."""


@pytest.fixture
def older(tmp_path: Path) -> dict[str, str]:
    """Puts the sources of the version before into a folder; gives the settings with which they are what is run."""
    try:
        return version_before(tmp_path / "before", WITH_NAMES)
    except VersionMissing as missing:
        lacking(str(missing))


@pytest.fixture
def gateway() -> Iterator[GatewayDouble]:
    """A gateway that counts what it is asked."""
    with GatewayDouble() as double:
        yield double


def rows_of(folder: Path) -> str:
    """Gives all that lies in the database's tables, as text."""
    with closing(sqlite3.connect(folder / "payrelay.db")) as database:
        return "\n".join(database.iterdump())


def pay(server: Client, provider: IdentityProvider, order_id: str) -> Any:  # noqa: ANN401, a reply
    """Has the person's phone pay for an order, under the key that it stored with the order."""
    body = charge_body(order_id)
    del body["customer_token"]
    return server.holding(provider.token(ANNA, order=order_id, **PRICE)).charge(body, key="pay")


def test_a_repeat_across_the_upgrade_is_answered_and_an_erasure_leaves_no_name(
    tmp_path: Path, older: dict[str, str], gateway: GatewayDouble
) -> None:
    """The answer is lost with the old process: nobody pays twice, and the name that it stored can be erased."""
    with IdentityProvider() as provider:
        environment = settings_for(gateway) | {"PAYRELAY_PUBLIC_URL": "https://pay.example"}
        environment |= provider.settings(
            ORDER_CLAIM="order", AMOUNT_CLAIM="amount", CURRENCY_CLAIM="currency", SCOPES=SCOPES, ACCOUNTS="gateway"
        )
        folder = tmp_path / "service"
        folder.mkdir()
        before = Program(folder, environment | older, (sys.executable, "-m", "payrelay"))
        now = Program(folder, environment)
        try:
            key = before.run("keys", "create", "--name", "shop")
            server = before.start().client(key.stdout.strip())
            customer = data(server.post("customers", {"customer_token": "T" * 32, "reference": ANNA}))
            paid = pay(server, provider, "A-1")
            assert paid.status == 200, str(paid)
            assert before.stop() == 0
            assert "reference/anna%40example.org/pay" in rows_of(folder)

            assert now.run("db", "upgrade").returncode == 0
            server = now.start().client(key.stdout.strip())
            again = pay(server, provider, "A-1")
            assert (again.status, again.body) == (200, paid.body)
            phone = server.holding(provider.token(ANNA, order="A-1"))
            assert data(phone.get("operations/by-key/pay"))["idempotency_key"] == "pay"
            assert gateway.count("payment/charge", "A-1") == 1

            assert data(server.post(f"customers/{customer['id']}/erase"))["files_cleared"]
            assert not [line for line in rows_of(folder).splitlines() if "anna" in line]
            verified = now.run("audit", "verify")
            assert verified.returncode == 0, verified.stdout
            assert now.stop() == 0
        finally:
            for program in (before, now):
                program.kill()
