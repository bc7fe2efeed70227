import pytest

from payrelay_simulator import ControlError
from payrelay_simulator.faults import RULES_MAX
from payrelay_simulator.notification_faults import (
    NotificationArguments,
    NotificationFaults,
    NotificationMatch,
    NotificationRule,
    NotificationSchedule,
)

FIELDS = {"order_id": "A", "status_code": "2", "message_type": "RECURRING_COMPLETE"}


@pytest.mark.parametrize(
    ("match", "strikes"),
    [
        ({}, True),
        ({"order_id": "A"}, True),
        ({"order_id": "B"}, False),
        ({"flow": "recurring"}, True),
        ({"flow": "charge"}, False),
        ({"status_code": 2}, True),
        ({"status_code": -2}, False),
        ({"message_type": "RECURRING_COMPLETE"}, True),
        ({"message_type": "RECURRING_STOPPED"}, False),
    ],
)
def test_rule_strikes_what_it_matches(match: dict[str, str], *, strikes: bool) -> None:
    """One notification of a whole story can be picked."""
    faults = NotificationFaults()
    faults.add_rules(NotificationRule(fault="lost", match=NotificationMatch(**match)))  # type: ignore[arg-type]

    assert (faults.draw("recurring", FIELDS) is not None) == strikes


def test_rule_strikes_as_often_as_it_says() -> None:
    """What is used up lets the next rule have its turn."""
    faults = NotificationFaults()
    faults.add_rules(NotificationRule(fault="lost", times=2), NotificationRule(fault="late", times=None))
    drawn = [faults.draw("payment", FIELDS) for _ in range(4)]

    assert [fault.name for fault in drawn if fault] == ["lost", "lost", "late", "late"]
    assert [(rule.fault, left) for rule, left in faults.pending] == [("late", None)]


def test_clearing_forgets_script_and_schedule() -> None:
    """From then on everything goes as it should."""
    faults = NotificationFaults()
    faults.add_rules(NotificationRule(fault="lost"))
    faults.set_schedule(NotificationSchedule(seed=1, probabilities={"lost": 1.0}))
    faults.clear()

    assert (faults.draw("payment", FIELDS), faults.pending, faults.schedule) == (None, (), None)


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (NotificationRule(fault="gone"), "notifications[0].fault"),
        (NotificationRule(fault="lost", args=NotificationArguments(wait_s=1)), "notifications[0].args.wait_s"),
        (NotificationRule(fault="late", args=NotificationArguments(copies=2)), "notifications[0].args.copies"),
    ],
)
def test_wrong_rule_is_told_its_field(rule: NotificationRule, field: str) -> None:
    """A slip in a test's set-up is found at once, and nothing of the order is taken."""
    faults = NotificationFaults()
    with pytest.raises(ControlError) as caught:
        faults.add_rules(rule)

    assert (caught.value.field, faults.pending) == (field, ())


@pytest.mark.parametrize("probabilities", [{"gone": 0.1}, {"lost": 0.6, "late": 0.6}])
def test_wrong_schedule_is_refused(probabilities: dict[str, float]) -> None:
    """Chance must be of something, and not more than certain."""
    with pytest.raises(ControlError):
        NotificationFaults().set_schedule(NotificationSchedule(seed=1, probabilities=probabilities))


def test_script_is_bounded() -> None:
    """A loop in a test does not fill the memory."""
    faults = NotificationFaults()
    faults.add_rules(*[NotificationRule(fault="lost")] * RULES_MAX)
    with pytest.raises(ControlError):
        faults.add_rules(NotificationRule(fault="lost"))
