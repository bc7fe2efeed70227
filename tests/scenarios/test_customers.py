"""Stored customers over the wire: from a token to a handle, charged, seen by nobody else, removed and erased."""

import base64
import json
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.program import Program
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, settings_for
from tests.scenarios.test_notifications import PUBLIC, checkout_of, listed, open_checkout, post, signed
from tests.scenarios.waiting import until

OLD = base64.urlsafe_b64encode(b"o" * 32).decode()
NEW = base64.urlsafe_b64encode(b"n" * 32).decode()
CARD = {"method": "VISA", "card_no_masked": "************1292", "card_expiry": "0129"}


@pytest.fixture(scope="module")
def scene(folder: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """One service for the module, that knows its address from outside."""
    program = Program(folder, settings_for(gateway) | PUBLIC)
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


def fresh_token() -> str:
    """A gateway's token that no other test uses."""
    return fresh("")[-32:].upper()


def put(client: Client, token: str, **more: object) -> dict[str, Any]:
    """Hands a token over; gives the customer."""
    reply = client.post("customers", {"customer_token": token, **CARD, **more})
    assert reply.status == 200, str(reply)
    data = reply.json["data"]
    assert isinstance(data, dict)
    return data


def patch(client: Client, path: str, body: dict[str, object]) -> Reply:
    """PATCH under the account's prefix."""
    content = json.dumps(body).encode()
    return client.send("PATCH", f"/{client.account}/api/{path}", content, [("Content-Type", "application/json")])


def approved(scene: Scene, token: str, **more: object) -> tuple[str, str]:
    """Lets a customer approve a card; gives the order, and the id of the customer."""
    order_id = fresh("approval")
    checkout_id = open_checkout(scene, order_id, type="preapproval", **more)
    assert post(scene.client, signed(order_id, payhere_amount="10.00", customer_token=token)).status == 200
    until(lambda: checkout_of(scene.client, checkout_id)["state"] == "completed", "the approval is stored")
    return order_id, str(checkout_of(scene.client, checkout_id)["customer_id"])


@pytest.mark.smoke
def test_a_token_becomes_a_handle_that_is_charged(scene: Scene) -> None:
    """The shop needs its tokens no more: the gateway is sent the token, and the row names the handle."""
    token, order_id = fresh_token(), fresh("order")
    customer = put(scene.client, token, reference=fresh("user"))
    charged = scene.client.charge(charge_body(order_id, customer_token=customer["id"]), key=fresh("key"))

    assert charged.status == 200, str(charged)
    assert [call.json["customer_token"] for call in scene.gateway.calls(payhere.CHARGE, order_id)] == [token]
    (row,) = scene.client.get(f"operations?customer_id={customer['id']}").json["data"]
    assert (row["order_id"], row["customer_id"]) == (order_id, customer["id"])
    assert put(scene.client, token)["id"] == customer["id"]


def test_a_customer_is_found_by_reference_and_page(scene: Scene) -> None:
    """A back office looks a person up by its own name, and walks through all of them."""
    reference = fresh("user")
    ids = [put(scene.client, fresh_token(), reference=reference)["id"] for _ in range(3)]
    first = scene.client.get(f"customers?reference={reference}&limit=2")
    link = first.header("link") or ""
    second = scene.client.send("GET", link[1 : link.index(">")])

    assert [each["id"] for each in [*first.json["data"], *second.json["data"]]] == ids[::-1]
    assert second.header("link") is None


def test_another_shop_sees_and_charges_nothing(scene: Scene) -> None:
    """Whoever guesses a handle hears what it would hear of none; nothing is sent, nothing changed."""
    customer = put(scene.client, fresh_token())
    other, order_id = scene.another(), fresh("order")
    path = f"customers/{customer['id']}"

    for reply in (other.get(path), other.delete(path), other.post(f"{path}/erase"), patch(other, path, {"label": "x"})):
        assert_refused(reply, 404, "not_found")
    refused = other.charge(charge_body(order_id, customer_token=customer["id"]))
    assert_refused(refused, 422, "invalid_request")
    assert refused.error["fields"] == [{"path": "customer_token", "msg": "names no customer of yours on this account"}]
    assert scene.gateway.count(payhere.CHARGE, order_id) == 0
    assert scene.client.get(path).json["data"] == customer
    assert scene.client.at("second").get(path).status == 404


def test_a_removed_customer_is_charged_no_more(scene: Scene) -> None:
    """From the answer on; what was charged before is still answered, and the names may be tidied up."""
    customer, key, order_id = put(scene.client, fresh_token()), fresh("key"), fresh("order")
    path, body = f"customers/{customer['id']}", charge_body(order_id, customer_token=customer["id"])
    first = scene.client.charge(body, key=key)
    removed = scene.client.delete(path)
    refused = scene.client.charge(charge_body(customer_token=customer["id"]))
    again = scene.client.charge(body, key=key)

    assert (removed.status, removed.json["data"]["state"]) == (200, "removed")
    assert_refused(refused, 422, "invalid_request")
    assert (again.status, again.body, again.header("idempotent-replayed")) == (200, first.body, "true")
    assert scene.gateway.count(payhere.CHARGE, order_id) == 1
    assert patch(scene.client, path, {"label": "gone"}).json["data"]["label"] == "gone"
    assert scene.client.delete(path).json["data"]["version"] == 3


def test_every_step_of_a_customer_is_told(scene: Scene) -> None:
    """Whoever keeps a copy hears of each change in its order, and never who it is."""
    customer = put(scene.client, fresh_token(), reference=fresh("user"), label="Nimal's card")
    path = f"customers/{customer['id']}"
    patch(scene.client, path, {"label": "Blue card"})
    scene.client.delete(path)
    scene.client.post(f"{path}/erase")

    def told() -> list[dict[str, Any]]:
        events = scene.client.get(f"events?subject=customer:{customer['id']}").json["data"]["events"]
        assert isinstance(events, list)
        return events

    until(lambda: len(told()) == 4, "all of it is told")
    assert [event["type"].partition(".")[2] for event in told()] == ["created", "updated", "removed", "erased"]
    assert not any(word in json.dumps(told()) for word in ("Nimal", "Blue", str(customer["reference"])))


def _left_of(folder: Path, customer_id: str, order_id: str) -> dict[str, object]:
    """What lies in the database of a customer and its approval."""
    connection = sqlite3.connect(f"file:{folder}/payrelay.db?mode=ro", uri=True)
    try:
        [row] = connection.execute(
            "SELECT sealed_token, sealed_names, sealed_holder, reference_hash FROM customers WHERE id = ?",
            (customer_id,),
        )
        bodies = connection.execute("SELECT sealed_body FROM notifications WHERE order_id = ?", (order_id,)).fetchall()
        [checkout] = connection.execute(
            "SELECT sealed, sealed_reference, reference_hash FROM checkouts WHERE order_id = ?",
            (order_id,),
        )
        read_cache = connection.execute("SELECT count(*) FROM readings WHERE subject = ?", (f"order/{order_id}",))
        return {"customer": row, "bodies": bodies, "checkout": checkout, "readings": read_cache.fetchone()[0]}
    finally:
        connection.close()


def test_an_erased_person_is_gone_from_every_table(scene: Scene) -> None:
    """Approval, notification, checkout and what the gateway told of the payer: all of it goes with one request."""
    order_id, customer_id = approved(scene, fresh_token(), customer_reference=fresh("user"))
    record = payhere.payment_now(order_id, "10.00")
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    assert scene.client.get(f"payments/{order_id}").status == 200
    folder = scene.program.folder
    until(lambda: _left_of(folder, customer_id, order_id)["readings"] == 1, "the reading is kept")
    until(lambda: listed(scene.program, "--order", order_id)[0]["state"] == "applied", "the notification is done with")
    erased = scene.client.post(f"customers/{customer_id}/erase")

    assert (erased.status, erased.json["data"]["state"]) == (200, "erased"), str(erased)
    assert _left_of(folder, customer_id, order_id) == {
        "customer": (None, None, None, None),
        "bodies": [(None,)],
        "checkout": (None, None, None),
        "readings": 0,
    }


def test_a_late_repeat_brings_nobody_back(scene: Scene) -> None:
    """The gateway notifies again, days later, or an operator replays: the person stays erased."""
    token = fresh_token()
    order_id, customer_id = approved(scene, token)
    scene.client.post(f"customers/{customer_id}/erase")
    body = signed(order_id, payhere_amount="10.00", customer_token=token, custom_1="again")
    assert post(scene.client, body).status == 200
    until(
        lambda: all(row["state"] == "applied" for row in listed(scene.program, "--order", order_id)),
        "the repeat is done with",
    )

    assert scene.client.get(f"customers/{customer_id}").json["data"]["state"] == "erased"
    shown = [
        each["id"] for each in scene.client.get("customers?limit=100").json["data"] if each["order_id"] == order_id
    ]
    assert shown == [customer_id]


@dataclass(frozen=True, kw_only=True)
class Aftermath:
    """What is left where canaries have gone through every way that leads to a customer."""

    program: Program
    canaries: tuple[str, ...]
    replies: list[Reply]

    def leaked(self, content: bytes) -> list[str]:
        """Gives the canaries in it."""
        return [canary for canary in self.canaries if canary.encode() in content]


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory, gateway: GatewayDouble) -> Iterator[Aftermath]:
    """Handed over, approved, charged, declined, echoed, listed, removed and erased."""
    program = Program(tmp_path_factory.mktemp("canaries"), settings_for(gateway) | PUBLIC)
    key = program.new_key("shop")
    program.start()
    own = Scene(program=program, gateway=gateway, client=program.client(key))
    client, tokens = own.client, tuple(f"CANARY{fresh_token()[:26]}" for _ in range(3))
    ids = [put(client, tokens[0], card_holder="CANARYHOLDER")["id"], approved(own, tokens[1])[1]]
    replies = [client.post("customers", {"customer_token": tokens[2], "card_expiry": "CANARYEXPIRY"})]
    for customer_id, token in zip(ids, tokens, strict=False):
        for behaviour in (payhere.refuses("Invalid token"), payhere.cuts, payhere.says(f"<html>{token}</html>", 502)):
            order_id, own_key = fresh("order"), fresh("key")
            gateway.script(payhere.CHARGE, order_id, behaviour)
            body = charge_body(order_id, customer_token=customer_id)
            replies += [client.charge(body, key=own_key), client.charge(body, key=own_key)]
        replies += [client.get(f"customers/{customer_id}"), client.get("customers"), client.get("operations")]
        replies += [client.delete(f"customers/{customer_id}"), client.post(f"customers/{customer_id}/erase")]
    replies += [client.get("events"), client.holding(None).send("GET", "/metrics")]
    yield Aftermath(program=program, canaries=(*tokens, "CANARYHOLDER", "CANARYEXPIRY", "S+Perera"), replies=replies)
    program.stop()


