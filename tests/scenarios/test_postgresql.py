"""The same promises with PostgreSQL as the store, the end of the service or of the store included."""

import base64
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING

import pytest
from tests.draws import drawn_uuid
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.program import Program
from tests.scenarios.stories import (
    Scene,
    assert_envelope,
    assert_refused,
    charge_body,
    fresh,
    operation_of,
    settings_for,
    state_of,
)
from tests.scenarios.waiting import until

from payrelay.api.openapi.examples import REQUESTS

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

pytestmark = [pytest.mark.postgresql, pytest.mark.integration]

RACES = 100
SEALING_KEY = base64.b64encode(bytes(range(32))).decode()


@dataclass(frozen=True, kw_only=True)
class Shop:
    """Services that share one database."""

    environment: dict[str, str]
    folder: Path
    gateway: GatewayDouble

    def service(self, name: str) -> Program:
        """A service of this name on the shared database."""
        folder = self.folder / name
        folder.mkdir()
        return Program(folder, self.environment)


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory, postgresql_server: "PostgresqlServer", gateway: GatewayDouble
) -> Shop:
    """A database of the module's own."""
    name = f"scenarios_{drawn_uuid().hex}"
    postgresql_server.run("createdb", "-h", str(postgresql_server.folder), "-U", "payrelay", name)
    store = {"PAYRELAY_DATABASE_URL": postgresql_server.url(name), "PAYRELAY_ENCRYPTION_KEY": SEALING_KEY}
    environment = settings_for(gateway) | store | {"PAYRELAY_PUBLIC_URL": "https://pay.example"}
    return Shop(environment=environment, folder=tmp_path_factory.mktemp("shop"), gateway=gateway)


@pytest.fixture
def shared(shop: Shop) -> Iterator[Scene]:
    """A service that the test may stop and kill."""
    program = shop.service(fresh("service"))
    upgraded = program.run("db", "upgrade")
    assert upgraded.returncode == 0, upgraded.stderr
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=shop.gateway, client=program.client(key))
    program.kill()


@pytest.fixture
def beside(shop: Shop, shared: Scene) -> Iterator[Client]:
    """The same caller at a second service on the same database."""
    program = shop.service(fresh("service")).start()
    yield replace(shared.client, port=program.port)
    program.stop()


def test_a_charge_is_made_once_and_replayed(shared: Scene) -> None:
    """The core promise, on the shared store."""
    body, key = charge_body(), fresh("key")
    first, again = shared.client.charge(body, key=key), shared.client.charge(body, key=key)
    assert first.status == 200, str(first)
    assert (again.header("idempotent-replayed"), again.body) == ("true", first.body)
    assert shared.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


@pytest.mark.parametrize("is_keyed", [True, False])
def test_two_services_charge_once(shared: Scene, beside: Client, is_keyed: bool) -> None:  # noqa: FBT001
    """Sixteen equal requests, half of them at another process: one goes to the gateway."""
    body, key = charge_body(), fresh("key") if is_keyed else None
    with ThreadPoolExecutor(16) as pool:
        tasks = [pool.submit(client.charge, body, key=key) for client in (shared.client, beside) for _ in range(8)]
        replies = [task.result() for task in tasks]
    assert shared.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1
    for reply in replies:
        assert_envelope(reply)
        assert reply.status == 200 or reply.code == "in_progress", str(reply)


def raced(gateway: GatewayDouble, order_id: str, *requests: Callable[[], Reply]) -> list[Reply]:
    """Makes requests that begin at one moment; the gateway answers a charge only once one of them was answered.

    So none of them can have come after the end of another.
    """
    together, held = Barrier(len(requests)), gateway.hold(payhere.CHARGE, order_id)

    def made(request: Callable[[], Reply]) -> Reply:
        together.wait()
        return request()

    with ThreadPoolExecutor(len(requests)) as pool:
        tasks = [pool.submit(made, request) for request in requests]
        wait(tasks, return_when=FIRST_COMPLETED)
        held.released.set()
        replies = [task.result() for task in tasks]
    for reply in replies:
        assert reply.status == 200 or reply.code == "in_progress", str(reply)
    return replies


