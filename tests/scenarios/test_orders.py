"""What an order's money is, told over sockets: after charges, pages, refunds, holds and chargebacks, and to whom."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.draws import drawn_uuid
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.phones import token_for
from tests.scenarios.stories import charge_body, fresh
from tests.scenarios.test_gateway_notifications import Scene, paying_scene, until

from payrelay_simulator.chargebacks import charge_back, fail_refund, win_chargeback
from payrelay_simulator.seeding import CustomerSeed, Seed, plant

CARD = "D3A0" * 8


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """Gives each test a service and a gateway of its own, with one approved card."""
    async with paying_scene(tmp_path) as scene:
        plant(scene.gateway.simulator.world, Seed(customers=[CustomerSeed(customer_token=CARD)]))
        yield scene


async def charged(scene: Scene, order_id: str, client: Client | None = None, **members: object) -> str:
    """Charges an order; gives the payment's number."""
    body = charge_body(order_id, **({"amount": Raw(text="100.00"), "customer_token": CARD} | members))
    reply = await asyncio.to_thread((client or scene.client).charge, body, key=fresh("key"))
    assert reply.status == 200, str(reply)
    return str(reply.json["data"]["payment_id"])


async def refunded(scene: Scene, payment_id: str, amount: str | None = None) -> int:
    """Refunds a payment, or a part of it; gives the number of the refund."""
    part = {} if amount is None else {"amount": Raw(text=amount)}
    body = {"payment_id": payment_id, "description": "broken", **part}
    reply = await asyncio.to_thread(scene.client.post, "payments/refund", body, key=fresh("key"))
    assert reply.status == 200, str(reply)
    return int(reply.json["data"])


async def asked(client: Client, order_id: str) -> Reply:
    """Asks for the balance of an order."""
    return await asyncio.to_thread(client.get, f"orders/{order_id}")


async def order(scene: Scene, order_id: str) -> dict[str, Any]:
    """Reads an order."""
    reply = await asked(scene.client, order_id)
    assert reply.status == 200, str(reply)
    data = reply.json["data"]
    assert isinstance(data, dict)
    return data


def sums(shown: dict[str, Any]) -> list[float]:
    """Gives the sums of an order in one currency."""
    (balance,) = shown["balances"]
    return [balance[name] for name in ("paid", "held", "given_back", "charged_back", "left")]


def kinds(shown: dict[str, Any]) -> list[str]:
    """Names what isn't certain of an order."""
    return sorted(each["kind"] for each in shown["doubts"])


async def test_support_reads_what_was_paid_and_given_back(scene: Scene) -> None:
    """Two payments of one order, and two refunds of parts: nobody tells the customer "nothing of it refunded"."""
    order_id = fresh("order")
    first, second = await charged(scene, order_id), await charged(scene, order_id)
    for amount in ("10.50", "20.00"):
        await refunded(scene, first, amount)
    calls = scene.gateway.simulator.world.calls.arrived
    shown = await order(scene, order_id)

    assert scene.gateway.simulator.world.calls.arrived == calls, "it costs the gateway nothing"
    assert (sums(shown), kinds(shown)) == ([200, 0, 30.5, 0, 169.5], ["parts_not_shown"])
    assert [(each["payment_id"], each["given_back"], each["left"]) for each in shown["payments"]] == [
        (second, 0, 100),
        (first, 30.5, 69.5),
    ]
    parts = [each["amount"] for each in shown["payments"][1]["figures"] if each["figure"] == "given_back"]
    assert sorted(parts) == [10.5, 20]
    assert [each["kind"] for each in shown["operations"]] == ["refund", "refund", "charge", "charge"]


async def test_a_page_is_open_and_then_paid(scene: Scene) -> None:
    """While the customer may be paying, the balance says so; a page and its record are one payment."""
    checkout = await scene.opened(amount=Raw(text="100.00"))
    before = await order(scene, checkout["order_id"])
    scene.pay(checkout)
    await scene.finished(checkout)
    after = await order(scene, checkout["order_id"])

    assert (before["balances"], kinds(before)) == ([], ["open_page"])
    assert [(each["id"], each["state"]) for each in before["checkouts"]] == [(checkout["id"], "open")]
    assert (sums(after), after["is_certain"], len(after["payments"])) == ([100, 0, 0, 0, 100], True, 1)
    assert {each["source"] for each in after["payments"][0]["figures"]} == {"checkout", "record"}


async def test_a_hold_is_held_until_it_is_captured(scene: Scene) -> None:
    """What is held isn't paid; a capture of a part takes that, and the gateway lets the rest go."""
    order_id = fresh("order")
    body = charge_body(order_id, amount=Raw(text="100.00"), customer_token=CARD, type="AUTHORIZE")
    reply = await asyncio.to_thread(scene.client.charge, body)
    held = await order(scene, order_id)
    capture = {
        "authorization_token": reply.json["data"]["authorization_token"],
        "amount": Raw(text="60.00"),
        "description": "sent",
    }
    assert (await asyncio.to_thread(scene.client.post, "payments/capture", capture)).status == 200
    taken = await order(scene, order_id)

    assert (sums(held), held["payments"][0]["held_until"] is not None) == ([0, 100, 0, 0, 0], True)
    assert (sums(taken), len(taken["payments"])) == ([60, 0, 0, 0, 60], 1)


