from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from payrelay_simulator.state import Due, State

START = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.lists(st.integers(min_value=0, max_value=100)))
def test_agenda_gives_what_is_due_in_the_order_of_time(minutes: list[int]) -> None:
    """What falls due earlier happens earlier, in whatever order it was planned."""
    state = State(0)
    for each in minutes:
        state.plan(Due(at=START + timedelta(minutes=each), kind="installment", key="1"))
    taken = []
    while (due := state.pop_due(START + timedelta(minutes=50))) is not None:
        taken.append(due.at)

    assert taken == sorted(START + timedelta(minutes=each) for each in minutes if each <= 50)


def test_identifiers_have_the_gateways_form_and_increase() -> None:
    """Twelve digits with the prefix of their kind, beyond what 32 bits hold."""
    state = State(0)
    payment_ids = [state.next_payment_id() for _ in range(3)]

    assert payment_ids == sorted(set(payment_ids))
    assert [str(number)[:4] for number in (payment_ids[0], state.next_subscription_id(), state.next_refund_id())] == [
        "3200",
        "4200",
        "5600",
    ]
