"""Remembers which checkouts the gateway showed as not paid in a lost window, so that each is looked at once.

Only this process knows it. Another one, or this one after its next start, looks once more.
"""

from typing import Final

CLEARED_MAX: Final = 10_000
"""Checkouts that are remembered, the newest. One that is forgotten is looked at once more."""


class ClearedCheckouts:
    """Holds checkouts, each with the number of the incarnation after whose loss it was looked at."""

    def __init__(self) -> None:
        self._cleared: dict[tuple[str, int], None] = {}

    def add(self, checkout_id: str, incarnation: int) -> None:
        """Remembers that a checkout was not paid in what was lost before an incarnation began."""
        self._cleared[checkout_id, incarnation] = None
        if len(self._cleared) > CLEARED_MAX:
            del self._cleared[next(iter(self._cleared))]

    def has(self, checkout_id: str, incarnation: int) -> bool:
        """Tells whether that is remembered."""
        return (checkout_id, incarnation) in self._cleared