async def test_a_chargeback_that_is_won_is_a_doubt_until_a_second_look(scene: Scene) -> None:
    """What a bank took isn't there to be refunded. One look doesn't say that it gave it back: a copy may lag behind."""
    order_id, world = fresh("order"), scene.gateway.simulator.world
    payment_id = await charged(scene, order_id)
    address = f"{scene.program.environment['PAYRELAY_PUBLIC_URL']}/gateway/notifications"
    charge_back(world, int(payment_id), address)
    lost = await until(lambda: order(scene, order_id), lambda shown: sums(shown)[3] > 0)
    win_chargeback(world, int(payment_id))
    await asyncio.to_thread(scene.client.get, f"payments/{order_id}", headers=[("Cache-Control", "no-cache")])
    won = await until(lambda: order(scene, order_id), lambda shown: not shown["is_certain"])
    refused = await asyncio.to_thread(
        scene.client.post, "payments/refund", {"payment_id": payment_id, "description": "late"}, key=fresh("key")
    )

    assert (sums(lost), lost["is_certain"]) == ([100, 0, 0, 100, 0], True)
    assert (sums(won), kinds(won)) == ([100, 0, 0, 100, 0], ["received_again"])
    assert (refused.status, refused.json["error"]["code"]) == (409, "in_progress")


async def test_a_refund_that_fails_later_is_a_doubt_until_a_second_look(scene: Scene) -> None:
    """The gateway accepted it, showed it, and shows it no more: the customer may not have got the money."""
    order_id, fresh_read = fresh("order"), [("Cache-Control", "no-cache")]
    payment_id = await charged(scene, order_id)
    refund_id = await refunded(scene, payment_id)
    await asyncio.to_thread(scene.client.get, f"payments/{order_id}", headers=fresh_read)
    gone = await order(scene, order_id)
    fail_refund(scene.gateway.simulator.world, refund_id)
    await asyncio.to_thread(scene.client.get, f"payments/{order_id}", headers=fresh_read)
    back = await until(lambda: order(scene, order_id), lambda shown: not shown["is_certain"])

    assert (sums(gone), gone["is_certain"]) == ([100, 0, 100, 0, 0], True)
    assert (sums(back), kinds(back)) == ([100, 0, 100, 0, 0], ["received_again"])


async def test_a_foreign_order_is_as_one_that_nobody_has(scene: Scene) -> None:
    """Nobody learns from the answer which orders another shop has."""
    order_id = fresh("order")
    await charged(scene, order_id)
    other = scene.program.client(await asyncio.to_thread(scene.program.new_key, "other"))
    foreign, unknown = await asked(other, order_id), await asked(other, fresh("order"))

    assert foreign.status == 404
    assert _without_ids(foreign) == _without_ids(unknown)


async def test_a_key_sees_ids_of_what_it_may_read(scene: Scene) -> None:
    """A key that reads payments alone gets the sums, and a number of the operations behind them."""
    order_id = fresh("order")
    await charged(scene, order_id)
    key = await asyncio.to_thread(scene.program.new_key, "shop", "--scope", "payments:read")
    shown = (await asked(scene.program.client(key), order_id)).json["data"]

    assert (sums(shown), shown["operations"], shown["operations_left_out"]) == ([100, 0, 0, 0, 100], [], 1)
    assert [each["id"] for each in shown["payments"][0]["figures"] if each["source"] == "operation"] == [None]


async def test_a_client_token_sees_its_own_order_and_customer_alone(scene: Scene) -> None:
    """A phone reads what its customer paid, and nothing of another order or another customer's payment."""
    order_id, elsewhere = fresh("order"), fresh("order")
    own, other = [await _customer(scene, name) for name in ("anna", "berta")]
    await charged(scene, order_id, customer_token=own)
    await charged(scene, order_id, customer_token=other)
    await charged(scene, elsewhere)
    token = await asyncio.to_thread(
        token_for, scene.client, customer_id=own, order_id=order_id, scopes=["payments:read", "operations:read"]
    )
    shown = (await asked(token, order_id)).json["data"]

    assert (sums(shown), shown["payments_left_out"]) == ([100, 0, 0, 0, 100], 1)
    assert ({each["customer_id"] for each in shown["operations"]}, shown["operations_left_out"]) == ({own}, 1)
    assert _without_ids(await asked(token, elsewhere)) == _without_ids(await asked(token, fresh("order")))


async def _customer(scene: Scene, name: str) -> str:
    """Stores a customer with a card of its own."""
    token = drawn_uuid().hex.upper()
    plant(scene.gateway.simulator.world, Seed(customers=[CustomerSeed(customer_token=token)]))
    body = {"customer_token": token, "reference": name}
    reply = await asyncio.to_thread(scene.client.post, "customers", body)
    assert reply.status == 200, str(reply)
    return str(reply.json["data"]["id"])


def _without_ids(reply: Reply) -> tuple[int, object, list[str]]:
    body = reply.json
    body["error"].pop("request_id")
    return reply.status, body, sorted(name.lower() for name, _ in reply.headers)
