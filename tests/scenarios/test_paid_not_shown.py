"""Payments that the gateway shows late: whoever asks is never told that a paid order is unpaid."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.stories import assert_refused, charge_body, fresh
from tests.scenarios.test_gateway_notifications import Scene, paying_scene
from tests.scenarios.test_notifications import CUSTOMER

from payrelay_simulator import Arguments, CustomerSeed, Match, Rule, Seed, plant

LATE_S = 600
NO_CACHE = (("Cache-Control", "no-cache"),)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """One service and one gateway for the module."""
    async with paying_scene(tmp_path_factory.mktemp("scene")) as scene:
        yield scene


pytestmark = pytest.mark.asyncio(loop_scope="module")


def show_late(scene: Scene, order_id: str) -> None:
    """Has the gateway take the order's next payment, and show it later."""
    rule = Rule(fault="late_visibility", match=Match(order_id=order_id), args=Arguments(wait_s=LATE_S))
    scene.gateway.simulator.world.faults.add_rules(rule)


async def charged(scene: Scene, order_id: str, **members: object) -> str:
    """Charges an order; gives the payment's id."""
    card = plant(scene.gateway.simulator.world, Seed(customers=[CustomerSeed()])).customer_tokens[0]
    reply = await asyncio.to_thread(scene.client.charge, charge_body(order_id, customer_token=card, **members))
    assert reply.status == 200, str(reply)
    return str(reply.json["data"]["payment_id"])


async def payments_of(scene: Scene, order_id: str, client: Client | None = None) -> Reply:
    """Asks for an order's payments now."""
    return await asyncio.to_thread((client or scene.client).get, f"payments/{order_id}", NO_CACHE)


def is_told_as_paid(reply: Reply, payment_id: str) -> None:
    """The answer says to ask again, and names the payment."""
    assert_refused(reply, 404, "not_found")
    assert (reply.error["retry"], reply.json["data"]) == ("after", [])
    assert payment_id in reply.json["msg"]
    assert int(reply.header("retry-after") or "0") >= 2
    assert reply.header("payrelay-missing") == payment_id


async def test_a_charge_that_is_not_shown_yet(scene: Scene) -> None:
    """It got its 200; the gateway's record shows it ten minutes later, and then the answer is the record alone."""
    order_id = fresh("order")
    show_late(scene, order_id)
    payment_id = await charged(scene, order_id)
    is_told_as_paid(await payments_of(scene, order_id), payment_id)
    scene.gateway.simulator.world.clock.advance(LATE_S)
    shown = await payments_of(scene, order_id)

    assert (shown.status, shown.header("payrelay-missing")) == (200, None)
    assert [str(each["payment_id"]) for each in shown.json["data"]] == [payment_id]


async def test_a_second_charge_that_is_not_shown_yet(scene: Scene) -> None:
    """The list is the gateway's, byte for byte; a header tells of the other payment."""
    order_id = fresh("order")
    await charged(scene, order_id)
    before = await payments_of(scene, order_id)
    show_late(scene, order_id)
    second = await charged(scene, order_id, amount=2)
    after = await payments_of(scene, order_id)

    assert (before.status, before.header("payrelay-missing")) == (200, None)
    assert (after.status, after.header("payrelay-missing")) == (200, second)
    assert after.body == before.body


async def test_a_capture_that_is_not_shown_yet(scene: Scene) -> None:
    """While the amount is held, nobody has paid; once it is captured, the order is paid."""
    order_id = fresh("order")
    checkout = await scene.opened("authorization", order_id=order_id)
    scene.pay(checkout)
    await scene.finished(checkout, "notified")
    held = await payments_of(scene, order_id)
    show_late(scene, order_id)
    body = {"authorization_token": checkout["id"], "amount": 1000, "description": "All of it"}
    captured = await asyncio.to_thread(scene.client.post, "payments/capture", body)

    assert (held.status, held.error["retry"]) == (404, "never")
    assert captured.status == 200, str(captured)
    is_told_as_paid(await payments_of(scene, order_id), str(captured.json["data"]["payment_id"]))


async def test_a_refunded_payment_that_is_not_shown_yet(scene: Scene) -> None:
    """It was made, and the record will show it. Who is told so doesn't look for another way to be paid."""
    order_id = fresh("order")
    show_late(scene, order_id)
    payment_id = await charged(scene, order_id)
    body = {"payment_id": payment_id, "description": "Out of stock"}
    refunded = await asyncio.to_thread(scene.client.post, "payments/refund", body)

    assert refunded.status == 200, str(refunded)
    is_told_as_paid(await payments_of(scene, order_id), payment_id)


async def test_nobody_else_is_told(scene: Scene) -> None:
    """To another shop, and to an app of another order, a paid order is as one that nobody paid."""
    order_id = fresh("order")
    show_late(scene, order_id)
    payment_id = await charged(scene, order_id)
    another = scene.program.client(await asyncio.to_thread(scene.program.new_key, "kiosk"))
    theirs, unknown = await payments_of(scene, order_id, another), await payments_of(scene, fresh("order"), another)
    issued: Any = await asyncio.to_thread(scene.client.post, "client-tokens", {"order_id": fresh("order")})
    app = scene.program.client(issued.json["data"]["token"])
    own = await asyncio.to_thread(scene.client.post, "client-tokens", {"order_id": order_id})

    assert (theirs.status, theirs.json["msg"], theirs.error["retry"]) == (404, unknown.json["msg"], "never")
    assert theirs.header("payrelay-missing") is None
    assert (await payments_of(scene, order_id, app)).error["retry"] == "never"
    is_told_as_paid(await payments_of(scene, order_id, scene.program.client(own.json["data"]["token"])), payment_id)


@pytest.mark.parametrize("kind", ["payment", "recurring", "preapproval", "authorization"])
async def test_a_page_in_a_currency_that_it_does_not_take(scene: Scene, kind: str) -> None:
    """The customer would stand before the gateway's error page."""
    plan = {"recurrence": "1 Month", "duration": "1 Year"} if kind == "recurring" else {}
    members = {"order_id": fresh("order"), "items": "Tea", "currency": "JPY", "amount": 1000, **plan}
    body = {"type": kind, "customer": CUSTOMER, **members}
    reply = await asyncio.to_thread(scene.client.post, "checkouts", body)

    assert_refused(reply, 422, "invalid_request")
    assert [each["path"] for each in reply.error["fields"]] == ["currency"]
