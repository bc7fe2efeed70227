"""Records put into the world from outside, as if customers had paid on the gateway's pages before."""

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Literal

import msgspec

from payrelay_simulator.chargebacks import take_back
from payrelay_simulator.errors import ControlError
from payrelay_simulator.installments import (
    RETRIES_MAX,
    Course,
    due_at,
    installments_total,
    plan_next,
    receive_installment,
)
from payrelay_simulator.money import CURRENCIES, cents_of
from payrelay_simulator.payments import HOLD_LIFE, receive, set_aside
from payrelay_simulator.records import Card, Customer, Decline, Hold, Merchant, Payment, Period, Person, Subscription
from payrelay_simulator.world import World

# Rows in one planting; more are planted in several.
ROWS_MAX = 10_000

INSTALLMENTS_MAX = 1_000  # paid before the world begins: twenty years of weeks

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]

Address = Annotated[str, msgspec.Meta(pattern="^(https?://.+)?$", max_length=4_096)]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every row can say: whose it is; without a word it belongs to the first merchant."""

    merchant_id: str | None = None


class CustomerSeed(Row, frozen=True, kw_only=True):
    """A preapproved customer. A token that is known already is replaced, so a card can begin or cease to decline."""

    customer_token: Annotated[str, msgspec.Meta(pattern="^[0-9A-F]{32}$")] | None = None
    decline: Decline | None = None
    is_cancelled: bool = False
    person: Person = Person()
    card: Card = Card()


class PaymentSeed(Row, frozen=True, kw_only=True):
    """A payment that was made on the hosted page. `visible_after_s` keeps it from searches for so long."""

    order_id: Text
    amount: Decimal
    currency: str = "LKR"
    description: Text = "Payment"
    is_charged_back: bool = False
    visible_after_s: Annotated[float, msgspec.Meta(ge=0, le=31_622_400)] = 0.0
    notify_url: Address = ""
    person: Person = Person()
    card: Card = Card()


class HoldSeed(Row, frozen=True, kw_only=True):
    """An amount that was authorized on the hosted page and can be captured."""

    order_id: Text
    amount: Decimal
    currency: str = "LKR"
    description: Text = "Hold"
    authorization_token: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    notify_url: Address = ""
    person: Person = Person()
    card: Card = Card()


class SubscriptionSeed(Row, frozen=True, kw_only=True):
    """A subscription of a known customer, `installments_paid` of which have been paid in the past and present."""

    order_id: Text
    customer_token: str
    amount: Decimal
    currency: str = "LKR"
    description: Text = "Subscription"
    recurrence: str = "1 Month"
    duration: str = "1 Year"
    startup_fee: Decimal | None = None
    status: Literal["ACTIVE", "COMPLETED", "FAILED", "CANCELLED"] = "ACTIVE"
    installments_paid: Annotated[int, msgspec.Meta(ge=1, le=INSTALLMENTS_MAX)] = 1
    # Told of what comes; of what was paid before nobody is told.
    notify_url: Address = ""


class Seed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows to plant, kind by kind in this order."""

    customers: list[CustomerSeed] = []
    payments: list[PaymentSeed] = []
    holds: list[HoldSeed] = []
    subscriptions: list[SubscriptionSeed] = []


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """The identifiers that the planted rows were given, in the order of the rows."""

    customer_tokens: list[str]
    payment_ids: list[int]
    authorization_tokens: list[str]
    subscription_ids: list[int]


def plant(world: World, seed: Seed) -> Planted:
    """Put the rows into the world. A ControlError names the first row that is wrong; the ones before it stay."""
    installments = sum(each.installments_paid for each in seed.subscriptions)
    if len(seed.customers) + len(seed.payments) + len(seed.holds) + installments > ROWS_MAX:
        raise ControlError("seed", f"must have at most {ROWS_MAX} rows, each paid installment counted as one")
    world.elapse()
    return Planted(
        customer_tokens=[
            _plant_customer(world, row, f"customers[{index}]") for index, row in enumerate(seed.customers)
        ],
        payment_ids=[_plant_payment(world, row, f"payments[{index}]") for index, row in enumerate(seed.payments)],
        authorization_tokens=[_plant_hold(world, row, f"holds[{index}]") for index, row in enumerate(seed.holds)],
        subscription_ids=[
            _plant_subscription(world, row, f"subscriptions[{index}]") for index, row in enumerate(seed.subscriptions)
        ],
    )


def _plant_customer(world: World, row: CustomerSeed, place: str) -> str:
    merchant = _merchant(world, row, place)
    token = row.customer_token or world.state.draws.token("customer token")
    world.state.customers[token] = Customer(
        customer_token=token,
        merchant_id=merchant.merchant_id,
        person=row.person,
        card=row.card,
        decline=row.decline,
        is_cancelled=row.is_cancelled,
    )
    return token


