"""Two principals of one merchant and a page that was given up: its customer may still pay, and pays its owner."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.stories import assert_refused, charge_body, fresh, refund_body
from tests.scenarios.test_forged_fields import LARGE, notification_of, post_edited
from tests.scenarios.test_gateway_notifications import PAGES, POOR_VISA, Scene, paying_scene, until
from tests.scenarios.test_notifications import CUSTOMER

from payrelay_simulator import Payer

VISA = "4916217501611292"
KINDS = ["payment", "preapproval", "authorization", "recurring"]
ENDS = {"payment": "completed", "preapproval": "completed", "authorization": "notified", "recurring": "completed"}


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """Gives each test a service and a gateway of its own."""
    async with paying_scene(tmp_path) as scene:
        yield scene


@pytest.fixture
async def rival(scene: Scene) -> Client:
    """Another principal with every default scope."""
    return scene.program.client(await asyncio.to_thread(scene.program.new_key, "rival"))


def terms(kind: str, order_id: str, **members: object) -> dict[str, Any]:
    """What a customer is asked for."""
    amount = {} if kind == "preapproval" else {"amount": 1000}
    plan = {"recurrence": "1 Month", "duration": "1 Year"} if kind == "recurring" else {}
    asked = {"type": kind, "order_id": order_id, "items": "Tea", "currency": "LKR", "customer": CUSTOMER}
    return asked | amount | plan | members


async def opening(client: Client, kind: str, order_id: str, **members: object) -> Reply:
    """Asks for a checkout."""
    return await asyncio.to_thread(client.post, "checkouts", terms(kind, order_id, **members), key=fresh("key"))


async def declined(scene: Scene, kind: str, order_id: str) -> tuple[dict[str, Any], Callable[[], None]]:
    """Has a customer's first card be declined; gives the owner's failed checkout, and the second card's payment."""
    reply = await opening(scene.client, kind, order_id)
    assert reply.status == 200, str(reply)
    own: dict[str, Any] = reply.json["data"]
    payer = Payer(scene.gateway.simulator.world)
    visit = payer.pay(payer.enter(PAGES[kind], own["form"]["fields"]), POOR_VISA)
    await scene.finished(own, "failed")

    def pay() -> None:
        assert payer.pay(visit, VISA).state == "paid"

    return own, pay


async def declined_once(scene: Scene, checkout: dict[str, Any]) -> int:
    """Has a customer's card be declined; gives the number of the gateway's notification of it."""
    world = scene.gateway.simulator.world
    payer = Payer(world)
    payer.pay(payer.enter(PAGES[checkout["kind"]], checkout["form"]["fields"]), POOR_VISA)
    await notification_of(scene, checkout["order_id"], "failed")
    (record,) = world.notifications.records(order_id=checkout["order_id"])
    return record.number


@pytest.mark.parametrize("kind", KINDS)
async def test_a_declined_card_gives_the_order_to_nobody_else(scene: Scene, rival: Client, kind: str) -> None:
    """The customer's second card pays on the same page: payment, card, hold and plan are its owner's."""
    order_id = fresh("order")
    own, pay = await declined(scene, kind, order_id)
    taken = [await opening(rival, kind, order_id), await asyncio.to_thread(rival.charge, charge_body(order_id))]
    pay()
    done = await scene.finished(own, ENDS[kind])

    for reply in taken:
        assert_refused(reply, 409, "conflict")
    assert done["state"] == ENDS[kind]


async def test_a_page_that_was_cancelled_stays_its_owners(scene: Scene, rival: Client) -> None:
    """Anybody's browser can go to the page for those who cancel; the form can be paid all the same."""
    order_id = fresh("order")
    own = (await opening(scene.client, "payment", order_id)).json["data"]
    await asyncio.to_thread(rival.holding(None).send, "GET", f"/{own['url'].split('/', 3)[3]}/cancel")
    await scene.finished(own, "cancelled")

    assert_refused(await opening(rival, "payment", order_id), 409, "conflict")
    again = await opening(scene.client, "payment", order_id)
    assert again.status == 200, str(again)


async def test_a_payment_that_nobody_reported_is_its_pages_owners(scene: Scene, rival: Client) -> None:
    """Its notification is lost: until somebody asks, only the page says whose the payment is."""
    order_id = fresh("order")
    _, pay = await declined(scene, "payment", order_id)
    scene.misbehave("lost")
    pay()
    foreign = await asyncio.to_thread(rival.get, f"payments/{order_id}")
    assert_refused(foreign, 404, "not_found")
    shown = await asyncio.to_thread(scene.client.get, f"payments/{order_id}")
    payment_id = str(shown.json["data"][0]["payment_id"])

    async def seen() -> bool:
        """Tells whether the order of the payment is stored, which no reader waits for."""
        with closing(sqlite3.connect(scene.program.folder / "payrelay.db")) as database:
            rows = database.execute("SELECT order_id FROM payments_seen WHERE payment_id = ?", (payment_id,)).fetchall()
        return rows == [(order_id,)]

    await until(seen, bool)
    assert_refused(await asyncio.to_thread(rival.post, "payments/refund", refund_body(payment_id)), 404, "not_found")
    refunded = await asyncio.to_thread(scene.client.post, "payments/refund", refund_body(payment_id))
    assert refunded.status == 200, str(refunded)


@pytest.mark.parametrize("kind", ["payment", "preapproval"])
async def test_a_declined_card_of_another_order_ends_no_page(scene: Scene, rival: Client, kind: str) -> None:
    """Order A125 over 10.00 has the signed text of A1 over 2510.00: a rival's own card at A1, declined, is no sign."""
    own = (await opening(scene.client, kind, "A125", **({"amount": 10} if kind == "payment" else {}))).json["data"]
    bait = (await opening(rival, "payment", "A1", amount=2510)).json["data"]
    number = await declined_once(scene, bait)
    post_edited(scene, number, {"order_id": "A125", "payhere_amount": "10.00"})
    posted = await notification_of(scene, "A125", "failed", state="ignored")

    assert posted["reason"] == "informed"
    assert (await scene.get(f"checkouts/{own['id']}"))["state"] == "open"
    assert_refused(await opening(rival, kind, "A125"), 409, "conflict")


async def test_a_strangers_declined_card_ends_no_page(scene: Scene) -> None:
    """A customer of the same shop with a small order could end the page of any order whose id begins alike."""
    own = (await opening(scene.client, "payment", "A1", amount=2510)).json["data"]
    small = (await opening(scene.client, "payment", "A125", amount=10)).json["data"]
    number = await declined_once(scene, small)
    for custom in ("", "x"):
        post_edited(scene, number, LARGE | {"custom_1": custom})
    await notification_of(scene, "A1", "failed", state="ignored")

    assert (await scene.get(f"checkouts/{own['id']}"))["state"] == "open"


async def test_a_plan_page_of_another_principal_is_in_no_ones_way(scene: Scene, rival: Client) -> None:
    """Beside a page for a subscription no search gives a payment to anything, so that none may be put there."""
    order_id = fresh("order")
    own = (await opening(scene.client, "payment", order_id)).json["data"]
    await asyncio.to_thread(scene.client.holding(None).send, "GET", f"/{own['url'].split('/', 3)[3]}/cancel")
    await scene.finished(own, "cancelled")
    assert_refused(await opening(rival, "recurring", order_id), 409, "conflict")
    scene.misbehave("lost")
    scene.pay(own)

    assert (await scene.finished(own))["payment_id"]