def test_no_token_is_in_an_answer(aftermath: Aftermath) -> None:
    """Success, refusal, list, feed or metrics: a handle is all that comes out."""
    assert {reply.status for reply in aftermath.replies} >= {200, 202, 422}
    assert [aftermath.leaked(reply.body + repr(reply.headers).encode()) for reply in aftermath.replies] == [
        [] for _ in aftermath.replies
    ]


def test_no_token_is_in_the_database_or_the_log(aftermath: Aftermath) -> None:
    """A stolen backup or a shipped log charges nobody."""
    files = [path for path in aftermath.program.folder.iterdir() if path.is_file()]

    assert any(path.name.startswith("payrelay.db") for path in files)
    assert {path.name: aftermath.leaked(path.read_bytes()) for path in files} == {path.name: [] for path in files}


@pytest.mark.integration
def test_keys_are_changed_while_charges_go_on(tmp_path: Path, gateway: GatewayDouble) -> None:
    """Under load everything comes under the new key; afterwards the old one is needed by nobody, the audit neither."""
    settings = settings_for(gateway) | {"PAYRELAY_ENCRYPTION_KEY": OLD}
    program = Program(tmp_path, settings)
    key = program.new_key("shop")
    program.start()
    customer_id = put(program.client(key), fresh_token(), reference="user-17")["id"]
    orders = [fresh("order") for _ in range(60)]
    charge_all(program.client(key), customer_id, orders[:30])
    program.stop()
    program.environment["PAYRELAY_ENCRYPTION_KEY"] = f"{NEW},{OLD}"
    program.start()
    load = threading.Thread(target=charge_all, args=(program.client(key), customer_id, orders[30:]))
    load.start()
    rotated = program.run("seal", "rotate")
    load.join()

    assert rotated.returncode == 0, rotated.stderr
    status = json.loads(program.run("seal", "status", "--json").stdout)
    assert {name for name, counts in status["sealed"].items() if set(counts) - {status["keys"][0]}} == set()
    program.stop()
    program.environment["PAYRELAY_ENCRYPTION_KEY"] = NEW
    program.start()
    client = program.client(key)
    assert client.charge(charge_body(customer_token=customer_id), key=fresh("key")).status == 200
    assert [each["id"] for each in client.get("customers?reference=user-17").json["data"]] == [customer_id]
    replays = [client.charge(charge_body(order, customer_token=customer_id), key=f"key-{order}") for order in orders]
    assert {(reply.status, reply.header("idempotent-replayed")) for reply in replays} == {(200, "true")}
    assert program.run("audit", "verify").returncode == 0
    program.stop()


def charge_all(client: Client, customer_id: str, orders: list[str]) -> None:
    """Charges each order once."""
    for order in orders:
        reply = client.charge(charge_body(order, customer_token=customer_id), key=f"key-{order}")
        assert reply.status == 200, str(reply)
