from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from tests.api.fakes import MovableClock

from payrelay.runtime.health.gateway_clocks import BELIEVED_S, GatewayClocks


def date(at_s: float) -> str:
    """Writes a time as the Date header has it."""
    return format_datetime(datetime.fromtimestamp(at_s, UTC), usegmt=True)


def test_the_newest_reply_tells_how_far_the_clocks_are_apart() -> None:
    """Which of them is wrong a person must find out; that one of them is wrong shows here."""
    clock = MovableClock()
    clocks = GatewayClocks(clock)
    clocks.note("gateway", date(clock.at_s + 3))
    clocks.note("gateway", date(clock.at_s - 90))

    assert clocks.differences_s() == {"gateway": -90}
    clock.at_s += BELIEVED_S + 1
    assert clocks.differences_s() == {}


@pytest.mark.parametrize(
    "header", ["", "yesterday", "0", "Mon, 99 Foo 2026 25:61:61 GMT", "é", f"{'0' * 60}1 Jan 2026 10:00:00 GMT"]
)
def test_a_date_that_cannot_be_read_says_nothing(header: str) -> None:
    """A gateway's odd header must not fail a call that moved money."""
    clocks = GatewayClocks(MovableClock())
    clocks.note("gateway", header)
    assert clocks.differences_s() == {}
