"""Two installations behind one address: each request goes to the one that has its account, and is sent on once."""

import http.client
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client
from tests.scenarios.program import Program, account, free_port
from tests.scenarios.stories import assert_refused, charge_body, fresh
from tests.scenarios.waiting import until


@dataclass(frozen=True, kw_only=True)
class Divided:
    """Two installations, the router before them, and a caller of each through the router."""

    gateway: GatewayDouble
    east: Program
    west: Program
    router: Program
    shop: Client
    club: Client
    metrics: int

    def shown(self) -> str:
        """The metrics of the router."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=5) as reply:
            text: bytes = reply.read()
        return text.decode()


@pytest.fixture
def divided(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Divided]:
    """One file of settings for all three: only the name of the partition differs."""
    ports = {name: free_port() for name in ("east", "west")}
    settings = account("shop", gateway.base_url) | account("club", gateway.base_url)
    for name, account_name in (("east", "shop"), ("west", "club")):
        settings[f"PAYRELAY_PARTITIONS__{name.upper()}__ADDRESS"] = f"http://127.0.0.1:{ports[name]}"
        settings[f"PAYRELAY_PARTITIONS__{name.upper()}__ACCOUNTS"] = account_name
    programs = {}
    for name in ports:
        (tmp_path / name).mkdir()
        own = {"PAYRELAY_PARTITION": name, "PAYRELAY_TRUSTED_PROXIES": "127.0.0.1"}
        programs[name] = Program(tmp_path / name, settings | own)
    keys = {name: program.new_key("caller") for name, program in programs.items()}
    for name, program in programs.items():
        program.start(ports[name])
    (tmp_path / "router").mkdir()
    metrics = free_port()
    router = Program(
        tmp_path / "router", settings | {"PAYRELAY_METRICS_ADDRESS": f"127.0.0.1:{metrics}"}, verb="route"
    ).start()
    yield Divided(
        gateway=gateway,
        **programs,
        router=router,
        shop=router.client(keys["east"], "shop"),
        club=router.client(keys["west"], "club"),
        metrics=metrics,
    )
    for program in (router, *programs.values()):
        program.kill()


def test_each_account_is_answered_by_its_own_installation(divided: Divided) -> None:
    """Two databases that both knew an order would both charge it."""
    order = fresh("order")

    assert [client.charge(charge_body(order)).status for client in (divided.shop, divided.club)] == [200, 200]
    assert [divided.gateway.count(payhere.CHARGE, order)] == [2]  # of two merchants
    assert divided.shop.charge(charge_body(order)).header("Idempotent-Replayed") == "true"
    assert_refused(divided.shop.at("nobody").charge(charge_body()), 404, "not_found")
    # The installation itself refuses an account of the other one, whoever sends it there.
    assert_refused(divided.east.client(divided.shop.key, "club").charge(charge_body()), 404, "not_found")


def test_an_installation_that_is_away_takes_no_other_along(divided: Divided) -> None:
    """Its clients learn that nothing was sent, and everybody else pays."""
    order = fresh("order")
    until(lambda: 'partition_ready{partition="west"} 1.0' in divided.shown(), "the router knows that it is ready")
    divided.west.stop()

    refused = divided.club.charge(charge_body(order))

    assert_refused(refused, 503, "unavailable")
    assert "nothing was sent" in refused.json["msg"]
    assert divided.gateway.count(payhere.CHARGE, order) == 0
    assert divided.shop.charge(charge_body()).status == 200
    until(lambda: 'partition_ready{partition="west"} 0.0' in divided.shown(), "the router shows that it is away")
    assert divided.router.stop() == 0


def test_an_installation_that_dies_in_a_charge_leaves_no_second_one(divided: Divided) -> None:
    """The router doesn't know whether it was charged, says so, and leaves the repeat to the client."""
    order = fresh("order")
    held = divided.gateway.hold(payhere.CHARGE, order)
    with ThreadPoolExecutor(1) as pool:
        charging = pool.submit(divided.club.charge, charge_body(order))
        held.wait_for_arrival()
        divided.west.kill()
        reply = charging.result()

    assert_refused(reply, 500, "internal")
    assert "whether it did what was asked is not known" in reply.json["msg"]
    assert divided.gateway.count(payhere.CHARGE, order) == 1
    assert 'payrelay_router_requests_total{outcome="lost",partition="west"} 1.0' in divided.shown()


def test_a_stream_passes_at_once(divided: Divided) -> None:
    """A router that gathers the answer first would give a customer's page nothing for ten minutes."""
    order = fresh("order")
    divided.gateway.script(payhere.CHARGE, order, payhere.cuts)
    operation_id = divided.shop.charge(charge_body(order)).json["error"]["operation_id"]
    connection = http.client.HTTPConnection("127.0.0.1", divided.router.port, timeout=10)
    path = f"/shop/api/events/stream?subject=operation:{operation_id}"
    connection.request("GET", path, headers={"Authorization": f"Bearer {divided.shop.key}"})
    reply = connection.getresponse()
    told = reply.readline()
    while not told.startswith(b"event:"):
        told = reply.readline()

    assert told == b"event: operation.unknown\n"
    connection.close()
