"""A page that its customer paid after the backup: no second form, over sockets, until a person has decided."""

import http.client
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.matrix.errand_journey import quiet_port, settings_on
from tests.matrix.gateway import Gateway, simulating
from tests.matrix.restored import LATE_S, begin_recovery_of
from tests.matrix.service import Service
from tests.scenarios import program
from tests.scenarios.http_client import Client, Raw
from tests.scenarios.stories import fresh
from tests.scenarios.test_checkouts import CUSTOMER
from tests.scenarios.waiting import until

pytestmark = pytest.mark.integration

FORM = 'action="http'
LIMIT = "PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT"


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    """The simulator, with an empty world."""
    with simulating() as running:
        yield running


@pytest.fixture
def service(tmp_path: Path, gateway: Gateway) -> Iterator[Service]:
    """A service that is not started yet."""
    own = {"PAYRELAY_DATABASE_URL": f"sqlite:///{tmp_path}/payrelay.db", LIMIT: "off"} | settings_on(quiet_port())
    service = Service(tmp_path, gateway.account | own)
    yield service
    service.kill()


def start(service: Service, *, late_s: int = 0) -> None:
    """Starts it at the port of its public address."""
    service.start(int(service.environment["PAYRELAY_PUBLIC_URL"].rpartition(":")[2]), late_s=late_s)


def stop(service: Service) -> None:
    """Stops it, so that all of its database is in one file."""
    service.ask_to_stop()
    until(service.is_dead, "the service has stopped")


def open_checkout(client: Client, order_id: str) -> dict[str, Any]:
    """Opens a checkout, or finds it again."""
    body = {"type": "payment", "order_id": order_id, "items": "Door bell", "currency": "LKR", "customer": CUSTOMER}
    reply = client.post("checkouts", body | {"amount": Raw(text="1000.00")}, key=order_id)
    assert reply.status == 200, str(reply)
    data = reply.json["data"]
    assert isinstance(data, dict)
    return data


def page_of(service: Service, checkout: dict[str, Any]) -> tuple[int, str]:
    """What a browser is shown at the checkout's address."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    try:
        connection.request("GET", "/" + checkout["url"].split("/", 3)[3])
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_a_page_that_was_paid_after_the_backup_never_shows_its_form_again(
    tmp_path: Path, service: Service, gateway: Gateway
) -> None:
    """The customer paid, and the books forgot it. Nobody is asked to pay twice, and who didn't pay may pay now."""
    made = program.run(tmp_path, service.environment, "keys", "create", "--name", "shop")
    key = made.stdout.strip()
    start(service)
    client = service.client(key)
    known, paid, unpaid = (open_checkout(client, fresh(name)) for name in ("known", "paid", "unpaid"))
    assert all(FORM in page_of(service, each)[1] for each in (paid, unpaid))
    gateway.pay("checkout", known["form"]["fields"])
    until(lambda: state_of(client, known) == "completed", "the known order is paid")
    stop(service)
    shutil.copy(tmp_path / "payrelay.db", tmp_path / "backup.db")
    start(service)
    gateway.pay("checkout", paid["form"]["fields"])
    until(lambda: state_of(client, paid) == "completed", "it is paid after the backup")
    stop(service)

    shutil.copy(tmp_path / "backup.db", tmp_path / "payrelay.db")
    begin_recovery_of(service.environment, tmp_path)
    start(service)
    for each in (paid, unpaid):
        status, page = page_of(service, each)
        again = open_checkout(client, each["order_id"])
        assert (status, FORM in page, again["form"], again["url"]) == (503, False, None, each["url"])
    service.kill()

    start(service, late_s=LATE_S)
    until(lambda: FORM in page_of(service, unpaid)[1], "the page that nobody paid leads on")
    status, page = page_of(service, paid)
    assert (status, FORM in page, state_of(client, paid)) == (503, False, "open")
    [entry] = [each for each in gateway.ledger() if each["order_id"] == paid["order_id"]]
    decided = program.run(
        tmp_path, service.environment, "recover", "checkout", "paid", paid["id"],
        "--payment-id", str(entry["payment_id"]), "--reason", "the shop made no charge", "--yes",
    )  # fmt: skip
    assert decided.returncode == 0, decided.stderr
    assert (page_of(service, paid)[0], state_of(client, paid)) == (200, "completed")


def state_of(client: Client, checkout: dict[str, Any]) -> str:
    """The checkout's state, as its shop reads it."""
    return str(client.get(f"checkouts/{checkout['id']}").json["data"]["state"])
