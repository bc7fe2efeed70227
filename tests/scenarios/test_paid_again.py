"""An order that is paid again, and a key that allows no second payment, as a shop sees both over sockets."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.http_client import Client
from tests.scenarios.phones import AMOUNT, data, token_for
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh
from tests.scenarios.test_gateway_notifications import paying_scene
from tests.scenarios.test_gateway_notifications import until as until_so
from tests.scenarios.waiting import until

from payrelay_simulator import CustomerSeed, Seed, plant


def told(client: Client, order_id: str) -> list[dict[str, Any]]:
    """The events that the order was paid again, as the shop reads them."""
    reply = client.get("events?type=order.paid_again")
    assert reply.status == 200, str(reply)
    return [each["data"] for each in reply.json["data"]["events"] if each["data"]["order_id"] == order_id]


def test_two_keys_are_two_payments_and_the_shop_hears_it_once(scene: Scene) -> None:
    """Each of the two requests was meant, as far as anybody can tell: both are made, and one event names both."""
    order_id = fresh("order")
    first, second = (scene.client.charge(charge_body(order_id), key=fresh("key")) for _ in range(2))
    assert (first.status, second.status) == (200, 200)
    until(lambda: len(told(scene.client, order_id)) == 1, "one event")
    [event] = told(scene.client, order_id)

    ids = [str(each.header("payrelay-operation")) for each in (first, second)]
    assert [event["earlier_operation_id"], event["operation_id"]] == ids
    assert event["earlier_payment_id"] != event["payment_id"]
    until(lambda: len(alerts(scene, order_id)) == 1, "one alert, which is a line of the log")


def alerts(scene: Scene, order_id: str) -> list[str]:
    """The lines of the log about it."""
    return [each for each in scene.program.log().splitlines() if "order_paid_again" in each and order_id in each]


@pytest.mark.parametrize("payments", [1, 2])
def test_a_key_of_one_payment_makes_no_second_one(scene: Scene, payments: int) -> None:
    """Whoever made the first: the next charge or authorization is a conflict. A repeat is answered all the same."""
    order_id, key = fresh("order"), fresh("key")
    client = scene.program.client(scene.program.new_key("shop", "--payments-max", str(payments)))
    for _ in range(payments - 1):
        assert scene.client.charge(charge_body(order_id), key=fresh("key")).status == 200
    assert client.charge(charge_body(order_id), key=key).status == 200
    assert client.charge(charge_body(order_id), key=key).status == 200

    for body in (charge_body(order_id), charge_body(order_id, type="AUTHORIZE")):
        assert_refused(client.charge(body, key=fresh("key")), 409, "conflict")
    assert scene.client.charge(charge_body(order_id), key=fresh("key")).status == 200


@pytest.mark.parametrize(("of_key", "of_token"), [(1, 5), (5, 1)])
def test_of_key_and_token_the_smaller_limit_holds(scene: Scene, of_key: int, of_token: int) -> None:
    """A token never may do more than the key that issued it."""
    server, order_id = scene.another("--payments-max", str(of_key)), fresh("order")
    stored = data(server.post("customers", {"customer_token": fresh("t").replace("-", "").upper()[:32]}))
    phone = token_for(
        server,
        customer_id=stored["id"],
        order_id=order_id,
        amount=AMOUNT,
        currency="LKR",
        scopes=["payments:charge"],
        payments=of_token,
    )
    body = charge_body(order_id)
    del body["customer_token"]
    assert phone.charge(body, key=fresh("key")).status == 200
    assert_refused(phone.charge(body, key=fresh("key")), 409, "conflict")


@pytest.mark.asyncio
async def test_a_charge_of_an_order_that_was_paid_on_a_page(tmp_path: Path) -> None:
    """The shop and its operator hear of both payments. A key of one payment makes no second one, by no way."""
    async with paying_scene(tmp_path) as scene:
        order_id = fresh("order")
        page = await scene.opened(order_id=order_id)
        scene.pay(page)
        done = await scene.finished(page)
        card = plant(scene.gateway.simulator.world, Seed(customers=[CustomerSeed()])).customer_tokens[0]
        body = charge_body(order_id, customer_token=card)
        key = await asyncio.to_thread(scene.program.new_key, "shop", "--payments-max", "1")
        limited = scene.client.holding(key)
        assert_refused(await asyncio.to_thread(limited.charge, body), 409, "conflict")

        charged = await asyncio.to_thread(scene.client.charge, body)
        assert charged.status == 200, str(charged)

        async def events() -> list[dict[str, Any]]:
            return await asyncio.to_thread(told, scene.client, order_id)

        [event] = await until_so(events, bool)
        assert (event["earlier_checkout_id"], event["earlier_payment_id"]) == (page["id"], done["payment_id"])
        assert event["payment_id"] == str(charged.json["data"]["payment_id"])
