import pytest

from payrelay_simulator import Caller, ControlError, DemoWorld, World
from payrelay_simulator.chargebacks import charge_back, win_chargeback


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


def test_part_of_a_payment_can_be_charged_back(world: World, demo: DemoWorld) -> None:
    """A bank may take back the one cup that was broken; what it took is told beside the payment's amount."""
    (number,) = charge_back(world, demo.paid_payment_id, "http://shop.example/notify", amount_cents=40_000)

    fields = world.notifications.find(number).fields
    assert (fields["payhere_amount"], fields["captured_amount"]) == ("1000.00", "400.00")
    assert world.ledger.entries()[-1].amount_cents == 40_000


def test_no_more_is_charged_back_than_is_left(world: World, caller: Caller, demo: DemoWorld) -> None:
    """A bank can't take what the merchant gave back already."""
    caller.post("payment/refund", {"payment_id": demo.paid_payment_id, "description": "x", "amount": "700.00"})
    with pytest.raises(ControlError, match="amount"):
        charge_back(world, demo.paid_payment_id, amount_cents=30_001)
    charge_back(world, demo.paid_payment_id)

    assert world.ledger.entries()[-1].amount_cents == 30_000


def test_won_chargeback_gives_the_money_back_to_the_merchant(world: World, caller: Caller, demo: DemoWorld) -> None:
    """The payment is as it was before, and can be refunded like any other."""
    charge_back(world, demo.paid_payment_id)
    win_chargeback(world, demo.paid_payment_id)

    entry = world.ledger.entries()[-1]
    (row,) = caller.get("payment/search", order_id=demo.paid_order_id).document["data"]
    assert (entry.kind, entry.amount_cents, row["status"]) == ("chargeback_reversal", 100_000, "RECEIVED")
    refund = caller.post("payment/refund", {"payment_id": demo.paid_payment_id, "description": "x"})
    assert refund.document["status"] == 1


def test_only_a_chargeback_can_be_won_and_once(world: World, demo: DemoWorld) -> None:
    """Money that nobody took can't come back."""
    charge_back(world, demo.paid_payment_id)
    win_chargeback(world, demo.paid_payment_id)
    for payment_id in (demo.paid_payment_id, 1):
        with pytest.raises(ControlError, match="payment_id"):
            win_chargeback(world, payment_id)

    assert [entry.kind for entry in world.ledger.entries()].count("chargeback_reversal") == 1


def test_payment_is_charged_back_once(world: World, demo: DemoWorld) -> None:
    """What is gone, or was given back, cannot go again; neither can what never was."""
    assert charge_back(world, demo.paid_payment_id) == ()
    for payment_id in (demo.paid_payment_id, 1):
        with pytest.raises(ControlError):
            charge_back(world, payment_id)

    assert [entry.kind for entry in world.ledger.entries()].count("chargeback") == 1
