import asyncio
from typing import Any

import pytest
from aiohttp import ClientSession
from tests.payrelay_simulator.shop import PATIENCE_S, Receiver
from tests.scripted_peer import scripted_peer

from payrelay_simulator import DemoWorld, Running, World
from payrelay_simulator.sender import ANSWER_BYTES_MAX

Body = dict[str, object]


async def charge(session: ClientSession, body: Body, receiver: Receiver, **changes: object) -> None:
    """Charge, to be told of at the receiver's address."""
    async with session.post(
        "/merchant/v1/payment/charge", json={**body, "notify_url": receiver.address, **changes}
    ) as response:
        assert (await response.json())["status"] == 1


async def order(session: ClientSession, path: str, body: Body) -> Any:  # noqa: ANN401 - JSON
    """Give an order to the simulator."""
    async with session.post(f"/_sim/{path}", json=body) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def record(session: ClientSession, number: int = 1) -> Any:  # noqa: ANN401 - JSON
    """Return a notification's record as soon as its attempt was noted."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with session.get("/_sim/notifications", params={"after": number - 1, "count": 1}) as response:
                (found,) = (await response.json())["notifications"]
                if found["attempts"]:
                    return found


async def test_notification_arrives_as_a_form(session: ClientSession, receiver: Receiver, charge_body: Body) -> None:
    """Never as JSON; with the amount as text and the signature of the protocol."""
    await charge(session, charge_body, receiver)

    (body,) = await receiver.wait_for(1)
    assert receiver.types == ["application/x-www-form-urlencoded"]
    assert (body["order_id"], body["payhere_amount"], body["status_code"]) == ("Order12345", "345.67", "2")
    shown = await record(session)
    assert (shown["state"], shown["fields"], shown["attempts"][0]["http_status"]) == ("delivered", body, 200)


async def test_a_long_answer_is_not_read_to_its_end(session: ClientSession, charge_body: Body) -> None:
    """It says nothing, and may never end."""
    async with scripted_peer() as shop:
        shop.reply = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * ANSWER_BYTES_MAX
        await charge(session, charge_body, Receiver(address=shop.address))

        assert (await record(session))["state"] == "delivered"


@pytest.mark.parametrize("status", [500, 404, 302])
async def test_bad_answer_is_noted_and_not_tried_again(
    session: ClientSession, receiver: Receiver, charge_body: Body, status: int
) -> None:
    """A redirect is not followed."""
    receiver.statuses = [status]
    await charge(session, charge_body, receiver)

    shown = await record(session)
    assert (shown["state"], shown["attempts"][0]["http_status"], len(receiver.bodies)) == ("failed", status, 1)


async def test_nobody_listening_is_noted(session: ClientSession, receiver: Receiver, charge_body: Body) -> None:
    """The error says what happened."""
    receiver.address = "http://127.0.0.1:9/notify"
    await charge(session, charge_body, receiver)

    shown = await record(session)
    assert (shown["state"], shown["attempts"][0]["http_status"]) == ("failed", None)
    assert "Connect" in shown["attempts"][0]["error"]


async def test_no_answer_in_time_is_noted(session: ClientSession, receiver: Receiver, charge_body: Body) -> None:
    """A receiver that hangs does not hold the sender for ever."""
    await order(session, "switches", {"notification_timeout_s": 0.000001})
    await charge(session, charge_body, receiver)

    assert "no answer in" in (await record(session))["attempts"][0]["error"]


async def test_retry_comes_when_the_clock_says_so(
    session: ClientSession, receiver: Receiver, charge_body: Body
) -> None:
    """Moving the simulator's clock brings it, without waiting."""
    await order(session, "switches", {"notification_retries": 1})
    receiver.statuses = [503]
    await charge(session, charge_body, receiver)
    await record(session)
    await order(session, "clock", {"advance_s": 60})

    first, second = await receiver.wait_for(2)
    assert first == second


async def test_misbehaviours_are_ordered_and_shown(
    session: ClientSession, receiver: Receiver, charge_body: Body
) -> None:
    """Lost, duplicated and forged ones of one story, each for its order; what is used up is shown no more."""
    rules = [
        {"fault": "lost", "match": {"order_id": "Lost"}},
        {"fault": "duplicate", "match": {"order_id": "Twice"}, "args": {"copies": 1}},
        {"fault": "forged", "match": {"order_id": "Forged"}, "args": {"fields": {"payment_id": "1"}}},
    ]
    shown = await order(session, "faults", {"notifications": rules})
    assert [each["left"] for each in shown["notifications"]] == [1, 1, 1]
    for order_id in ("Lost", "Twice", "Forged"):
        await charge(session, charge_body, receiver, order_id=order_id)

    bodies = await receiver.wait_for(3)
    assert sorted(body["order_id"] for body in bodies) == ["Forged", "Twice", "Twice"]
    assert [body["payment_id"] for body in bodies if body["order_id"] == "Forged"] == ["1"]
    assert (await order(session, "faults", {}))["notifications"] == []


async def test_held_one_is_released_and_sent_again_by_order(
    session: ClientSession, receiver: Receiver, charge_body: Body
) -> None:
    """A test decides when the news arrives, and how often."""
    await order(session, "faults", {"notifications": [{"fault": "held"}]})
    await charge(session, charge_body, receiver)
    assert await order(session, "notifications/release", {}) == {"released": 1}
    await receiver.wait_for(1)

    document = await order(session, "notifications/resend", {"number": 1, "fields": {"custom_1": "x"}, "times": 2})

    assert document == {"numbers": [2, 3]}
    assert [body["custom_1"] for body in await receiver.wait_for(3)] == ["", "x", "x"]


async def test_chargeback_is_told_by_order(session: ClientSession, receiver: Receiver, demo: DemoWorld) -> None:
    """A planted payment has no address of its own."""
    body: Body = {"payment_id": demo.paid_payment_id, "notify_url": receiver.address}
    document = await order(session, "chargebacks", body)

    assert document == {"notifications": [1]}
    assert (await receiver.wait_for(1))[0]["status_code"] == "-3"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("notifications/resend", {"number": 5}, "number"),
        ("chargebacks", {"payment_id": 5}, "payment_id"),
        ("faults", {"notifications": [{"fault": "gone"}]}, "notifications[0].fault"),
        ("faults", {"notification_schedule": {"seed": 1, "probabilities": {"x": 1}}}, None),
    ],
)
async def test_wrong_order_is_told_its_field(session: ClientSession, path: str, body: Body, field: str | None) -> None:
    """A slip in a test's set-up is found at once."""
    async with session.post(f"/_sim/{path}", json=body) as response:
        document = await response.json()

    assert (response.status, document["error"]["field"]) == (400, field or "notification_schedule.probabilities.x")


async def test_time_does_its_work_without_a_call(session: ClientSession, running: Running, receiver: Receiver) -> None:
    """An installment that falls due is told of though nobody asked the simulator anything."""
    token = "AB" * 16
    row = {"order_id": "S", "customer_token": token, "amount": 5, "notify_url": receiver.address}
    await order(session, "seed_data", {"customers": [{"customer_token": token}], "subscriptions": [row]})
    world: World = running.simulator.world
    world.clock.advance(60)

    assert (await receiver.wait_for(1))[0]["message_type"] == "RECURRING_INSTALLMENT_SUCCESS"