def test_a_charge_and_a_page_of_one_order_are_never_both_begun(shared: Scene, beside: Client) -> None:
    """A hundred times, at two processes: whichever comes first, the customer can't pay in both ways."""
    begun = Counter[tuple[int, int]]()
    for number in range(RACES):
        body = charge_body()
        page = page_of(str(body["order_id"]))
        charger, opener = (shared.client, beside) if number % 2 else (beside, shared.client)
        charged, opened = raced(
            shared.gateway,
            str(body["order_id"]),
            partial(charger.charge, body, key=fresh("key")),
            partial(opener.post, "checkouts", page, key=fresh("key")),
        )
        begun[charged.status, opened.status] += 1
        assert shared.gateway.count(payhere.CHARGE, str(body["order_id"])) == (charged.status == 200)
    assert (200, 200) not in begun, begun


def test_a_request_and_the_same_without_its_key_are_charged_once(shared: Scene, beside: Client) -> None:
    """A hundred times, at two processes: the one is told to wait, or both get one answer."""
    for number in range(RACES):
        body = charge_body()
        keyed, unkeyed = (shared.client, beside) if number % 2 else (beside, shared.client)
        replies = raced(
            shared.gateway,
            str(body["order_id"]),
            partial(keyed.charge, body, key=fresh("key")),
            partial(unkeyed.charge, body),
        )
        assert shared.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1
        assert len({reply.body for reply in replies if reply.status == 200}) == 1


def page_of(order_id: str) -> dict[str, object]:
    """A checkout of an order."""
    asked = {"type": "payment", "order_id": order_id, "currency": "LKR", "amount": Raw(text="345.67"), "items": "Tea"}
    return asked | {"customer": REQUESTS["openCheckout"]["payment"]["value"]["customer"]}


def test_another_service_replays_the_answer(shared: Scene, beside: Client) -> None:
    """Whichever process a repeat reaches: the same bytes."""
    body, key = charge_body(), fresh("key")
    first, again = shared.client.charge(body, key=key), beside.charge(body, key=key)
    assert (again.header("idempotent-replayed"), again.body) == ("true", first.body)


def test_a_repeat_waits_for_another_service(shared: Scene, beside: Client) -> None:
    """Who waits hears of the end wherever it came about: the store is looked at."""
    body, key = charge_body(), fresh("key")
    held = shared.gateway.hold(payhere.CHARGE, str(body["order_id"]))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shared.client.charge, body, key=key)
        held.wait_for_arrival()
        repeat = pool.submit(beside.post, "payments/charge", body, key=key, headers=[("Prefer", "wait=60")])
        assert_refused(beside.charge(body, key=key), 409, "in_progress")
        held.released.set()
        assert (repeat.result().status, repeat.result().body) == (200, first.result().body)
    assert shared.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


def test_the_metrics_count_what_is_open(shared: Scene) -> None:
    """An operator's alarm looks at the store, whichever process made what is open."""
    shared.gateway.script(payhere.CHARGE, (order_id := fresh("order")), payhere.succeeds_with(currency="USD"))
    assert_refused(shared.client.charge(charge_body(order_id)), 202, "needs_attention")
    text = shared.client.holding(None).send("GET", "/metrics").body.decode()
    found = re.search(r'payrelay_operations_open\{state="needs_attention"\} ([0-9.]+)', text)
    assert found is not None
    assert float(found[1]) >= 1
    assert "payrelay_store_up 1.0" in text


def test_an_unknown_order_is_guarded_at_every_service(shared: Scene, beside: Client) -> None:
    """The guard is in the store."""
    order_id = fresh("order")
    shared.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    first = shared.client.charge(charge_body(order_id))
    assert_refused(first, 202, "outcome_unknown")
    assert operation_of(shared.client, first)["state"] == "unknown"
    assert_refused(beside.charge(charge_body(order_id, amount=Raw(text="1.00"))), 409, "in_progress")
    assert shared.gateway.count(payhere.CHARGE, order_id) == 1


def test_a_mismatch_and_a_decline_are_told_as_ever(shared: Scene) -> None:
    """The answers are the same on either store."""
    body, key = charge_body(), fresh("key")
    shared.gateway.script(payhere.CHARGE, str(body["order_id"]), payhere.refuses("Card declined"))
    assert_refused(shared.client.charge(body, key=key), 402, "declined")
    assert_refused(shared.client.charge(body | {"items": "Other"}, key=key), 422, "idempotency_mismatch")


def test_a_nul_in_a_text_is_no_fault_of_ours(shared: Scene) -> None:
    """PostgreSQL's text can't hold a NUL, which a JSON string can."""
    for member in ("order_id", "items", "custom_1"):
        reply = shared.client.charge(charge_body(**{member: Raw(text=f'"a\\u0000{fresh("x")}"')}))
        assert reply.status in {200, 400, 422}, str(reply)
    assert shared.client.get("payments/a%00b").status in {400, 404, 422}


