import pytest

from payrelay.core.calls import CancelSubscription, Capture, Effect, Refund, Release, RetrySubscription
from payrelay.gateways.pacing.queue import SETTLE_SHARE, PermitQueue, Priority, Waiter, worth_of

NOW_S = 100.0


def waiter(priority: Priority, until_s: float | None = 200.0) -> Waiter:
    """Makes one who waits."""
    return Waiter(priority, until_s, NOW_S)


def line_of(*waiters: Waiter) -> PermitQueue:
    """Makes a line of them."""
    line = PermitQueue()
    for each in waiters:
        line.push(each)
    return line


def served(line: PermitQueue, count: int) -> list[Priority]:
    """Serves so many, and tells who it was."""
    found = [line.pop(NOW_S) for _ in range(count)]
    return [each.priority for each in found if each is not None]


@pytest.mark.parametrize(
    ("call", "worth"),
    [
        (Capture(authorization_token="a", amount_minor=1, description="d"), Priority.CHARGE),
        (RetrySubscription(subscription_id=1), Priority.CHARGE),
        (Refund(payment_id="1", description="d"), Priority.GIVE_BACK),
        (Release(authorization_token="a", description="d"), Priority.GIVE_BACK),
        (CancelSubscription(subscription_id=1), Priority.GIVE_BACK),
    ],
)
def test_money_that_comes_in_is_worth_more_than_money_that_goes_out(call: Effect, worth: Priority) -> None:
    """Whoever pays stands at a till; whoever is paid back will see it tomorrow."""
    assert worth_of(call) is worth


async def test_the_worthiest_is_served_first_and_the_first_of_them() -> None:
    """A token before all else, since everybody needs it; then as they came."""
    first, second = waiter(Priority.CHARGE), waiter(Priority.CHARGE)
    line = line_of(waiter(Priority.READ), first, waiter(Priority.TOKEN), second)
    assert line.pop(NOW_S) is not None
    assert [line.pop(NOW_S), line.pop(NOW_S)] == [first, second]
    assert served(line, 2) == [Priority.READ]


async def test_settling_gets_its_share() -> None:
    """Of a shop that charges without a pause every tenth place or so goes to what became of its lost replies."""
    line = line_of(*(waiter(Priority.SETTLE) for _ in range(2)), *(waiter(Priority.CHARGE) for _ in range(30)))
    order = served(line, 30)
    assert [place for place, priority in enumerate(order) if priority is Priority.SETTLE] == [
        SETTLE_SHARE,
        2 * SETTLE_SHARE + 1,
    ]


async def test_who_went_away_or_came_too_late_is_passed_over() -> None:
    """A place is of no use to them; whose time is over, while the machine slept, is told so."""
    gone, late, there = waiter(Priority.CHARGE), waiter(Priority.CHARGE, 101.0), waiter(Priority.READ)
    line = line_of(gone, late, there)
    gone.granted.cancel()
    assert line.pop(102.0) is there
    assert late.granted.result() is None


async def test_those_who_cannot_wait_are_told_apart() -> None:
    """They are sent away when nothing is free; the others stay."""
    patient, impatient, late = waiter(Priority.READ), waiter(Priority.CHARGE, None), waiter(Priority.CHARGE, 99.0)
    line = line_of(patient, impatient, late)
    assert line.worth() is Priority.CHARGE
    assert line.take_out(is_patient=False) == [impatient, late]
    assert len(line) == 1
    line.remove(patient)
    line.remove(patient)
    assert (len(line), line.worth()) == (0, None)
