import pytest

from payrelay_simulator import Caller, ControlError, DemoWorld, World
from payrelay_simulator.chargebacks import charge_back


def test_charged_back_payment_is_told_and_shown(world: World, caller: Caller, demo: DemoWorld) -> None:
    """The money is gone, and the merchant learns it by notification and by search."""
    (number,) = charge_back(world, demo.paid_payment_id, "http://shop.example/notify")

    fields = world.notifications.find(number).fields
    entry = world.ledger.entries()[-1]
    (row,) = caller.get("payment/search", order_id=demo.paid_order_id).document["data"]
    assert (fields["status_code"], fields["payhere_amount"]) == ("-3", "1000.00")
    assert (entry.kind, entry.amount_cents, row["status"]) == ("chargeback", 100_000, "CHARGEBACKED")


def test_installment_can_be_charged_back(world: World, demo: DemoWorld) -> None:
    """The notification says which subscription it was for."""
    payment_id = world.state.subscriptions[demo.active_subscription_id].payment_ids[0]
    (number,) = charge_back(world, payment_id, "http://shop.example/notify")

    fields = world.notifications.find(number).fields
    assert (fields["subscription_id"], fields["recurring"]) == (str(demo.active_subscription_id), "1")


def test_payment_is_charged_back_once(world: World, demo: DemoWorld) -> None:
    """What is gone, or was given back, cannot go again; neither can what never was."""
    assert charge_back(world, demo.paid_payment_id) == ()
    for payment_id in (demo.paid_payment_id, 1):
        with pytest.raises(ControlError):
            charge_back(world, payment_id)

    assert [entry.kind for entry in world.ledger.entries()].count("chargeback") == 1
