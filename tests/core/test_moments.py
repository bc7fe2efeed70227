from datetime import date

import pytest

from payrelay.core.moments import day_at, moment_of, rfc3339, spoken

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
