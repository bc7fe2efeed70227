from decimal import Decimal

import msgspec
import pytest

from payrelay_simulator import ControlError, CustomerSeed, HoldSeed, PaymentSeed, Seed, SubscriptionSeed, World, plant

CUSTOMER = CustomerSeed(customer_token="A1B2" * 8)


def subscription(**change: object) -> SubscriptionSeed:
    """Return a good subscription row with some of its members changed."""
    row = SubscriptionSeed(order_id="S", customer_token="A1B2" * 8, amount=Decimal(1))
    return msgspec.structs.replace(row, **change)


def test_planted_rows_are_in_the_ledger(world: World) -> None:
    """Money that was there before the test counts like any other."""
    plant(
        world,
        Seed(
            payments=[PaymentSeed(order_id="A", amount=Decimal(5))], holds=[HoldSeed(order_id="B", amount=Decimal(7))]
        ),
    )

    assert [(entry.kind, entry.amount_cents, entry.arrival) for entry in world.ledger.entries()] == [
        ("charge", 500, None),
        ("authorization", 700, None),
    ]


def test_customer_planted_again_is_replaced(world: World) -> None:
    """A card can begin to decline in the middle of a test."""
    plant(world, Seed(customers=[CUSTOMER]))
    plant(world, Seed(customers=[CustomerSeed(customer_token="A1B2" * 8, decline="do_not_honor")]))

    assert [customer.decline for customer in world.state.customers.values()] == ["do_not_honor"]


@pytest.mark.parametrize(
    ("seed", "field"),
    [
        (Seed(payments=[PaymentSeed(order_id="A", amount=Decimal(0))]), r"payments\[0\].amount"),
        (Seed(payments=[PaymentSeed(order_id="A", amount=Decimal(1), currency="X")]), r"payments\[0\].currency"),
        (Seed(payments=[PaymentSeed(order_id="A", amount=Decimal(1), merchant_id="9")]), r"payments\[0\].merchant_id"),
        (Seed(holds=[HoldSeed(order_id="A", amount=Decimal(1), authorization_token="t")] * 2), r"holds\[1\].auth"),
        (Seed(subscriptions=[subscription()]), r"subscriptions\[0\].customer_token"),
        (Seed(customers=[CUSTOMER], subscriptions=[subscription(duration="soon")]), r"subscriptions\[0\].duration"),
        (Seed(customers=[CUSTOMER], subscriptions=[subscription(recurrence="0 Month")]), r"\[0\].recurrence"),
        (Seed(customers=[CUSTOMER], subscriptions=[subscription(installments_paid=12)]), r"\[0\].installments_paid"),
        (Seed(customers=[CUSTOMER], subscriptions=[subscription(duration="Forever", status="COMPLETED")]), "duration"),
        (Seed(payments=[PaymentSeed(order_id="A", amount=Decimal(1))] * 10_001), "seed"),
        (Seed(customers=[CUSTOMER], subscriptions=[subscription(installments_paid=1_000)] * 10), "seed"),
    ],
)
def test_wrong_row_is_named(world: World, seed: Seed, field: str) -> None:
    """Whoever plants can find the row."""
    with pytest.raises(ControlError, match=field):
        plant(world, seed)