def _plant_payment(world: World, row: PaymentSeed, place: str) -> int:
    turn = world.turn_of(_merchant(world, row, place), None)
    payment = Payment(
        payment_id=world.state.next_payment_id(),
        merchant_id=turn.merchant.merchant_id,
        order_id=row.order_id,
        at=turn.now,
        description=row.description,
        currency=_currency(row.currency, place),
        amount_cents=_cents(row.amount, f"{place}.amount"),
        person=row.person,
        card=row.card,
        visible_at=turn.now + timedelta(seconds=row.visible_after_s),
        notify_url=row.notify_url,
    )
    receive(turn, payment)
    if row.is_charged_back:
        take_back(turn, payment, payment.amount_cents)
    return payment.payment_id


def _plant_hold(world: World, row: HoldSeed, place: str) -> str:
    turn = world.turn_of(_merchant(world, row, place), None)
    token = row.authorization_token or world.state.draws.uuid("authorization token")
    if token in world.state.holds:
        raise ControlError(f"{place}.authorization_token", "is taken")
    hold = Hold(
        authorization_token=token,
        payment_id=world.state.next_payment_id(),
        merchant_id=turn.merchant.merchant_id,
        order_id=row.order_id,
        expires_at=turn.now + HOLD_LIFE,
        description=row.description,
        currency=_currency(row.currency, place),
        amount_cents=_cents(row.amount, f"{place}.amount"),
        person=row.person,
        card=row.card,
        notify_url=row.notify_url,
    )
    set_aside(turn, hold)
    return token


def _plant_subscription(world: World, row: SubscriptionSeed, place: str) -> int:
    merchant = _merchant(world, row, place)
    customer = world.state.customers.get(row.customer_token)
    if customer is None or customer.merchant_id != merchant.merchant_id:
        raise ControlError(f"{place}.customer_token", "is no known customer of the merchant")
    startup_fee_cents = 0 if row.startup_fee is None else _cents(row.startup_fee, f"{place}.startup_fee")
    duration = None if row.duration == "Forever" else _period(row.duration, f"{place}.duration")
    subscription = Subscription(
        subscription_id=world.state.next_subscription_id(),
        merchant_id=merchant.merchant_id,
        order_id=row.order_id,
        customer_token=row.customer_token,
        started_at=world.clock.now(),
        description=row.description,
        currency=_currency(row.currency, place),
        amount_cents=_cents(row.amount, f"{place}.amount"),
        recurrence=_period(row.recurrence, f"{place}.recurrence"),
        duration=duration,
        startup_fee_cents=startup_fee_cents,
        notify_url=row.notify_url,
    )
    total = installments_total(subscription.recurrence, duration)
    paid = row.installments_paid
    if row.status == "COMPLETED":
        if total is None or total > INSTALLMENTS_MAX:
            raise ControlError(f"{place}.duration", f"must end within {INSTALLMENTS_MAX} installments to be COMPLETED")
        paid = total
    elif total is not None and paid >= total:
        raise ControlError(f"{place}.installments_paid", f"must be less than {total}, which is all of them")
    _begin(world, subscription, row, paid)
    return subscription.subscription_id


def _begin(world: World, subscription: Subscription, row: SubscriptionSeed, paid: int) -> None:
    """Keep the subscription as it stands after its first `paid` installments."""
    course = Course(state=world.state, ledger=world.ledger, switches=world.switches)
    # Moved back so that the last installment that was paid falls due now, and the next one in the future.
    lived = due_at(subscription, paid - 1, world.switches) - subscription.started_at
    subscription = msgspec.structs.replace(subscription, started_at=subscription.started_at - lived, cycle=paid)
    now = world.clock.now()
    for cycle in range(paid):
        at = min(due_at(subscription, cycle, world.switches), now)
        subscription = receive_installment(course, subscription, "installment", at, arrival=None)
    failures = RETRIES_MAX + 1 if row.status == "FAILED" else 0
    subscription = msgspec.structs.replace(subscription, status=row.status, failures=failures)
    world.state.subscriptions[subscription.subscription_id] = subscription
    if row.status == "ACTIVE":
        plan_next(world.state, subscription, due_at(subscription, paid, world.switches))


def _merchant(world: World, row: Row, place: str) -> Merchant:
    for merchant in world.merchants:
        if row.merchant_id in {None, merchant.merchant_id}:
            return merchant
    raise ControlError(f"{place}.merchant_id", "is no merchant of this simulator")


def _cents(given: Decimal, place: str) -> int:
    cents = cents_of(given)
    if cents is None:
        raise ControlError(place, "must be a positive amount of whole cents")
    return cents


def _currency(currency: str, place: str) -> str:
    if currency not in CURRENCIES:
        raise ControlError(f"{place}.currency", f"must be one of {', '.join(sorted(CURRENCIES))}")
    return currency


def _period(text: str, place: str) -> Period:
    number, _, unit = text.partition(" ")
    try:
        return msgspec.convert({"count": number, "unit": unit}, Period, strict=False)
    except msgspec.ValidationError:
        raise ControlError(place, "must be a count from 1 to 120 and one of Day, Week, Month, Year") from None
