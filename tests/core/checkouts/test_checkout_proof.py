from datetime import date

import msgspec
import pytest
from tests import samples
from tests.samples import CHECKOUT

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, Details
from payrelay.core.checkouts.checkout_proof import (
    JudgedPlan,
    PlanRuling,
    begins_later,
    contradiction_of,
    judge_plan,
    may_be_paid_by,
    plans_of,
)
from payrelay.core.checkouts.hosted_payment import Buyer, HostedPayment, Plan, PostalAddress
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.core.subscriptions.schedule import Schedule
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState

PAYMENT = msgspec.structs.replace(samples.PAYMENT, payment_id="320025000009")
PLAN = Fact(
    subscription_id="420075044317",
    at_ms=9_000,
    is_seen=True,
    order_id="A-1",
    currency="LKR",
    amount_minor=100_000,
    state=SubscriptionState.ACTIVE,
    began_at_ms=2_000,
)
OLD_MS = CHECKOUT.created_at_ms - TOLERANCE_MS - 1


def paid(**members: object) -> Payment:
    """The payment, but for what is named."""
    return msgspec.structs.replace(PAYMENT, **members)


def begun(**members: object) -> Fact:
    """The plan, but for what is named."""
    return msgspec.structs.replace(PLAN, **members)


def test_a_payment_is_what_was_to_be_paid_first() -> None:
    """A startup fee is in the first payment and in no later one."""
    with_fee = msgspec.structs.replace(CHECKOUT, first_minor=150_000)

    assert may_be_paid_by(CHECKOUT, PAYMENT)
    assert not may_be_paid_by(with_fee, PAYMENT)
    assert may_be_paid_by(with_fee, paid(amount_minor=150_000))


@pytest.mark.parametrize(
    "members",
    [{"status": "REFUNDED"}, {"order_id": "B-7"}, {"currency": "USD"}, {"at_ms": None}, {"at_ms": OLD_MS}],
)
def test_any_other_payment_is_none_of_its(members: dict[str, object]) -> None:
    """Order ids are not unique at the gateway, and what was given back pays for nothing."""
    assert not may_be_paid_by(CHECKOUT, paid(**members))


def test_what_may_be_meant_is_of_the_order_and_not_older() -> None:
    """One whose date can't be read may be meant: it stands in the way of choosing the other."""
    undated = begun(began_at_ms=None)

    assert plans_of(CHECKOUT, [PLAN, undated, begun(order_id="B-7"), begun(began_at_ms=OLD_MS)]) == (PLAN, undated)


def details_of(plan: Plan) -> Details:
    """Gives the details of a checkout that asked for a plan."""
    home = PostalAddress(address="1 Galle Road", city="Colombo", country="Sri Lanka")
    person = Buyer(first_name="S", last_name="Perera", email="s@example.com", phone="0771234567", home=home)
    asked = HostedPayment(
        kind=CheckoutKind.RECURRING,
        order_id="A-1",
        items="Tea",
        currency="LKR",
        amount_minor=100_000,
        person=person,
        plan=plan,
    )
    return Details(secret="s", asked=asked)


MONTHLY = details_of(Plan(recurrence="1 Month", duration="1 Year"))
TRIAL = details_of(Plan(recurrence="1 Month", duration="1 Year", starts_on=date(2030, 1, 1)))
YEARLY = Schedule(every_days=365.25)


def judged(
    plan: Fact, *payments: Payment, details: Details | None = MONTHLY, checkout: Checkout = CHECKOUT
) -> JudgedPlan:
    """Gives the ruling about a plan and the payments that are shown with it."""
    return judge_plan(checkout, details, plan, payments, timezone="Asia/Colombo")


