from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest

from payrelay_simulator import (
    Arguments,
    Caller,
    Clock,
    CustomerSeed,
    Match,
    Rule,
    Seed,
    Simulator,
    SubscriptionSeed,
    Switches,
    World,
    plant,
)
from payrelay_simulator.installments import installments_total, is_shorter
from payrelay_simulator.records import Decline, Period, Subscription, Unit

DAY_S = 86_400
CUSTOMER = "A1B2" * 8


def world_with(duration: str, recurrence: str = "1 Month", *, is_calendar: bool = True) -> World:
    """Return a world with one customer and one subscription of a hundred rupees, begun on 31 January."""
    switches = Switches(installments="calendar" if is_calendar else "accelerated", rate_limit_calls=0)
    world = Simulator(clock=Clock.standing(datetime(2026, 1, 31, 4, tzinfo=UTC)), switches=switches).world
    subscription = SubscriptionSeed(
        order_id="S", customer_token=CUSTOMER, amount=Decimal(100), recurrence=recurrence, duration=duration
    )
    plant(world, Seed(customers=[CustomerSeed(customer_token=CUSTOMER)], subscriptions=[subscription]))
    return world


def only_subscription(world: World) -> Subscription:
    """Return the world's one subscription."""
    (subscription,) = world.state.subscriptions.values()
    return subscription


def set_decline(world: World, decline: Decline | None) -> None:
    """Make the customer's card decline, or be good again."""
    customer = world.state.customers[CUSTOMER]
    world.state.customers[CUSTOMER] = msgspec.structs.replace(customer, decline=decline)


def advance(world: World, days: int) -> None:
    """Let days pass in one step."""
    world.clock.advance(days * DAY_S)
    world.elapse()


def test_installments_fall_due_by_the_calendar() -> None:
    """A subscription of the 31st is charged on the last day of shorter months, and on the 31st again after."""
    world = world_with("4 Month")
    advance(world, 120)

    dates = [entry.gateway_date[:10] for entry in world.ledger.entries()]
    assert dates == ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]


def test_accelerated_installments_come_every_minute() -> None:
    """As in the gateway's sandbox nobody has to wait for a month."""
    world = world_with("3 Month", is_calendar=False)
    world.clock.advance(120)
    world.elapse()

    assert [entry.gateway_date[-8:] for entry in world.ledger.entries()] == ["09:30:00", "09:31:00", "09:32:00"]


def test_all_installments_paid_completes() -> None:
    """Nothing is charged beyond the agreed duration, however much time passes."""
    world = world_with("2 Month")
    advance(world, 1000)

    assert only_subscription(world).status == "COMPLETED"
    assert len(world.ledger) == 2


def test_failing_card_is_tried_eight_times_then_given_up() -> None:
    """One failure and seven daily retries end a subscription; no money moves meanwhile."""
    world = world_with("Forever")
    set_decline(world, "insufficient_funds")
    advance(world, 28 + 6)
    assert only_subscription(world).status == "ACTIVE"

    advance(world, 1)

    assert (only_subscription(world).status, only_subscription(world).failures) == ("FAILED", 8)
    assert len(world.ledger) == 1


def test_card_that_recovers_is_charged_by_the_next_daily_retry() -> None:
    """A retry that succeeds does not shift the schedule."""
    world = world_with("Forever")
    set_decline(world, "network_error")
    advance(world, 28 + 2)
    set_decline(world, None)
    advance(world, 30)

    dates = [entry.gateway_date[:10] for entry in world.ledger.entries()]
    assert dates == ["2026-01-31", "2026-03-03", "2026-03-31"]


@pytest.mark.parametrize("times", [1, 3])
def test_a_rule_fails_as_many_tries_as_it_says(times: int) -> None:
    """It counts as with calls, so that a test says how often a card fails before it is good again."""
    world = world_with("Forever")
    world.faults.add_rules(
        Rule(fault="decline", match=Match(order_id="S"), times=times, args=Arguments(reason="do_not_honor"))
    )
    advance(world, 28 + times - 1)
    assert (only_subscription(world).failures, len(world.ledger)) == (times, 1)
    assert world.faults.pending == ()

    advance(world, 1)

    assert (only_subscription(world).failures, len(world.ledger)) == (0, 2)


