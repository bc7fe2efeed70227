from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.access.credential import RATE_COUNT_MAX, Rate
from payrelay.core.moments import (
    SECONDS_MAX,
    SECONDS_OF_UNIT,
    SpanError,
    day_at,
    moment_of,
    rfc3339,
    span_s,
    span_text,
    spoken,
)

AT_MS = 1_795_255_200_999


def test_programs_read_moments_to_the_millisecond() -> None:
    """One form everywhere, so that texts sort as the moments do."""
    assert rfc3339(AT_MS) == "2026-11-21T10:00:00.999Z"
    assert rfc3339(0) == "1970-01-01T00:00:00.000Z"


def test_what_is_finer_is_cut_off_and_not_rounded() -> None:
    """A moment that was rounded up would be one that has not come yet."""
    assert rfc3339(AT_MS, "seconds") == "2026-11-21T10:00:00Z"
    assert spoken(AT_MS) == "2026-11-21 10:00:00"


def test_a_day_is_that_of_the_time_zone() -> None:
    """In Colombo it is tomorrow five and a half hours earlier: what begins on a day begins there."""
    assert day_at(1_795_255_200_999, "Asia/Colombo") == date(2026, 11, 21)
    assert day_at(1_795_255_200_999 + 9 * 3_600_000, "Asia/Colombo") == date(2026, 11, 22)
    assert day_at(1_795_255_200_999 + 9 * 3_600_000, "UTC") == date(2026, 11, 21)


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1970-01-01T00:00:01Z", 1_000),
        ("1970-01-01T05:30:00.25+05:30", 250),
        ("1970-01-01 00:00+00:00", 0),
    ],
)
def test_a_time_is_read_with_its_zone(text: str, at_ms: int) -> None:
    """Operators type it in their own zone."""
    assert moment_of(text) == at_ms


@pytest.mark.parametrize("text", ["1970-01-01T00:00:01", "yesterday", ""])
def test_a_time_without_its_zone_is_refused(text: str) -> None:
    """An operator and a server in two zones would mean two times by one text."""
    with pytest.raises(ValueError, match=r"zone|isoformat"):
        moment_of(text)


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("30s", 30), ("15m", 900), ("24h", 86_400), ("7d", 604_800)])
def test_a_span_is_a_number_with_its_unit(text: str, seconds: int) -> None:
    """People write 24h, not 86400000."""
    assert span_s(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "h", "1w", "1.5h", "-1h", "1 h", "٣h", "999999999d", "24H"])
def test_a_span_without_a_known_unit_is_refused(text: str) -> None:
    """A bare number could mean anything; guessing would be off by a thousand."""
    with pytest.raises(SpanError):
        span_s(text)


@given(number=st.integers(0, 3_000), unit=st.sampled_from(sorted(SECONDS_OF_UNIT)))
def test_a_span_grows_with_its_number(number: int, unit: str) -> None:
    """Whatever the unit, n of it is n times one of it."""
    assert span_s(f"{number}{unit}") == number * span_s(f"1{unit}")


def test_a_rate_is_a_count_in_a_span() -> None:
    """The gateway's own limit, as its documents put it."""
    assert Rate.parse("20/10s") == Rate(count=20, window_s=10)


@pytest.mark.parametrize("text", ["", "20", "0/10s", "20/0s", "20/10", "20/", "/10s", "-1/10s", "1000001/1s", "off"])
def test_a_rate_of_nothing_or_in_no_time_is_refused(text: str) -> None:
    """A limiter that lets nothing through, or everything, must be asked for in other words."""
    with pytest.raises(SpanError):
        Rate.parse(text)


def test_what_is_wrong_says_what_is_expected() -> None:
    """The text goes behind the setting's or the option's name."""
    with pytest.raises(SpanError, match=r"^must be a rate such as 20/10s$"):
        Rate.parse("never")
    with pytest.raises(SpanError, match=r"^must be a rate of 1 to 1000000 in at least 1s$"):
        Rate.parse("0/10s")
    with pytest.raises(SpanError, match=r"^must be a span such as 30s, 15m, 24h or 7d, or 0$"):
        span_s("soon")
    with pytest.raises(SpanError, match=r"^must be at most ten years$"):
        span_s("3661d")


def test_the_limits_themselves_are_allowed() -> None:
    """One request in a second is a rate, and ten years are a span."""
    assert Rate.parse("1/1s") == Rate(count=1, window_s=1)
    assert Rate.parse("1000000/1s").count == RATE_COUNT_MAX
    assert span_s("3660d") == SECONDS_MAX


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7_199, "119 min"),
        (7_200, "2 h"),
        (86_400, "24 h"),
        (172_799, "47 h"),
        (172_800, "2 days"),
        (30 * 86_400, "30 days"),
    ],
)
def test_a_span_is_written_as_people_say_it(seconds: int, text: str) -> None:
    """Never as 0 days, and never as 2592000 seconds; a clock that was set back shows no negative age."""
    assert span_text(seconds) == text