def test_a_kill_in_the_midst_of_a_charge_is_remembered(shop: Shop, shared: Scene) -> None:
    """After kill -9 another process says unknown when the time for an answer is over; nobody ever sends again."""
    order_id, key = fresh("order"), fresh("key")
    kill_in_the_midst(shared, order_id, key)
    program = shop.service(fresh("service")).start()
    client = replace(shared.client, port=program.port, account="hasty")
    try:
        assert_refused(client.charge(charge_body(order_id, amount=Raw(text="1.0"))), 409, "in_progress")
        assert client.charge(charge_body(order_id), key=key).status in {202, 409}
        until(lambda: state_of(client, key) == "unknown", "the operation is unknown", deadline_s=30)
        assert client.charge(charge_body(order_id), key=key).status == 202
    finally:
        program.stop()
    assert shared.gateway.count(payhere.CHARGE, order_id) == 1


def kill_in_the_midst(shared: Scene, order_id: str, key: str) -> None:
    """Kills the service while the gateway holds the charge of the account that doesn't wait long."""
    held = shared.gateway.hold(payhere.CHARGE, order_id)

    def charge() -> Reply | None:
        try:
            return shared.client.at("hasty").charge(charge_body(order_id), key=key)
        except ConnectionError:
            return None

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(charge)
        held.wait_for_arrival()
        shared.program.kill()
        running.result()
        held.released.set()


def test_a_store_that_is_down_is_503_and_nothing_is_sent(shared: Scene, postgresql_server: "PostgresqlServer") -> None:
    """Without a memory nothing is sent; when the store is back so is the service, by itself."""
    body, key = charge_body(), fresh("key")
    assert shared.client.charge(charge_body()).status == 200
    postgresql_server.stop()
    try:
        reply = shared.client.charge(body, key=key)
        until(lambda: shared.client.send("GET", "/health/ready").status == 503, "a heartbeat has failed")
        ready = shared.client.send("GET", "/health/ready")
        live = shared.client.send("GET", "/health/live")
    finally:
        postgresql_server.start()
    assert_refused(reply, 503, "unavailable")
    assert (ready.status, live.status) == (503, 200)
    assert ready.json["cause"] in {"unreachable", "timeout"}
    until(lambda: shared.client.charge(body, key=key).status == 200, "the service is back")
    assert shared.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


def test_a_store_that_dies_under_a_charge_hides_no_charge(shared: Scene, postgresql_server: "PostgresqlServer") -> None:
    """The money moved and it couldn't be written down: that is never told as "not sent", and never sent again."""
    order_id, key = fresh("order"), fresh("key")
    held = shared.gateway.hold(payhere.CHARGE, order_id)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(shared.client.charge, charge_body(order_id), key=key)
        held.wait_for_arrival()
        postgresql_server.stop()
        try:
            held.released.set()
            answer = running.result()
        finally:
            postgresql_server.start()
    assert answer.status in {200, 202}, str(answer)
    assert_envelope(answer)
    until(lambda: shared.client.charge(charge_body(order_id), key=key).status in {200, 202}, "the service is back")
    assert shared.client.charge(charge_body(order_id, items="Other"), key=fresh("key")).status in {200, 409}
    assert [call.json["items"] for call in shared.gateway.calls(payhere.CHARGE, order_id)].count("Taxi Hire 123") == 1


def test_no_secret_is_readable_in_the_rows(shop: Shop, shared: Scene, postgresql_server: "PostgresqlServer") -> None:
    """What goes to the shared store is sealed before it leaves us: a dump holds no token and no key."""
    customer, order_id = "CANARYC0FFEE" + drawn_uuid().hex.upper()[:20], fresh("order")
    assert shared.client.charge(charge_body(order_id, type="AUTHORIZE", customer_token=customer)).status == 200
    name = shop.environment["PAYRELAY_DATABASE_URL"].partition("/scenarios_")[2].partition("?")[0]
    target = postgresql_server.folder / f"{drawn_uuid().hex}.sql"
    host = str(postgresql_server.folder)
    postgresql_server.run("pg_dump", "-h", host, "-U", "payrelay", "--inserts", "-f", str(target), f"scenarios_{name}")
    dump = target.read_text()
    assert order_id in dump
    secrets = [customer, SEALING_KEY, str(shared.client.key), *shared.gateway.tokens]
    assert [place for place, secret in enumerate(secrets) if secret in dump] == []
