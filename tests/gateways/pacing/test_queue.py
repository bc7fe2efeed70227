import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.calls import CancelSubscription, Capture, Effect, Refund, RetrySubscription, Void
from payrelay.core.gateways.fair_shares import OURS, PAYRELAY, BudgetShare, Consumer, Requester
from payrelay.gateways.pacing.queue import RESOLUTION_SHARE, PermitQueue, Priority, Waiter, consumer_of, priority_of

NOW_S = 100.0
LATE = Consumer("late", BudgetShare.KEYS)


def waiter(priority: Priority, until_s: float | None = 200.0) -> Waiter:
    """Makes a caller that waits."""
    return Waiter(priority, until_s, NOW_S)


def entry_of(*held_responses: Waiter) -> PermitQueue:
    """Makes a queue of them."""
    queue = PermitQueue()
    for each in held_responses:
        queue.push(each)
    return queue


def served(queue: PermitQueue, count: int) -> list[Priority]:
    """Serves so many callers, and gives their priorities."""
    return [each.priority for each in (pop(queue) for _ in range(count)) if each is not None]


def pop(queue: PermitQueue, now_s: float = NOW_S) -> Waiter | None:
    """Serves the consumer whose turn it is."""
    wanted = queue.wanted(1)
    return queue.pop(wanted[0], now_s) if wanted else None


@pytest.mark.parametrize(
    ("call", "priority"),
    [
        (Capture(authorization_token="a", amount_minor=1, description="d"), Priority.CHARGE),
        (RetrySubscription(subscription_id=1), Priority.CHARGE),
        (Refund(payment_id="1", description="d"), Priority.GIVE_BACK),
        (Void(authorization_token="a", description="d"), Priority.GIVE_BACK),
        (CancelSubscription(subscription_id=1), Priority.GIVE_BACK),
    ],
)
def test_charges_have_priority_over_refunds(call: Effect, priority: Priority) -> None:
    """A customer who pays is waiting; a customer who gets a refund sees it tomorrow."""
    assert priority_of(call) is priority


async def test_the_worthiest_is_served_first_and_the_first_of_them() -> None:
    """A token before all else, since everybody needs it; then as they came."""
    first, second = waiter(Priority.CHARGE), waiter(Priority.CHARGE)
    queue = entry_of(waiter(Priority.READ), first, waiter(Priority.TOKEN), second)
    assert pop(queue) is not None
    assert [pop(queue), pop(queue)] == [first, second]
    assert served(queue, 2) == [Priority.READ]


async def test_resolution_gets_its_share() -> None:
    """Of a shop that charges without a pause every tenth permit or so goes to the resolution of its lost replies."""
    queue = entry_of(*(waiter(Priority.RESOLUTION) for _ in range(2)), *(waiter(Priority.CHARGE) for _ in range(30)))
    order = served(queue, 30)
    assert [permit for permit, priority in enumerate(order) if priority is Priority.RESOLUTION] == [
        RESOLUTION_SHARE,
        2 * RESOLUTION_SHARE + 1,
    ]


consumers = st.builds(
    Consumer,
    st.sampled_from(["shop", "desk", "web"]),
    st.sampled_from([BudgetShare.KEYS, BudgetShare.EFFECTS, BudgetShare.READS]),
    st.sampled_from(["", "a", "b"]),
)
calls = st.lists(st.tuples(consumers, st.sampled_from([Priority.CHARGE, Priority.GIVE_BACK, Priority.READ])))


@given(before=calls, count=st.integers(0, 20), priority=st.sampled_from([Priority.CHARGE, Priority.READ]))
def test_a_caller_waits_for_one_permit_of_each_other_principal(
    before: list[tuple[Consumer, Priority]], count: int, priority: Priority
) -> None:
    """Whoever waits already, for what, and over however many connections; and in a principal each part has its turn."""

    async def story() -> list[Consumer]:
        queue = PermitQueue()
        for consumer, of_other in before:
            queue.push(Waiter(of_other, 200.0, NOW_S, consumer))
        for _ in range(count):
            pop(queue)
        queue.push(Waiter(priority, 200.0, NOW_S, LATE))
        return queue.wanted(len(before) + 1)

    served = asyncio.run(story())
    ahead = served[: served.index(LATE)]
    assert max(Counter(each.principal for each in ahead).values(), default=0) <= 1
    assert set(served) <= {LATE, *(consumer for consumer, _ in before)}


async def test_who_can_get_no_permit_is_passed_over() -> None:
    """One app, or a part with all its apps: those behind them have their turn."""
    phones = [Consumer("shop", BudgetShare.READS, name) for name in ("a", "b")]
    queue = PermitQueue()
    for consumer in [*phones, LATE]:
        queue.push(Waiter(Priority.READ, 200.0, NOW_S, consumer))
    assert queue.wanted(9, without={phones[0]}) == [LATE, phones[1]]
    assert queue.wanted(9, without={phones[0].whole_part}) == [LATE]
    assert queue.wanted(1) == [phones[0]]
    assert queue.pop(Consumer("nobody", BudgetShare.KEYS), NOW_S) is None


@pytest.mark.parametrize(
    ("requester", "priority", "consumer"),
    [
        (PAYRELAY, Priority.RESOLUTION, OURS),
        (PAYRELAY, Priority.TOKEN, Consumer("", BudgetShare.TOKEN)),
        (Requester("shop"), Priority.READ, Consumer("shop", BudgetShare.KEYS)),
        (Requester("shop", "a"), Priority.READ, Consumer("shop", BudgetShare.READS, "a")),
        (Requester("shop", "a"), Priority.GIVE_BACK, Consumer("shop", BudgetShare.EFFECTS, "a")),
    ],
)
def test_a_call_counts_for_its_consumer(requester: Requester, priority: Priority, consumer: Consumer) -> None:
    """An app's charges do not wait for the reads of other apps."""
    assert consumer_of(requester, priority) == consumer


async def test_a_caller_that_went_away_or_came_too_late_is_passed_over() -> None:
    """They have no use for a permit. A caller whose time ended while the machine slept gets None."""
    gone, late, there = waiter(Priority.CHARGE), waiter(Priority.CHARGE, 101.0), waiter(Priority.READ)
    queue = entry_of(gone, late, there)
    gone.granted.cancel()
    assert pop(queue, 102.0) is there
    assert late.granted.result() is None


async def test_impatient_callers_are_distinguished() -> None:
    """They are sent away when nothing is free; the others stay."""
    patient, impatient, late = waiter(Priority.READ), waiter(Priority.CHARGE, None), waiter(Priority.CHARGE, 99.0)
    queue = entry_of(patient, impatient, late)
    assert queue.priority() is Priority.CHARGE
    assert queue.take_out(is_patient=False) == [impatient, late]
    assert len(queue) == 1
    queue.remove(patient)
    queue.remove(patient)
    assert (len(queue), queue.priority()) == (0, None)