@pytest.mark.parametrize(
    ("members", "ruling"),
    [
        ({}, PlanRuling.AS_ASKED),
        ({"schedule": Schedule(every_days=365.25 / 12)}, PlanRuling.AS_ASKED),
        ({"amount_minor": 1}, PlanRuling.OTHER_AMOUNT),
        ({"amount_minor": None}, PlanRuling.OTHER_AMOUNT),
        ({"currency": "USD"}, PlanRuling.OTHER_AMOUNT),
        ({"began_at_ms": None}, PlanRuling.EARLIER),
        ({"began_at_ms": OLD_MS}, PlanRuling.EARLIER),
        ({"schedule": YEARLY}, PlanRuling.OTHER_SCHEDULE),
    ],
)
def test_a_plan_is_compared_with_what_was_asked(members: dict[str, object], ruling: PlanRuling) -> None:
    """What is charged later is not signed in the form. A contradiction needs no payment to be seen."""
    first = PAYMENT if ruling is PlanRuling.AS_ASKED else None

    assert judged(begun(**members), PAYMENT) == (ruling, first)
    assert contradiction_of(CHECKOUT, MONTHLY, begun(**members)) == (None if first is not None else ruling)


def test_a_schedule_that_is_not_known_any_more_contradicts_nothing() -> None:
    """What the customer was asked for is forgotten 30 days after the outcome."""
    assert judged(begun(schedule=YEARLY), PAYMENT, details=None).ruling is PlanRuling.AS_ASKED


def test_the_first_payment_is_made_when_the_plan_begins() -> None:
    """Later installments are as much; where the first one is not shown, none of them stands for it."""
    later = paid(payment_id="320025000010", at_ms=2_000 + TOLERANCE_MS)
    too_late = paid(payment_id="320025000011", at_ms=2_001 + TOLERANCE_MS)

    assert judged(PLAN, too_late, later, PAYMENT) == (PlanRuling.AS_ASKED, PAYMENT)
    assert judged(PLAN, too_late) == (PlanRuling.NOT_SHOWN, None)
    assert judged(PLAN) == (PlanRuling.NOT_SHOWN, None)


def test_the_oldest_payment_is_the_first_one() -> None:
    """A customer who edited the startup fee pays less first; what is paid after that doesn't hide it."""
    small, next_one = paid(amount_minor=1_000), paid(payment_id="320025000010", at_ms=3_000)
    undated = paid(payment_id="320025000008", at_ms=None)

    assert judged(PLAN, next_one, undated, small) == (PlanRuling.OTHER_AMOUNT, small)
    assert judged(PLAN, paid(currency="USD")).ruling is PlanRuling.OTHER_AMOUNT
    with_fee = msgspec.structs.replace(CHECKOUT, first_minor=150_000)
    assert judged(PLAN, PAYMENT, checkout=with_fee) == (PlanRuling.OTHER_AMOUNT, PAYMENT)
    given_back = paid(status="REFUNDED")
    assert judged(PLAN, given_back) == (PlanRuling.NOT_SHOWN, given_back)


@pytest.mark.parametrize(
    ("state", "ruling"),
    [
        (SubscriptionState.ACTIVE, PlanRuling.AS_ASKED),
        (SubscriptionState.STOPPED, PlanRuling.ENDED),
        (SubscriptionState.COMPLETED, PlanRuling.ENDED),
        (None, PlanRuling.NOT_SHOWN),
    ],
)
def test_a_plan_that_begins_later_needs_no_payment_while_it_is_active(
    state: SubscriptionState | None, ruling: PlanRuling
) -> None:
    """The card may have been refused. Once it was paid, the payment decides, on whatever day."""
    plan, small = begun(state=state), paid(amount_minor=1_000)

    assert judged(plan, details=TRIAL) == (ruling, None)
    on_its_day = paid(at_ms=1_900_000_000_000)
    assert judged(plan, on_its_day, details=TRIAL) == (PlanRuling.AS_ASKED, on_its_day)
    assert judged(plan, on_its_day, small, details=TRIAL) == (PlanRuling.OTHER_AMOUNT, small)


def test_whether_a_plan_begins_later_is_told_by_the_day_of_its_subscription() -> None:
    """A subscription whose day isn't shown doesn't count as one that may go without a payment."""
    assert begins_later(TRIAL, PLAN, "Asia/Colombo")
    assert not begins_later(MONTHLY, PLAN, "Asia/Colombo")
    assert not begins_later(TRIAL, begun(began_at_ms=None), "Asia/Colombo")
