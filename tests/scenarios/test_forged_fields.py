"""What a hostile customer gets who edits the gateway's form or posts a genuine notification with other fields.

The gateway's signature is an MD5 over a run of characters: order ``A1`` with ``2510.00`` has the signature of order
``A125`` with ``10.00``. Each test takes what the gateway itself signed, and sends it with other fields.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.draws import drawn_uuid
from tests.scenarios.http_client import Reply
from tests.scenarios.stories import charge_body, fresh
from tests.scenarios.test_gateway_notifications import PAGES, Scene, paying_scene, until
from tests.scenarios.test_notifications import listed

from payrelay_simulator import Payer, Switches
from payrelay_simulator.chargebacks import charge_back
from payrelay_simulator.pages.forms import Page

SMALL = {"order_id": "A125", "amount": "10.00"}
"""What the customer writes into the form of order A1 over 2510.00; its hash stays right."""
LARGE = {"order_id": "A1", "payhere_amount": "2510.00"}
"""What the customer writes into the notification of that small payment; its signature stays right."""


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """Gives each test a service and a gateway of its own."""
    async with paying_scene(tmp_path) as scene:
        yield scene


def pay_edited(scene: Scene, checkout: dict[str, Any], changes: Mapping[str, str]) -> int:
    """Posts a checkout's form with other fields, and pays; gives the number of the gateway's notification."""
    payer = Payer(scene.gateway.simulator.world)
    visit = payer.pay(payer.enter(PAGES[checkout["kind"]], {**checkout["form"]["fields"], **changes}))
    assert visit.state == "paid", visit
    return visit.notifications[0]


def post_edited(scene: Scene, number: int, changes: Mapping[str, str]) -> None:
    """Posts a notification of the gateway's with other fields, and the gateway's own signature."""
    world = scene.gateway.simulator.world
    world.notifications.resend(world.clock.now(), number, changes)


async def notification_of(scene: Scene, order_id: str, status: str, *, state: str | None = None) -> dict[str, Any]:
    """Waits for the first notification of an order with a reported status, until it was worked on once.

    With ``state`` waits until it has that state: the order may have been searched a moment before it came.
    """

    async def read() -> list[dict[str, Any]]:
        rows = await asyncio.to_thread(listed, scene.program)
        return [row for row in rows if (row["order_id"], row["reported"]) == (order_id, status)]

    def is_there(rows: list[dict[str, Any]]) -> bool:
        return bool(rows) and (rows[-1]["state"] != "received" if state is None else rows[-1]["state"] == state)

    return (await until(read, is_there))[-1]


async def captured(scene: Scene, checkout: dict[str, Any], amount: int) -> Reply:
    """Captures a part of a checkout's authorization, or all of it."""
    body = {"authorization_token": checkout["id"], "amount": amount, "description": "shipped"}
    return await asyncio.to_thread(scene.client.post, "payments/capture", body, key=fresh("key"))


async def test_a_small_hold_completes_no_large_checkout(scene: Scene) -> None:
    """Who holds LKR 10 would get goods for LKR 2510, as soon as the shop believes the state of its checkout."""
    checkout = await scene.opened("authorization", order_id="A1", amount=2510)
    number = pay_edited(scene, checkout, SMALL)
    post_edited(scene, number, LARGE)
    await scene.finished(checkout, "notified")
    whole, part = await captured(scene, checkout, 2510), await captured(scene, checkout, 10)

    assert (whole.status, part.status) == (422, 202), f"{whole} {part}"
    assert (await scene.get(f"checkouts/{checkout['id']}"))["state"] == "notified"
    operation = await scene.get(f"operations/{part.json['error']['operation_id']}")
    assert operation["state"] == "needs_attention", "the reply is about order A125, and an operator has to look"


async def test_a_chargeback_of_a_small_payment_marks_no_large_one(scene: Scene) -> None:
    """A bank took back LKR 10 of order A125. Whoever sees that order A1 was charged back might stop a shipment."""
    approved = await scene.opened("preapproval")
    scene.pay(approved)
    token = (await scene.finished(approved))["customer_id"]
    large = charge_body("A1", amount=2510, customer_token=token)
    reply = await asyncio.to_thread(scene.client.charge, large, key=fresh("key"))
    assert reply.status == 200, str(reply)
    small = await scene.opened(order_id="A125", amount=10)
    scene.pay(small)
    payment_id = (await scene.finished(small))["payment_id"]
    (number,) = charge_back(scene.gateway.simulator.world, int(payment_id))
    post_edited(scene, number, LARGE | {"payment_id": str(reply.json["data"]["payment_id"])})

    assert (await notification_of(scene, "A125", "charged_back", state="applied"))["reason"] == "chargeback_kept"
    posted = await notification_of(scene, "A1", "charged_back")
    assert (posted["state"], posted["reason"]) == ("waiting", "chargeback_not_shown")
    operation = await scene.get(f"operations/{reply.header('payrelay-operation')}")
    assert (operation["state"], operation["chargebacks"]) == ("succeeded", [])


