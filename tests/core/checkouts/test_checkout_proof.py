import msgspec
import pytest
from tests import samples
from tests.samples import CHECKOUT

from payrelay.core.checkouts.checkout_proof import first_payment, has_begun, is_as_asked, may_be_paid_by, plans_of
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.proof import TOLERANCE_MS
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


@pytest.mark.parametrize(
    ("members", "is_so"),
    [
        ({}, True),
        ({"amount_minor": 1}, False),
        ({"amount_minor": None}, False),
        ({"currency": "USD"}, False),
        ({"began_at_ms": None}, False),
        ({"began_at_ms": OLD_MS}, False),
    ],
)
def test_a_plan_is_compared_with_what_was_asked(members: dict[str, object], *, is_so: bool) -> None:
    """What is charged later is not signed in the form."""
    assert is_as_asked(CHECKOUT, begun(**members)) is is_so


def test_the_first_payment_is_made_when_the_plan_begins() -> None:
    """Later installments are as much; where the first one is not shown, none of them stands for it."""
    later = paid(payment_id="320025000010", at_ms=2_000 + TOLERANCE_MS)
    too_late = paid(payment_id="320025000011", at_ms=2_001 + TOLERANCE_MS)

    assert first_payment(CHECKOUT, PLAN, [too_late, later, PAYMENT]) == PAYMENT
    assert first_payment(CHECKOUT, PLAN, [too_late]) is None
    assert first_payment(CHECKOUT, begun(began_at_ms=None), [PAYMENT]) is None


def test_a_plan_without_a_payment_has_begun_only_where_it_begins_later() -> None:
    """And only while it goes on: the card may have been refused."""
    assert has_begun(PLAN, PAYMENT, begins_later=False)
    assert has_begun(PLAN, None, begins_later=True)
    assert not has_begun(PLAN, None, begins_later=False)
    assert not has_begun(begun(state=SubscriptionState.STOPPED), None, begins_later=True)
