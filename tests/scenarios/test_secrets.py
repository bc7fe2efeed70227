"""Secrets: what must never be readable afterwards goes through every path and is then searched for everywhere."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.program import Program
from tests.scenarios.stories import capture_body, charge_body, fresh, fresh_number, settings_for
from tests.scenarios.waiting import until


@dataclass(frozen=True, kw_only=True)
class Aftermath:
    """A service that has seen the canaries, and every answer that wasn't a success."""

    program: Program
    canaries: dict[str, str]
    refusals: list[Reply]
    outside: list[Reply]

    def assert_absent(self, where: str, content: bytes) -> None:
        """None of the canaries stands in the content; the message doesn't print them."""
        leaked = [name for name, canary in self.canaries.items() if canary.encode() in content]
        assert not leaked, f"in {where}: {leaked}"


def provoke(client: Client, gateway: GatewayDouble, canaries: dict[str, str]) -> Iterator[Reply]:
    """Success, decline, refusal, unknown, cut, wrong body, wrong place: each with the canaries in it."""
    customer, hold = canaries["customer token"], canaries["authorization token"]
    behaviours = [
        payhere.succeeds_with(authorization_token=hold),
        payhere.refuses("Card declined"),
        payhere.refuses("Invalid token"),
        payhere.refuses("Authentication error", -2),
        payhere.denies_the_token,
        payhere.cuts,
        payhere.breaks_off,
        payhere.says(f"<html>{customer}</html>", 502, kind="text/html"),
    ]
    for behaviour in behaviours:
        order_id, key = fresh("order"), fresh("key")
        gateway.script(payhere.CHARGE, order_id, behaviour)
        yield client.charge(charge_body(order_id, type="AUTHORIZE", customer_token=customer), key=key)
        yield client.charge(charge_body(order_id, type="AUTHORIZE", customer_token=customer), key=key)
    for body in ({"customer_token": customer, "amount": "x"}, {"customer_token": [customer]}, {"token": customer}):
        yield client.charge(charge_body() | body)
    yield client.charge(f'{{"customer_token": "{customer}"'.encode())
    yield client.post("payments/charge", charge_body(customer_token=customer), headers=[("Content-Type", "text/plain")])
    for behaviour in (payhere.succeeds_as_documented, payhere.cuts, payhere.refuses("Invalid token")):
        gateway.script(payhere.CAPTURE, hold, behaviour)
        yield client.post("payments/capture", capture_body(hold))
    yield client.post("payments/refund", {"authorization_token": hold, "description": "release"}, key=fresh("key"))
    yield client.post(
        "payments/refund", {"payment_id": fresh_number(), "authorization_token": hold, "description": "b"}
    )
    yield from register(client, canaries["path of an endpoint"])
    yield client.holding(canaries["wrong key"]).get("operations")
    yield client.holding(None).get("operations", [("Authorization", f"Basic {canaries['wrong key']}")])


def register(client: Client, path: str) -> Iterator[Reply]:
    """Endpoints at addresses with the canary: events are sent there in vain, one is moved, others are refused."""
    url = f"https://hooks.invalid/{path}?token={path}"
    endpoint = client.post("endpoints", {"url": url, "types": ["*"]}).json["data"]
    at = f"endpoints/{endpoint['id']}"
    yield client.post(f"{at}/test")
    yield client.change(at, {"url": f"{url}&moved=1"})
    for wrong in (f"http://hooks.invalid/{path}", f"https://{path}:{path}@hooks.invalid/", f"https://127.0.0.1/{path}"):
        yield client.post("endpoints", {"url": wrong})
    yield client.post("endpoints", {"url": [url]})
    until(
        lambda: any(each["last_failure"] for each in client.get(f"{at}/deliveries").json["data"]),
        "an event was sent in vain",
    )


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory, gateway: GatewayDouble) -> Iterator[Aftermath]:
    """One service through which all canaries have gone on all paths."""
    folder = tmp_path_factory.mktemp("secrets")
    settings = settings_for(gateway)
    program = Program(folder, settings)
    client_key = program.new_key("shop")
    client = program.client(client_key)
    canaries = {
        "customer token": "CANARYC0FFEE" + fresh("")[-20:].upper(),
        "authorization token": fresh("canary"),
        "path of an endpoint": fresh("canary"),
        "wrong key": client_key[:-6] + "CANARY",
        "client key": client_key,
        "client secret": client_key.split("_")[3],
        "app secret": settings["PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET"],
        "merchant secret": settings["PAYRELAY_GATEWAYS__GATEWAY__MERCHANT_SECRET"],
    }
    program.start()
    client = program.client(client_key)
    replies = list(provoke(client, gateway, canaries))
    outside = [
        client.holding(None).send("GET", path) for path in ("/metrics", "/openapi.json", "/docs", "/health/ready")
    ]
    access = {f"access token {place}": token for place, token in enumerate(gateway.tokens)}
    refusals = [reply for reply in replies if reply.status != 200]
    yield Aftermath(program=program, canaries=canaries | access, refusals=refusals, outside=outside)
    program.stop()


def test_the_canaries_were_really_there(aftermath: Aftermath) -> None:
    """The search below means something: the paths were taken and there are tokens to look for."""
    assert {reply.status for reply in aftermath.refusals} >= {202, 400, 401, 402, 415, 422, 502}
    assert any(name.startswith("access token") for name in aftermath.canaries)


def test_no_secret_is_readable_in_the_database(aftermath: Aftermath) -> None:
    """The files of the store, its journal included, hold no token and no key in clear: a stolen backup is no use."""
    files = [path for path in aftermath.program.folder.iterdir() if path.is_file() and "log" not in path.suffix]
    assert any(path.name.startswith("payrelay.db") for path in files)
    for path in files:
        aftermath.assert_absent(path.name, path.read_bytes())


def test_no_secret_is_in_a_row(aftermath: Aftermath) -> None:
    """The same for the values as SQL gives them, past any encoding of the file."""
    source = f"file:{aftermath.program.folder}/payrelay.db?mode=ro"
    connection = sqlite3.connect(source, uri=True)
    try:
        dump = "\n".join(connection.iterdump())
    finally:
        connection.close()
    aftermath.assert_absent("the rows", dump.encode())


def test_no_secret_is_in_the_log(aftermath: Aftermath) -> None:
    """A log travels far: no customer, authorization or access token, no key, no secret stands in it."""
    log = aftermath.program.log()
    assert log
    aftermath.assert_absent("the log", log.encode())


def test_no_secret_is_in_a_refusal(aftermath: Aftermath) -> None:
    """An error's body names members, never their contents."""
    for reply in aftermath.refusals:
        aftermath.assert_absent(str(reply.status), reply.body + str(reply.headers).encode())


def test_no_secret_is_in_the_open_pages(aftermath: Aftermath) -> None:
    """/metrics, /openapi.json, /docs and /health need no credential and hold none."""
    for reply in aftermath.outside:
        aftermath.assert_absent("an open page", reply.body)


def test_the_key_file_is_for_its_owner_only(aftermath: Aftermath) -> None:
    """What encrypts at rest is made beside the database and readable by its owner alone."""
    keys = [path for path in aftermath.program.folder.iterdir() if "key" in path.name and not path.name.endswith(".db")]
    assert keys, [path.name for path in aftermath.program.folder.iterdir()]
    assert all(is_private(path) for path in keys)


def is_private(path: Path) -> bool:
    """Nobody but the owner may read it."""
    return path.stat().st_mode & 0o077 == 0
