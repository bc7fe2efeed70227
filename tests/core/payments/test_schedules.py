from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.payments.schedules import (
    DAY_MS,
    HOUR_MS,
    REAPPEARANCE_MS,
    UNSEEN_MS_MAX,
    UNSEEN_MS_MIN,
    next_inquiry_ms,
    next_search_ms,
    next_try_ms,
)

MOMENTS = st.integers(0, 2_000_000_000_000)
OPEN_FOR = st.integers(0, 400 * DAY_MS)


def test_it_is_asked_densely_at_first_and_daily_in_the_end() -> None:
    """Somebody waits in the first minute; the gateway says the same of not yet and of never for days."""
    moments, now_ms = [], 1_000
    for _ in range(15):
        now_ms = next_inquiry_ms(1_000, now_ms)
        moments.append((now_ms - 1_000) / 1_000)
    hours = [hour * HOUR_MS / 1_000 for hour in (1, 6, 24, 48, 72, 96, 120, 144, 168)]
    assert moments == [2, 10, 30, 120, 300, 900, *hours]


@given(open_ms=MOMENTS, for_ms=OPEN_FOR)
def test_the_next_inquiry_is_always_in_the_future_and_within_a_day(open_ms: int, for_ms: int) -> None:
    """One in the past would be made again and again; one too far away would be forgotten."""
    now_ms = open_ms + for_ms
    assert now_ms < next_inquiry_ms(open_ms, now_ms) <= now_ms + DAY_MS


def test_a_clock_that_was_set_back_moves_no_inquiry_out_of_reach() -> None:
    """An operation that seems to begin in the future is asked for 2 s after its beginning."""
    assert next_inquiry_ms(10_000, 4_000) == 12_000


def test_after_the_last_inquiry_it_is_searched_for_on_whole_days() -> None:
    """A time of day that drifts by what an inquiry lasts would fall behind by one inquiry in the end."""
    assert next_inquiry_ms(0, 5 * DAY_MS + 1) == 6 * DAY_MS


@given(open_ms=MOMENTS, for_ms=OPEN_FOR)
def test_what_could_not_be_observed_is_tried_no_later_than_the_schedule(open_ms: int, for_ms: int) -> None:
    """That was no observation; and a gateway that is down is not asked more often than every 5 s for it."""
    now_ms = open_ms + for_ms
    try_ms, inquiry_ms = next_try_ms(open_ms, now_ms), next_inquiry_ms(open_ms, now_ms)
    assert min(now_ms + UNSEEN_MS_MIN, inquiry_ms) <= try_ms <= min(now_ms + UNSEEN_MS_MAX, inquiry_ms)


def test_tries_wait_half_as_long_as_it_has_been_open() -> None:
    """Within 5 s and 15 min, so that an hour's outage costs a dozen calls."""
    assert next_try_ms(0, 40_000) == 60_000
    assert next_try_ms(0, 11_000) == 11_000 + UNSEEN_MS_MIN + 500
    assert next_try_ms(0, 10 * HOUR_MS) == 10 * HOUR_MS + UNSEEN_MS_MAX


def test_what_failed_is_searched_for_daily_for_a_month() -> None:
    """A payment that shows after all is for an operator; for ever would be too long."""
    assert next_search_ms(0, 0) == DAY_MS
    assert next_search_ms(0, REAPPEARANCE_MS - DAY_MS) == REAPPEARANCE_MS
    assert next_search_ms(0, REAPPEARANCE_MS - DAY_MS + 1) is None


def test_it_counts_from_when_it_became_open_or_failed_in_whole_milliseconds() -> None:
    """Not from 1970; and the databases keep integers."""
    assert next_try_ms(1_000_000, 1_040_000) == 1_060_000
    odd_ms = next_try_ms(0, 40_001)
    assert (odd_ms, type(odd_ms)) == (60_001, int)
    assert next_search_ms(100 * DAY_MS, 101 * DAY_MS) == 102 * DAY_MS