async def test_a_chargeback_that_the_record_never_shows_waits(scene: Scene) -> None:
    """Nothing documents when the gateway's record shows a chargeback, or that it does."""
    world = scene.gateway.simulator.world
    world.switches = Switches(chargeback_record="RECEIVED")
    checkout = await scene.opened()
    scene.pay(checkout)
    payment_id = (await scene.finished(checkout))["payment_id"]
    charge_back(world, int(payment_id))

    posted = await notification_of(scene, checkout["order_id"], "charged_back")
    assert (posted["state"], posted["reason"]) == ("waiting", "chargeback_not_shown")


async def test_a_customer_who_edits_the_schedule_completes_no_checkout(scene: Scene) -> None:
    """What is sold by the month would be paid once a year: recurrence and duration are in no signed text."""
    checkout = await scene.opened("recurring", recurrence="1 Month", duration="1 Year")
    pay_edited(scene, checkout, {"recurrence": "1 Year"})

    noted = await notification_of(scene, checkout["order_id"], "succeeded")
    assert (noted["state"], noted["reason"]) == ("needs_attention", "other_schedule")
    assert (await scene.get(f"checkouts/{checkout['id']}"))["state"] == "open"


async def test_a_cheap_first_payment_completes_no_plan(scene: Scene) -> None:
    """The hash of order A over 110.00 is that of A1 over 10.00, and a negative startup fee makes the sum fit it."""
    cheap = await scene.opened(order_id="A", amount=110)
    checkout = await scene.opened("recurring", order_id="A1", recurrence="1 Month", duration="1 Year")
    pay_edited(scene, checkout, {"hash": cheap["form"]["fields"]["hash"], "startup_fee": "-990.00"})

    noted = await notification_of(scene, "A1", "succeeded")
    assert (noted["state"], noted["reason"]) == ("needs_attention", "other_amount")
    assert (await scene.get(f"checkouts/{checkout['id']}"))["state"] == "open"


@pytest.mark.parametrize("page", ["authorize", "checkout"])
async def test_a_stranger_takes_no_order_of_an_authorization(scene: Scene, page: Page) -> None:
    """Who holds or pays 10.00 for order A125 posts that as A1 over 2510.00, with an invented token.

    The honest customer's hold would come second, and no capture of the order would ever succeed. The honest one shares
    its signed text with the stranger's form, so that an operator says which is which.
    """
    victim = await scene.opened("authorization", order_id="A1", amount=2510)
    mine = await scene.opened(order_id="A125", amount=10)
    payer = Payer(scene.gateway.simulator.world)
    visit = payer.pay(payer.enter(page, mine["form"]["fields"]))
    post_edited(scene, visit.notifications[0], LARGE | {"authorization_token": str(drawn_uuid())})
    status = "authorized" if page == "authorize" else "succeeded"
    posted = await notification_of(scene, "A1", status, state="needs_attention")
    assert posted["reason"] == ("other_text" if page == "authorize" else "other_kind")
    assert (await scene.get(f"checkouts/{victim['id']}"))["state"] == "open"

    scene.pay(victim)

    async def honest() -> list[dict[str, Any]]:
        rows = await asyncio.to_thread(listed, scene.program)
        own = [row for row in rows if (row["order_id"], row["reported"]) == ("A1", "authorized")]
        return [row for row in own if row["id"] != posted["id"] and row["state"] == "needs_attention"]

    (row,) = await until(honest, bool)
    decision = ("accept", row["id"], "--yes", "--by", "Nimal", "--reason", "as in the portal")
    accepted = await asyncio.to_thread(scene.program.run, "notifications", *decision)
    assert accepted.returncode == 0, accepted.stderr
    await scene.finished(victim, "notified")
    assert (await captured(scene, victim, 2510)).status == 200
    assert (await scene.finished(victim))["state"] == "completed"
