from tests.gateways.pacing.hand_clock import HandClock

from payrelay.store.gateways.steady_time import steady_ms


class SetClock(HandClock):
    """Its wall clock can be set."""

    set_by_ms = 0

    def now_ms(self) -> int:
        """Gives the time with what the clock was set by."""
        return 1_700_000_000_000 + self.set_by_ms


def test_it_runs_on_whatever_the_wall_clock_is_set_to() -> None:
    """A budget that followed a jump would free every permit at once, or none for hours."""
    clock = SetClock()
    now_ms = steady_ms(clock)
    clock.set_by_ms = 3_600_000
    clock.move(2.5)
    assert now_ms() == 1_700_000_002_500
