"""The periods of retention, as an operator sets them."""

from pathlib import Path

import pytest
from tests.settings.given import error_line, of

from payrelay.core.retention import PERIODS_MIN_S, Kept, Periods

DAY_MS = 86_400_000


def test_without_a_word_everything_has_its_period(tmp_path: Path) -> None:
    """Whoever sets nothing has a database that doesn't grow for ever."""
    assert of(tmp_path).retention.periods == Periods(
        answers=90 * DAY_MS, calls=180 * DAY_MS, histories=400 * DAY_MS, notifications=400 * DAY_MS, events=30 * DAY_MS
    )


@pytest.mark.parametrize("kept", Kept)
def test_keep_is_for_ever(tmp_path: Path, kept: Kept) -> None:
    """A law may ask for it."""
    settings = of(tmp_path, **{f"RETENTION__{kept.upper()}": "keep"})

    assert settings.retention.periods.of(kept) is None


@pytest.mark.parametrize("kept", Kept)
def test_the_least_period_is_taken_and_a_shorter_one_refused(tmp_path: Path, kept: Kept) -> None:
    """Something else relies on the data until then, and the error says what."""
    name, least_days = f"RETENTION__{kept.upper()}", PERIODS_MIN_S[kept] // 86_400

    assert of(tmp_path, **{name: f"{least_days}d"}).retention.periods.of(kept) == least_days * DAY_MS
    line = error_line(tmp_path, **{name: f"{least_days - 1}d"})
    assert f"PAYRELAY_{name} must be at least {least_days}d, or keep: " in line


@pytest.mark.parametrize("text", ["never", "30", "-1d", "0"])
def test_nonsense_is_refused(tmp_path: Path, text: str) -> None:
    """A period that was misread would clear what somebody needs."""
    assert "PAYRELAY_RETENTION__CALLS must be" in error_line(tmp_path, RETENTION__CALLS=text)
