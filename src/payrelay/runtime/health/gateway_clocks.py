"""Compares the clocks of gateways with ours, by the Date header of their replies."""

from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

from payrelay.clock import Clock

BELIEVED_S: Final = 900.0
"""A reply that is older says nothing of the clocks now."""
DATE_LENGTH_MAX: Final = 64
"""Of a Date header; one has 29 characters. A year of thousands of digits takes time with the square of them."""
DATES_KEPT_MAX: Final = 16
"""Date headers that are remembered: those of the last seconds, of gateways whose clocks differ a little."""


class GatewayClocks:
    """The difference of each account's gateway, as of its newest reply. A Date header is exact to a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[float, float]] = {}

    def note(self, account: str, date: str) -> None:
        """Notes the Date header of a reply that has just come; one that can't be read says nothing. Raises nothing."""
        their_s = _moment_in(date)
        if their_s is None:
            return
        self._seen[account] = (their_s - self._clock.now_ms() / 1000, self._clock.boot_s())

    def differences_s(self) -> dict[str, float]:
        """Gives each gateway's clock less ours, by account, where a reply of the last BELIEVED_S told it."""
        now_s = self._clock.boot_s()
        return {name: apart_s for name, (apart_s, seen_s) in self._seen.items() if now_s - seen_s <= BELIEVED_S}


@lru_cache(maxsize=DATES_KEPT_MAX)
def _moment_in(date: str) -> float | None:
    """Reads a Date header, in seconds since 1970; None where it can't be read. Replies of one second have the same."""
    if len(date) > DATE_LENGTH_MAX:
        return None
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
