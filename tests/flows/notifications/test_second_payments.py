"""A second payment of an order that a notification reports: one alert calls a person, and names both payments."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from tests.flows.inbox_world import AMOUNT_MINOR, PAYMENT_ID, InboxWorld, body_of, inbox_world, payment_of
from tests.flows.world import asked

from payrelay.core.calls import Refund
from payrelay.core.notifications.notification import NotificationReason, NotificationState
from payrelay.core.outcomes import OutcomeKind
from payrelay.flows.alerts.alert_messages import MESSAGES
from payrelay.flows.operators.review import list_paid_again
from payrelay.flows.payments.refund import refund
from payrelay.store.alerts import Alerts, AlertSubject

FAR_MS: Final = 2**60


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay that takes notifications."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


async def test_an_order_that_was_paid_twice_is_one_alert(world: InboxWorld) -> None:
    """The customer paid in two windows; an operator decides which one is refunded. The queue lists both."""
    await world.open_checkout()
    world.payments += [payment_of(), payment_of(payment_id="320025000002")]
    await world.take(body_of())
    taken = await world.take(body_of(payment_id="320025000002"))

    assert (taken.state, taken.reason) == (NotificationState.APPLIED, NotificationReason.PAID_AGAIN)
    assert (await world.checkout()).payment_id == PAYMENT_ID
    assert (await world.event_types()).count("order.paid_again") == 1
    assert await alerted(world) == [("order_paid_again", "320025000002", PAYMENT_ID)]
    [listed] = await list_paid_again(world.relay, limit=9)
    assert {each.payment_id: each.amount_minor for each in listed.standing} == {
        PAYMENT_ID: AMOUNT_MINOR,
        "320025000002": AMOUNT_MINOR,
    }


async def test_what_comes_beside_a_payment_that_was_given_back_needs_a_person(world: InboxWorld) -> None:
    """The order isn't paid twice, so nothing tells of it; and nobody asked the customer to pay once more."""
    await world.open_checkout()
    world.payments.append(payment_of())
    await world.take(body_of())
    await refund(world.relay, asked(), Refund(payment_id=PAYMENT_ID, description="Tea"))
    world.payments.append(payment_of(payment_id="320025000002"))
    await world.take(body_of(payment_id="320025000002"))
    await world.later()

    taken = next(each for each in await world.all() if each.payment_id == "320025000002")
    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.SECOND_PAYMENT)
    assert [kind for kind, *_ in await alerted(world)] == ["payment"]


async def test_an_order_that_was_charged_and_then_paid_on_a_page_is_one_alert(world: InboxWorld) -> None:
    """The server charged the order, and the customer edited another form to pay it as well: nobody asked for that."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id="320025000009", order_id="A-1")
    world.payments.append(payment_of(payment_id="320025000009"))
    assert (await world.take(body_of())).reason is NotificationReason.NOT_SHOWN
    world.payments.append(payment_of())
    await world.later()

    (taken,) = await world.all()
    assert (taken.state, taken.reason) == (NotificationState.APPLIED, NotificationReason.PAID_AGAIN)
    assert (await world.event_types()).count("order.paid_again") == 1
    assert await alerted(world) == [("order_paid_again", PAYMENT_ID, "320025000009")]


async def alerted(world: InboxWorld) -> list[tuple[str, str, str]]:
    """The alerts that operators get: their kind, and the two payments that they name."""
    messages = []
    for about in (AlertSubject.NOTIFICATION, AlertSubject.ROW):
        due = await Alerts(world.world.database, about).lease_due(FAR_MS, leased_until_ms=FAR_MS, limit=9)
        messages += [await MESSAGES[about](world.relay, each) for each in due]
    read = [json.loads(each) for each in messages if each is not None]
    no = {"payment_id": None}
    return [
        (each["kind"], each.get("payment", no)["payment_id"], each.get("earlier", no)["payment_id"]) for each in read
    ]
