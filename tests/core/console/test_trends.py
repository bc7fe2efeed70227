"""Counts of the last hours in parts: each thing in one part, and no zero where nobody looked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.console.rules.trends import (
    OF_CHECKOUTS,
    OF_DELIVERIES,
    OF_NOTIFICATIONS,
    OF_OPERATIONS,
    BudgetSample,
    TrendGroup,
    TrendSpan,
    TrendTally,
    TrendWindow,
    bars_of,
    budget_parts,
    window_of,
)
from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.events.delivery import DeliveryState
from payrelay.core.notifications.notification import NotificationState
from payrelay.core.payments.operation import State

NOW_MS = 1_800_000_000_123
STATES: dict[tuple[TrendGroup, ...], set[str]] = {
    OF_OPERATIONS: {*map(str, State)},
    OF_CHECKOUTS: {*map(str, CheckoutState)},
    OF_NOTIFICATIONS: {*map(str, NotificationState)},
    OF_DELIVERIES: {*map(str, DeliveryState)},
}


@given(st.sampled_from(TrendSpan), st.integers(1_600_000_000_000, 2_000_000_000_000))
def test_the_last_part_is_the_one_that_it_is_now(span: TrendSpan, now_ms: int) -> None:
    """And the parts hang together: a moment is in one of them, or before the first."""
    window = window_of(span, now_ms)

    assert window.number_of(now_ms) == window.parts - 1
    assert window.number_of(window.since_ms) == 0
    assert window.number_of(window.since_ms - 1) is None
    assert window.number_of(window.since_ms + window.parts * window.part_ms) is None


@pytest.mark.parametrize("groups", list(STATES))
def test_each_state_belongs_to_one_group(groups: tuple[TrendGroup, ...]) -> None:
    """A state that is added later must say whether it is done, not done, open or doubtful."""
    named = [state for group in groups for state in group.states]

    assert len(named) == len(set(named))
    assert set(named) == STATES[groups]


def test_what_is_counted_is_put_where_it_began() -> None:
    """By part and group; the sum of a part is the height of its bar."""
    window = TrendWindow(0, 3, 100)
    tallies = [
        TrendTally(0, "succeeded", 2, 10),
        TrendTally(2, "declined", 3, 210),
        TrendTally(2, "failed", 1, 220),
        TrendTally(2, "unknown", 1, 230),
        TrendTally(3, "succeeded", 9, 300),
    ]
    bars = bars_of([tallies], OF_OPERATIONS, window, looked_max=1_000)

    assert bars.parts == ((2, 0, 0, 0), (0, 0, 0, 0), (0, 4, 1, 0))
    assert (bars.totals, bars.highest) == ((2, 4, 1, 0), 5)
    assert (bars.is_cut, bars.counted_since_ms) == (False, 0)


def test_a_full_count_says_how_far_back_it_came() -> None:
    """Of several sources the one that reaches least far back decides: before that the sum would be too small."""
    window = TrendWindow(0, 3, 100)
    full, fuller, short = TrendTally(1, "waiting", 5, 120), TrendTally(2, "waiting", 5, 250), TrendTally(0, "x", 1, 20)
    bars = bars_of([[full], [fuller], [short]], OF_DELIVERIES, window, looked_max=5)

    assert (bars.is_cut, bars.counted_since_ms) == (True, 250)
    assert bars.parts[0] == (0, 0, 1)


def test_the_most_of_a_budget_in_each_part() -> None:
    """A part without a look has no number, and one in which the circuit was open says so."""
    samples = [
        BudgetSample(5, 3, 0, is_open=False),
        BudgetSample(50, 1, 4, is_open=True),
        BudgetSample(299, 2, 0, is_open=False),
        BudgetSample(300, 9, 9, is_open=True),
    ]

    assert budget_parts(samples, TrendWindow(0, 3, 100)) == ((3, 4, True), (None, 0, False), (2, 0, False))
