import pytest

from payrelay.core.calls import CancelSubscription, Capture, Effect, Refund, RetrySubscription, Void
from payrelay.gateways.pacing.queue import RESOLUTION_SHARE, PermitQueue, Priority, Waiter, priority_of

NOW_S = 100.0


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
    found = [queue.pop(NOW_S) for _ in range(count)]
    return [each.priority for each in found if each is not None]


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
    assert queue.pop(NOW_S) is not None
    assert [queue.pop(NOW_S), queue.pop(NOW_S)] == [first, second]
    assert served(queue, 2) == [Priority.READ]


async def test_resolution_gets_its_share() -> None:
    """Of a shop that charges without a pause every tenth permit or so goes to the resolution of its lost replies."""
    queue = entry_of(*(waiter(Priority.RESOLUTION) for _ in range(2)), *(waiter(Priority.CHARGE) for _ in range(30)))
    order = served(queue, 30)
    assert [permit for permit, priority in enumerate(order) if priority is Priority.RESOLUTION] == [
        RESOLUTION_SHARE,
        2 * RESOLUTION_SHARE + 1,
    ]


async def test_a_caller_that_went_away_or_came_too_late_is_passed_over() -> None:
    """They have no use for a permit. A caller whose time ended while the machine slept gets None."""
    gone, late, there = waiter(Priority.CHARGE), waiter(Priority.CHARGE, 101.0), waiter(Priority.READ)
    queue = entry_of(gone, late, there)
    gone.granted.cancel()
    assert queue.pop(102.0) is there
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
