"""Limits the guessing of keys: after a number of wrong ones a minute from one address, 429 takes the place of 401.

This refuses only attempts that have failed. A valid key is admitted from any address, so that nobody can lock others
out by failing on their network.
"""

from typing import Final

from payrelay.api.auth.quota import Windows
from payrelay.clock import Clock
from payrelay.core.access.credential import Rate
from payrelay.core.access.networks import network_of

FAILURES: Final = Rate(count=20, window_s=60)
"""A person who mistypes a key needs a few; a program that guesses keys needs millions."""
ADDRESSES_MAX: Final = 4_096
"""Addresses that are remembered, each in 3 KiB at most; the one whose last failure is oldest is forgotten first."""


class FailedCredentials:
    """Counts the wrong credentials that came from each address."""

    def __init__(self, clock: Clock) -> None:
        self._windows = Windows(clock, ADDRESSES_MAX, name="failed-credentials")

    def note(self, address: str) -> None:
        """Counts one failure; raises Refusal (rate_limited), without counting it, where there were too many."""
        msg = f"more than {FAILURES.count} wrong keys came from this address in {FAILURES.window_s} s"
        self._windows.take(network_of(address), FAILURES, msg)
