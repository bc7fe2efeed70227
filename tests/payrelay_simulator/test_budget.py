from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from payrelay_simulator.budget import Budget

START = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.lists(st.floats(min_value=0, max_value=3), max_size=60))
def test_no_window_ever_holds_more_calls_than_allowed(pauses_s: list[float]) -> None:
    """The limit holds in any ten seconds, wherever they begin."""
    budget, now = Budget(), START
    accepted = []
    for pause_s in pauses_s:
        now += timedelta(seconds=pause_s)
        if budget.has_taken("key", now, calls=5, window_s=10):
            accepted.append(now)

    windows = [[at for at in accepted if begin <= at < begin + timedelta(seconds=10)] for begin in accepted]
    assert all(len(window) <= 5 for window in windows)


def test_place_is_free_again_after_the_window() -> None:
    """The window slides: a call's place comes back ten seconds later, not at a fixed mark."""
    budget = Budget()
    assert budget.has_taken("key", START, calls=1, window_s=10)

    assert not budget.has_taken("key", START + timedelta(seconds=9.9), calls=1, window_s=10)
    assert budget.has_taken("key", START + timedelta(seconds=10), calls=1, window_s=10)


def test_keys_have_budgets_of_their_own() -> None:
    """One merchant's calls do not block another's."""
    budget = Budget()
    budget.has_taken("one", START, calls=1, window_s=10)

    assert budget.has_taken("another", START, calls=1, window_s=10)
