"""The law of an order's payments: begun one holds its place, a made one keeps it, one that came to nothing frees it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.counted_payments import (
    CountedPayment,
    Noun,
    PaymentLimit,
    counts_checkout,
    counts_operation,
)
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.payments.operation import OPEN_STATES, Kind, State

CHARGE_STATES = st.sampled_from(State)
STEPS = st.lists(st.tuples(st.sampled_from(["begin", "end"]), st.integers(0, 9), CHARGE_STATES), max_size=60)


def limit_of(payments_max: int) -> PaymentLimit:
    """An order that may have so many payments."""
    return PaymentLimit(merchant="m", order_id="A-1", payments_max=payments_max)


def counted(states: list[State]) -> list[CountedPayment]:
    """The payments that count among charges in these states, as the store gives them."""
    found = [
        CountedPayment(noun=Noun.OPERATION, id=f"op_{number}", is_made=state is State.SUCCEEDED)
        for number, state in enumerate(states)
        if counts_operation(Kind.CHARGE, state)
    ]
    return sorted(found, key=lambda payment: payment.is_made)


@given(st.lists(CHARGE_STATES, max_size=20), st.integers(1, 5))
def test_another_payment_begins_while_there_is_room_and_no_longer(states: list[State], payments_max: int) -> None:
    """Room is what is left of the number when the open and the made payments are taken off."""
    taken = sum(state in OPEN_STATES or state is State.SUCCEEDED for state in states)

    in_the_way = limit_of(payments_max).standing_in_the_way(counted(states))
    assert (in_the_way is None) is (taken < payments_max)


@given(STEPS, st.integers(1, 3))
def test_an_order_never_has_more_payments_than_its_number(
    steps: list[tuple[str, int, State]], payments_max: int
) -> None:
    """However payments begin and end, and in whatever order: open and made ones together never exceed it."""
    limit, states = limit_of(payments_max), list[State]()
    for step, which, state in steps:
        if step == "begin":
            if limit.standing_in_the_way(counted(states)) is None:
                states.append(State.SENDING)
        elif states and states[which % len(states)] in OPEN_STATES:
            states[which % len(states)] = state
        assert sum(each in OPEN_STATES or each is State.SUCCEEDED for each in states) <= payments_max


@given(st.lists(CHARGE_STATES, min_size=1, max_size=20))
def test_a_payment_that_is_still_open_is_named_first(states: list[State]) -> None:
    """Its caller may wait for it; an order whose payments are all made is paid for good."""
    in_the_way = limit_of(1).standing_in_the_way(counted(states))

    if any(state in OPEN_STATES for state in states):
        assert in_the_way is not None
        assert not in_the_way.is_made
    elif State.SUCCEEDED in states:
        assert in_the_way is not None
        assert in_the_way.is_made


@pytest.mark.parametrize("state", [State.DECLINED, State.REFUSED, State.NOT_SENT, State.FAILED])
def test_what_took_no_effect_gives_its_place_back(state: State) -> None:
    """The customer tries another card."""
    assert not counts_operation(Kind.CHARGE, state)
    assert not counts_operation(Kind.AUTHORIZATION, state)


@pytest.mark.parametrize("kind", sorted(set(Kind) - {Kind.CHARGE, Kind.AUTHORIZATION}))
def test_a_capture_or_a_refund_is_no_payment_of_its_own(kind: Kind) -> None:
    """The authorization that is captured counted already, and a refund gives no place back."""
    assert not counts_operation(kind, State.SUCCEEDED)


def test_a_checkout_counts_until_it_came_to_nothing() -> None:
    """A page that is open may be paid at any moment; an approval that charges nothing is no payment."""
    unpaid = {CheckoutState.FAILED, CheckoutState.CANCELLED, CheckoutState.EXPIRED}
    for state in CheckoutState:
        assert counts_checkout(CheckoutKind.PAYMENT, 100, state) is (state not in unpaid)
        assert counts_checkout(CheckoutKind.PREAPPROVAL, 100, state) is (state not in unpaid)
        assert not counts_checkout(CheckoutKind.PREAPPROVAL, None, state)
