"""When a failed try is repeated, and what an endpoint wants."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples import ENDPOINT

from payrelay.core.events.delivery import (
    ATTEMPTS_MAX,
    DELAYS_MS,
    JITTER,
    RETRY_AFTER_MS_MAX,
    STOPPED_AFTER_MS,
    AttemptResult,
    PatternError,
    deferred_until_ms,
    is_to_be_stopped,
    judged,
    next_try_ms,
    pattern_of,
    retry_after_seconds,
)
from payrelay.core.events.event import TYPES
from payrelay.core.payments.schedules import DAY_MS

NOW_MS = 1_790_000_000_000
CHANCES = st.floats(0, 1, exclude_max=True)
ASKED = st.none() | st.integers(0, 10**9)


@given(attempts=st.integers(1, ATTEMPTS_MAX + 5), now_ms=st.integers(0, 2**45), asked=ASKED, chance=CHANCES)
def test_every_delay_is_the_schedule_s_and_a_part_of_chance(
    attempts: int, now_ms: int, asked: int | None, chance: float
) -> None:
    """Never sooner than the schedule, never later than its jitter or what the receiver may ask for."""
    at_ms = next_try_ms(attempts, now_ms, retry_after_s=asked, chance=chance)

    if attempts >= ATTEMPTS_MAX:
        assert at_ms is None
    else:
        assert at_ms is not None
        delay_ms = DELAYS_MS[attempts - 1]
        assert delay_ms <= at_ms - now_ms <= max(delay_ms * (1 + JITTER), RETRY_AFTER_MS_MAX)
        if asked is not None and asked * 1000 <= RETRY_AFTER_MS_MAX:
            assert at_ms - now_ms >= asked * 1000


@given(chances=st.lists(CHANCES, min_size=ATTEMPTS_MAX - 1, max_size=ATTEMPTS_MAX - 1))
def test_the_tries_reach_over_three_days(chances: list[float]) -> None:
    """A receiver that is down over a weekend misses nothing."""
    at_ms = 0
    for attempts, chance in enumerate(chances, 1):
        at_ms = next_try_ms(attempts, at_ms, retry_after_s=None, chance=chance) or 0

    assert 3 * DAY_MS < at_ms < 4 * DAY_MS
    assert DELAYS_MS[0] <= 5_000, "the first repeat is quick: most failures are a restart"


@pytest.mark.parametrize(
    ("status", "is_delivered"),
    [(200, True), (204, True), (299, True), (199, False), (300, False), (302, False), (404, False), (500, False)],
)
def test_only_2xx_is_delivered(status: int, *, is_delivered: bool) -> None:
    """As Standard Webhooks has it; a redirect is no success."""
    assert judged(status, None, NOW_MS).is_delivered is is_delivered


def test_410_is_gone_and_nothing_else_is() -> None:
    """It stops an endpoint for good."""
    assert [status for status in range(100, 600) if judged(status, None, NOW_MS).is_gone] == [410]


@pytest.mark.parametrize(("status", "heard"), [(429, 60), (503, 60), (500, None), (200, None)])
def test_who_may_ask_for_patience(status: int, heard: int | None) -> None:
    """Retry-After means something with two statuses."""
    assert judged(status, "60", NOW_MS).retry_after_s == heard


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("Mon, 21 Sep 2026 14:14:20 GMT", 60),
        ("Mon, 21 Sep 2026 14:00:00 GMT", 0),
        ("soon", None),
        ("-1", None),
        ("", None),
        ("9" * 30, None),
        (f"{'0' * 60}1 Sep 2026 14:00:00 GMT", None),
        ("Mon, 99 Sep 2026 14:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, seconds: int | None) -> None:
    """What can't be read is passed over."""
    assert retry_after_seconds(text, NOW_MS) == seconds


def test_a_receiver_holds_everything_for_a_while_at_most() -> None:
    """One that asks for a year is asked again within the hour."""
    assert deferred_until_ms(NOW_MS, AttemptResult(status=500, failure="x")) == NOW_MS
    assert deferred_until_ms(NOW_MS, AttemptResult(status=429, failure="x", retry_after_s=10)) == NOW_MS + 10_000
    assert (
        deferred_until_ms(NOW_MS, AttemptResult(status=429, failure="x", retry_after_s=10**8))
        == NOW_MS + RETRY_AFTER_MS_MAX
    )


def test_an_endpoint_is_stopped_after_three_days() -> None:
    """Not a moment earlier."""
    assert not is_to_be_stopped(NOW_MS, NOW_MS + STOPPED_AFTER_MS - 1)
    assert is_to_be_stopped(NOW_MS, NOW_MS + STOPPED_AFTER_MS)


@pytest.mark.parametrize("type_", sorted(TYPES))
def test_a_type_fits_itself_its_noun_and_everything(type_: str) -> None:
    """And no other type fits it."""
    noun = type_.partition(".")[0]
    assert all(pattern_of(text).fits(type_) for text in ("*", f"{noun}.*", type_))
    assert {other for other in TYPES if pattern_of(type_).fits(other)} == {type_}
    assert {other for other in TYPES if pattern_of(f"{noun}.*").fits(other)} == {
        other for other in TYPES if other.startswith(f"{noun}.")
    }


@pytest.mark.parametrize("text", ["", "operation", "operations.*", "operation.*.*", "**", "operation.suceeded", "a,b"])
def test_a_mistyped_pattern_is_refused_with_what_there_is(text: str) -> None:
    """An endpoint that wants what never comes would be silent for ever."""
    with pytest.raises(PatternError, match=r"operation\.\*"):
        pattern_of(text)


@pytest.mark.parametrize("text", ["*", *TYPES, *sorted({f"{each.partition('.')[0]}.*" for each in TYPES})])
def test_a_pattern_is_shown_as_it_was_written(text: str) -> None:
    """An endpoint is shown with its patterns, and whoever sends them back must get the same endpoint."""
    assert pattern_of(text).text == text


def test_of_an_address_only_the_host_is_shown() -> None:
    """What stands behind it may be a secret; a traceback prints values, too."""
    endpoint = msgspec.structs.replace(ENDPOINT, url="https://hooks.example:8443/CANARY?key=CANARY")

    assert endpoint.host == "hooks.example"
    assert "CANARY" not in repr(endpoint)
    assert msgspec.structs.replace(endpoint, url="").host == ""
