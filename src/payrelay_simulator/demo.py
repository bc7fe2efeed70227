"""A small world to try things on, with identifiers that are always the same."""

from decimal import Decimal

import msgspec

from payrelay_simulator.records import Card, Person
from payrelay_simulator.seeding import CustomerSeed, HoldSeed, PaymentSeed, Seed, SubscriptionSeed, plant
from payrelay_simulator.simulator import Simulator

# Easily told apart in a list of calls, and valid in form.
CUSTOMER_TOKEN = "D3A0" * 8
OTHER_CUSTOMER_TOKEN = "D3A1" * 8
DECLINING_CUSTOMER_TOKEN = "DEC1" * 8
HELD_AUTHORIZATION = "d3a0d3a0-0000-4000-8000-000000000001"
OTHER_HELD_AUTHORIZATION = "d3a0d3a0-0000-4000-8000-000000000002"

PAID_ORDER, TWICE_PAID_ORDER, HELD_ORDER = "DemoOrder1", "DemoOrder2", "DemoHold1"

NIMALI = Person(first_name="Nimali", last_name="Silva", email="nimali@example.com", phone="+94772345678")
KAMAL = Person(first_name="Kamal", last_name="Fernando", email="kamal@example.com", phone="+94773456789")
NIMALIS_CARD = Card(method="MASTER", holder_name="N Silva", last_digits="1191")


class DemoWorld(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the demonstration world."""

    customer_token: str
    other_customer_token: str
    declining_customer_token: str
    paid_order_id: str
    paid_payment_id: int
    twice_paid_order_id: str
    twice_paid_payment_ids: tuple[int, int]
    held_order_id: str
    authorization_token: str
    held_amount: str
    active_subscription_id: int
    # Its last installment failed and its card is good again, so a retry succeeds.
    failed_subscription_id: int
    completed_subscription_id: int


def demo_world(simulator: Simulator) -> DemoWorld:
    """Fill a fresh simulator with customers, payments, a hold and subscriptions, and say what they are called."""
    planted = plant(simulator.world, DEMO_SEED)
    first, second, third = planted.payment_ids
    active, failed, completed = planted.subscription_ids
    return DemoWorld(
        customer_token=CUSTOMER_TOKEN,
        other_customer_token=OTHER_CUSTOMER_TOKEN,
        declining_customer_token=DECLINING_CUSTOMER_TOKEN,
        paid_order_id=PAID_ORDER,
        paid_payment_id=first,
        twice_paid_order_id=TWICE_PAID_ORDER,
        twice_paid_payment_ids=(second, third),
        held_order_id=HELD_ORDER,
        authorization_token=HELD_AUTHORIZATION,
        held_amount="100.00",
        active_subscription_id=active,
        failed_subscription_id=failed,
        completed_subscription_id=completed,
    )


DEMO_SEED = Seed(
    customers=[
        CustomerSeed(customer_token=CUSTOMER_TOKEN),
        CustomerSeed(customer_token=OTHER_CUSTOMER_TOKEN, person=NIMALI, card=NIMALIS_CARD),
        CustomerSeed(customer_token=DECLINING_CUSTOMER_TOKEN, person=KAMAL, decline="insufficient_funds"),
    ],
    payments=[
        PaymentSeed(order_id=PAID_ORDER, amount=Decimal("1000.00"), description="Taxi Hire 123"),
        PaymentSeed(order_id=TWICE_PAID_ORDER, amount=Decimal("250.50"), description="Book", person=NIMALI),
        PaymentSeed(order_id=TWICE_PAID_ORDER, amount=Decimal("250.50"), description="Book", person=NIMALI),
    ],
    holds=[
        HoldSeed(
            order_id=HELD_ORDER,
            amount=Decimal("100.00"),
            description="Toy Car",
            authorization_token=HELD_AUTHORIZATION,
        ),
        # To void, where the other one is captured.
        HoldSeed(
            order_id="DemoHold2",
            amount=Decimal("150.00"),
            description="Hotel room 4",
            authorization_token=OTHER_HELD_AUTHORIZATION,
        ),
    ],
    subscriptions=[
        SubscriptionSeed(
            order_id="DemoSubscription1",
            customer_token=CUSTOMER_TOKEN,
            amount=Decimal("100.00"),
            description="Book reading Subscription",
            duration="3 Year",
            startup_fee=Decimal("100.00"),
        ),
        SubscriptionSeed(
            order_id="DemoSubscription2",
            customer_token=OTHER_CUSTOMER_TOKEN,
            amount=Decimal("20.00"),
            description="Newspaper",
            status="FAILED",
            installments_paid=2,
        ),
        SubscriptionSeed(
            order_id="DemoSubscription3",
            customer_token=OTHER_CUSTOMER_TOKEN,
            amount=Decimal("75.25"),
            description="Summer course",
            duration="3 Month",
            status="COMPLETED",
        ),
    ],
)
