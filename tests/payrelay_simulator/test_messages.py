from datetime import UTC, datetime
from typing import Any

import pytest

from payrelay_simulator import Arguments, Caller, CustomerSeed, DemoWorld, Rule, Seed, SubscriptionSeed, World, plant
from payrelay_simulator.messages import recurring_message
from payrelay_simulator.records import Payment, Period, Subscription

NOTIFY_URL = "http://shop.example/notify"
NOW = datetime(2026, 9, 1, 20, 0, tzinfo=UTC)


def told(world: World, name: str = "status_code") -> list[str | None]:
    """Return one field of every notification."""
    return [each.fields.get(name) for each in world.notifications.records()]


def charge(caller: Caller, body: dict[str, object], **changes: object) -> Any:  # noqa: ANN401 - JSON
    """Charge with a notify_url."""
    return caller.post("payment/charge", {**body, "notify_url": NOTIFY_URL, **changes}).document


def test_charge_is_told_whatever_became_of_its_answer(
    world: World, caller: Caller, charge_body: dict[str, object]
) -> None:
    """Who lost the answer can still learn what happened."""
    world.faults.add_rules(Rule(fault="cut_after"))
    charge(caller, charge_body, custom_1="a")

    (each,) = world.notifications.records()
    assert (each.flow, each.notify_url, each.fields["status_code"], each.fields["custom_1"]) == (
        "charge",
        NOTIFY_URL,
        "2",
        "a",
    )
    assert each.fields["payhere_amount"] == "345.67"


def test_charge_without_an_address_is_not_told(world: World, caller: Caller, charge_body: dict[str, object]) -> None:
    """Nobody asked for it."""
    caller.post("payment/charge", charge_body)

    assert told(world) == []


def test_authorizing_charge_is_told_with_its_token(
    world: World, caller: Caller, charge_body: dict[str, object]
) -> None:
    """The only way to learn the token where the answer was lost."""
    document = charge(caller, charge_body, type="AUTHORIZE")

    assert (told(world), told(world, "payment_id")) == (["3"], [None])
    assert told(world, "authorization_token") == [document["data"]["authorization_token"]]


def test_declined_charge_is_told(world: World, caller: Caller, charge_body: dict[str, object], demo: DemoWorld) -> None:
    """With the payment id that the answer has."""
    document = charge(caller, charge_body, customer_token=demo.declining_customer_token)

    assert (told(world), told(world, "payment_id")) == (["-2"], [str(document["data"]["payment_id"])])


@pytest.mark.parametrize("settles", [True, False])
def test_pending_charge_is_told_again_when_it_is_settled(
    world: World, caller: Caller, charge_body: dict[str, object], *, settles: bool
) -> None:
    """First 0, and 2 from the moment at which it can be found."""
    world.faults.add_rules(Rule(fault="pending", args=Arguments(settles=settles)))
    charge(caller, charge_body)

    assert told(world) == (["0", "2"] if settles else ["0"])
    assert len(world.notifications.take_due(world.clock.now())) == 1


def test_failing_subscription_is_told_at_each_try_and_at_its_end(world: World, caller: Caller) -> None:
    """Eight failures and the stop, each with status -2; then a retry brings it back and is told, too."""
    customer = CustomerSeed(customer_token="AB" * 16)
    row = SubscriptionSeed(order_id="S", customer_token="AB" * 16, amount=5, notify_url=NOTIFY_URL)  # type: ignore[arg-type]
    (subscription_id,) = plant(world, Seed(customers=[customer], subscriptions=[row])).subscription_ids
    plant(world, Seed(customers=[CustomerSeed(customer_token="AB" * 16, decline="do_not_honor")]))
    world.clock.advance(3_600)
    world.elapse()
    assert told(world, "message_type") == ["RECURRING_INSTALLMENT_FAILED"] * 8 + ["RECURRING_STOPPED"]
    assert (set(told(world)), told(world, "item_rec_status")[-2:]) == ({"-2"}, ["-1", "-1"])
    plant(world, Seed(customers=[customer]))

    caller.post("subscription/retry", {"subscription_id": subscription_id})

    assert told(world, "message_type")[-1] == "RECURRING_INSTALLMENT_SUCCESS"
    assert told(world, "item_rec_install_paid")[-1] == "2"


def test_next_date_is_one_of_the_gateways_zone() -> None:
    """Late in the evening in UTC it is the next day in Colombo."""
    payment = Payment(
        payment_id=1,
        merchant_id="1200001",
        order_id="S",
        at=NOW,
        description="x",
        currency="LKR",
        amount_cents=500,
    )
    subscription = Subscription(
        subscription_id=420075000001,
        merchant_id="1200001",
        order_id="S",
        customer_token="AB" * 16,
        started_at=NOW,
        description="x",
        currency="LKR",
        amount_cents=500,
        recurrence=Period(count=2, unit="Week"),
        duration=None,
    )

    fields = recurring_message(payment, subscription, "AUTHORIZATION_SUCCESS", next_at=NOW).fields

    assert (fields["item_rec_date_next"], fields["item_recurrence"], fields["item_duration"]) == (
        "2026-09-02",
        "2 Week",
        "Forever",
    )
