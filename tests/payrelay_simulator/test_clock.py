from datetime import UTC, datetime, timedelta

import pytest

from payrelay_simulator import Clock, ControlError
from payrelay_simulator.clock import ADVANCED_S_MAX, gateway_date


def test_standing_clock_moves_only_by_advance() -> None:
    """A test that drives the clock depends on nothing but its own steps."""
    clock = Clock.standing(datetime(2026, 1, 1, tzinfo=UTC))

    clock.advance(90)

    assert clock.now() == datetime(2026, 1, 1, 0, 1, 30, tzinfo=UTC)


def test_running_clock_never_goes_back() -> None:
    """Expiries are decided by comparing moments, so a later look may not see an earlier time."""
    clock = Clock.running()
    first = clock.now()

    assert clock.now() >= first


def test_running_clock_can_be_advanced() -> None:
    """A person at the command line can jump to the day after tomorrow."""
    clock = Clock.running()
    before = clock.now()

    clock.advance(3600)

    assert clock.now() - before >= timedelta(hours=1)


@pytest.mark.parametrize("seconds", [-1, ADVANCED_S_MAX + 1, float("nan")])
def test_impossible_step_is_refused(seconds: float) -> None:
    """Time runs forward, and stays within what dates can hold."""
    with pytest.raises(ControlError, match="seconds"):
        Clock.standing().advance(seconds)


def test_hundred_years_is_the_end_however_it_is_reached() -> None:
    """Many allowed steps cannot add up to a date that overflows."""
    clock = Clock.standing()
    clock.advance(ADVANCED_S_MAX)

    with pytest.raises(ControlError):
        clock.advance(1)


def test_gateway_date_is_in_sri_lankas_time_without_saying_so() -> None:
    """The gateway prints its own zone and no offset; a client has to know."""
    assert gateway_date(datetime(2026, 1, 1, 20, 0, 5, tzinfo=UTC)) == "2026-01-02 01:30:05"
