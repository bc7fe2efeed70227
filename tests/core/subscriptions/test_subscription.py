"""What is known of a subscription is merged: any order and number of facts gives the same."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.notifications.test_notification import CONTENT
from tests.samples import NOTIFICATION

from payrelay.core.notifications.notification import MessageType, NotificationKind, PlanStatus, ReportedStatus
from payrelay.core.subscriptions.subscription import (
    Fact,
    Subscription,
    SubscriptionState,
    event_of,
    events_of,
    fact_of_notification,
    merged,
)

UNKNOWN = Subscription(merchant="0123456789abcdef", subscription_id="42", account="gateway")
OF_PLAN = msgspec.structs.replace(CONTENT, kind=NotificationKind.RECURRING, subscription_id="42", installments_paid=2)

notified = st.builds(
    Fact,
    subscription_id=st.just("42"),
    at_ms=st.integers(1, 9),
    is_seen=st.sampled_from([False]),
    state=st.sampled_from(SubscriptionState) | st.none(),
    paid=st.integers(0, 5) | st.none(),
    next_on=st.sampled_from(["2026-01-15", "2026-02-15", "2026-03-15"]) | st.none(),
)
seen = st.builds(
    Fact,
    subscription_id=st.just("42"),
    at_ms=st.integers(1, 9),
    is_seen=st.sampled_from([True]),
    state=st.sampled_from(SubscriptionState) | st.none(),
)


def after(facts: list[Fact]) -> Subscription:
    """Joins facts one after the other."""
    known = UNKNOWN
    for fact in facts:
        known = merged(known, fact, principal="shop")
    return known


@given(st.lists(notified | seen, max_size=8), st.randoms(use_true_random=False), st.integers(1, 3))
def test_neither_order_nor_number_matters(facts: list[Fact], random: Random, times: int) -> None:
    """A network delays, doubles and reorders; the app must show the same."""
    shuffled = facts * times
    random.shuffle(shuffled)

    assert after(shuffled) == after(facts)


def test_who_counts_more_installments_knows_more() -> None:
    """A plan that was stopped and paid after all goes on; a late word of an earlier installment changes nothing."""
    stopped = Fact(subscription_id="42", at_ms=1, is_seen=False, state=SubscriptionState.STOPPED, paid=2)
    paid = Fact(subscription_id="42", at_ms=2, is_seen=False, state=SubscriptionState.ACTIVE, paid=3)
    late = Fact(subscription_id="42", at_ms=3, is_seen=False, state=SubscriptionState.ACTIVE, paid=1)

    assert after([stopped]).state is SubscriptionState.STOPPED
    assert after([stopped, paid, late]).state is SubscriptionState.ACTIVE
    assert after([stopped, paid, late]).notified_at_ms == 2


def test_what_the_gateway_shows_stands_until_more_is_told() -> None:
    """A cancellation in the gateway's portal has no notification, and is seen by the next read."""
    active = Fact(subscription_id="42", at_ms=5, is_seen=False, state=SubscriptionState.ACTIVE, paid=1)
    cancelled = Fact(subscription_id="42", at_ms=9, is_seen=True, state=SubscriptionState.STOPPED)
    older = Fact(subscription_id="42", at_ms=3, is_seen=True, state=SubscriptionState.STOPPED)

    assert after([active, cancelled]).state is SubscriptionState.STOPPED
    assert after([active, older]).state is SubscriptionState.ACTIVE
    assert after([cancelled]).as_of_ms == 9


def test_what_has_ended_has_no_next_date() -> None:
    """A date in an app is a promise."""
    active = Fact(subscription_id="42", at_ms=1, is_seen=False, state=SubscriptionState.ACTIVE, next_on="2026-02-15")
    ended = Fact(subscription_id="42", at_ms=2, is_seen=False, state=SubscriptionState.COMPLETED, paid=1)

    assert after([active]).next_on == "2026-02-15"
    assert after([active, ended]).next_on is None


@pytest.mark.parametrize(
    ("members", "state", "is_paid"),
    [
        (
            {"message_type": MessageType.AUTHORIZATION_SUCCESS, "plan_status": PlanStatus.ACTIVE},
            SubscriptionState.ACTIVE,
            True,
        ),
        ({"message_type": MessageType.INSTALLMENT_SUCCESS}, SubscriptionState.ACTIVE, True),
        (
            {"message_type": MessageType.COMPLETE, "plan_status": PlanStatus.COMPLETED},
            SubscriptionState.COMPLETED,
            True,
        ),
        ({"message_type": MessageType.STOPPED, "reported": ReportedStatus.FAILED}, SubscriptionState.STOPPED, False),
        (
            {"message_type": MessageType.INSTALLMENT_FAILED, "reported": ReportedStatus.FAILED},
            SubscriptionState.ACTIVE,
            False,
        ),
        ({"plan_status": PlanStatus.CANCELLED, "reported": ReportedStatus.FAILED}, SubscriptionState.STOPPED, False),
    ],
)
def test_notifications_become_facts(members: dict[str, object], state: SubscriptionState, is_paid: bool) -> None:  # noqa: FBT001
    """The gateway says it in three fields that may disagree; the message is the most exact."""
    fact = fact_of_notification(msgspec.structs.replace(OF_PLAN, **members), NOTIFICATION)

    assert fact is not None
    assert (fact.state, fact.is_paid, fact.payment, fact.paid) == (state, is_paid, "320025000001", 2)


def test_what_is_of_no_subscription_is_no_fact() -> None:
    """A chargeback takes a payment back; the plan goes on."""
    assert fact_of_notification(CONTENT, NOTIFICATION) is None
    assert (
        fact_of_notification(msgspec.structs.replace(OF_PLAN, reported=ReportedStatus.CHARGED_BACK), NOTIFICATION)
        is None
    )
    pending = fact_of_notification(msgspec.structs.replace(OF_PLAN, reported=ReportedStatus.PENDING), NOTIFICATION)
    assert pending is not None
    assert pending.payment is None


def test_a_failure_without_a_number_is_still_one() -> None:
    """The gateway may name no payment where none was made."""
    failed = {"payment_id": None, "reported": ReportedStatus.FAILED, "message_type": MessageType.INSTALLMENT_FAILED}
    fact = fact_of_notification(msgspec.structs.replace(OF_PLAN, **failed), NOTIFICATION)

    assert fact is not None
    assert fact.payment == f"ntf:{NOTIFICATION.id}"
    event = event_of(
        msgspec.structs.replace(UNKNOWN, principal="shop"),
        "subscription.installment_failed",
        "evt_1",
        at_ms=1,
        paid=2,
        fact=fact,
    )
    assert event.data["payment_id"] is None


def test_each_change_has_an_event_of_its_type() -> None:
    """Whoever registered for it must get what happened, once."""
    fact = Fact(subscription_id="42", at_ms=1, is_seen=False, state=SubscriptionState.ACTIVE, next_on="2026-02-15")
    first = merged(UNKNOWN, fact, principal="shop")
    known = msgspec.structs.replace(first, version=1)
    ended = msgspec.structs.replace(known, notified_state=SubscriptionState.COMPLETED)
    later = msgspec.structs.replace(known, notified_next_on="2026-03-15")

    assert events_of(UNKNOWN, first, fact, is_new_payment=False) == [("subscription.updated", None)]
    assert events_of(known, known, fact, is_new_payment=False) == []
    assert events_of(known, later, fact, is_new_payment=True) == [
        ("subscription.installment_failed", fact),
        ("subscription.updated", None),
    ]
    assert events_of(known, ended, fact, is_new_payment=False) == [("subscription.completed", None)]