@pytest.mark.parametrize("is_declined", [True, False])
def test_retry_after_a_rule_collects_unless_it_is_declined_too(*, is_declined: bool) -> None:
    """A merchant's retry is a charge of the same card: a second decline of the order is that of the retry."""
    world = world_with("Forever")
    world.faults.add_rules(Rule(fault="decline", match=Match(order_id="S"), times=2 if is_declined else 1))
    advance(world, 28)
    caller = Caller(world)
    body = {"subscription_id": only_subscription(world).subscription_id}
    outcome = caller.post("subscription/retry", body)

    expected = (
        ("Simulator: the retry was declined: insufficient funds", 1)
        if is_declined
        else (
            "Recurring payment charged successfully",
            2,
        )
    )
    assert (outcome.document["msg"], len(world.ledger)) == expected
    assert caller.post("subscription/retry", body).document["status"] == (1 if is_declined else -1)


def test_an_installment_can_be_found_later() -> None:
    """A payment of time's may be told before a search shows it, as one of a call may."""
    world = world_with("Forever", is_calendar=False)
    rule = Rule(fault="late_visibility", match=Match(endpoint="installment"), args=Arguments(wait_s=30))
    world.faults.add_rules(rule)
    world.clock.advance(60)
    caller = Caller(world)

    def shown() -> int:
        return len(caller.get("payment/search", order_id="S").document["data"])

    assert (shown(), len(world.ledger)) == (1, 2)
    world.clock.advance(30)
    assert shown() == 2


def test_retry_by_the_merchant_replaces_the_planned_one() -> None:
    """An installment that the merchant collected is not collected again by time."""
    world = world_with("2 Month")
    set_decline(world, "limit_exceeded")
    advance(world, 28)
    set_decline(world, None)
    Caller(world).post("subscription/retry", {"subscription_id": only_subscription(world).subscription_id})
    advance(world, 60)

    assert [entry.kind for entry in world.ledger.entries()] == ["installment", "retry"]
    assert only_subscription(world).status == "COMPLETED"


def test_steps_of_the_clock_do_not_matter() -> None:
    """One long step and many short ones bring about the same, at the same moments."""
    at_once, by_days = world_with("1 Year", "2 Week"), world_with("1 Year", "2 Week")
    advance(at_once, 200)
    for _ in range(200):
        advance(by_days, 1)

    assert at_once.ledger.entries() == by_days.ledger.entries()


@pytest.mark.parametrize(
    ("recurrence", "duration", "total"),
    [
        ((1, "Month"), (1, "Year"), 12),
        ((6, "Month"), (10, "Year"), 20),
        ((1, "Week"), (1, "Year"), 52),
        ((2, "Week"), (4, "Week"), 2),
        ((1, "Year"), (1, "Month"), 1),
        ((1, "Day"), (1, "Week"), 7),
    ],
)
def test_number_of_installments(recurrence: tuple[int, Unit], duration: tuple[int, Unit], total: int) -> None:
    """The duration holds so many recurrences, and never none."""
    every, lasting = (Period(count=count, unit=unit) for count, unit in (recurrence, duration))

    assert installments_total(every, lasting) == total


def test_forever_has_no_number() -> None:
    """A subscription without end never completes."""
    assert installments_total(Period(count=1, unit="Day"), None) is None


def test_subscription_that_is_not_stopped_waits_for_its_next_installment() -> None:
    """Where the merchant wants it so, used-up tries end nothing."""
    world = world_with("1 Year")
    subscription = msgspec.structs.replace(only_subscription(world), retries_max=2, is_auto_cancelled=False)
    world.state.subscriptions[subscription.subscription_id] = subscription
    set_decline(world, "do_not_honor")
    advance(world, 31)
    set_decline(world, None)
    assert only_subscription(world).status == "ACTIVE"
    advance(world, 28)

    dates = [entry.gateway_date[:10] for entry in world.ledger.entries()]
    assert dates == ["2026-01-31", "2026-03-31"]


@pytest.mark.parametrize(
    ("period", "other", "expected"),
    [
        ((2, "Month"), (3, "Month"), True),
        ((1, "Year"), (12, "Month"), False),
        ((1, "Week"), (1, "Month"), True),
        ((5, "Week"), (1, "Month"), False),
    ],
)
def test_lengths_of_time_are_compared(period: tuple[int, Unit], other: tuple[int, Unit], *, expected: bool) -> None:
    """Across units a month has thirty days."""
    assert is_shorter(*(Period(count=count, unit=unit) for count, unit in (period, other))) == expected
