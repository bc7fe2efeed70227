"""Where the places of a budget are kept: in the store, for all processes that share it, or in memory for one alone.

Rules, for both:

1. A place that is taken is free again at the latest possible end of its call and a window after that. A holder that
   dies says nothing, and its place comes back by itself.
2. ``done`` makes that a window from now, ``release_unused`` makes it now; only for the taking that they name.
"""

import itertools
from collections.abc import Coroutine
from typing import Protocol, TypeAlias

from payrelay.clock import Clock
from payrelay.core.gateways.permits import PermitGrant, PermitsTaken
from payrelay.core.gateways.rate_limit import RateLimit

Rest: TypeAlias = Coroutine[object, object, None] | None
"""What is left to be waited for, in the background; None where it has happened."""


class Budget(Protocol):
    """Keeps the places of one gateway account.

    Attributes:
        is_shared: whether others may free a place without our knowing.
    """

    is_shared: bool

    async def take(self, count: int, permit_s: float) -> PermitsTaken:
        """Takes places for calls that have ended ``permit_s`` from now, whatever happens. Raises StoreUnavailable."""
        ...

    def done(self, grant: PermitGrant) -> Rest:
        """The call has ended: the place is free one window from now."""
        ...

    def release_unused(self, grant: PermitGrant) -> Rest:
        """Nothing was sent: the place is free now."""
        ...

    def block(self, for_s: float) -> Rest:
        """The gateway takes no calls: no place is free for so long, for anybody."""
        ...


class MemoryBudget:
    """The places of a process that shares none."""

    is_shared = False

    def __init__(self, limit: RateLimit, clock: Clock) -> None:
        self._window_s = limit.window_s
        self._clock = clock
        self._free_at_s = [0.0] * limit.calls
        self._holdings = [""] * limit.calls
        self._numbers = itertools.count(1)
        self._blocked_until_s = 0.0

    async def take(self, count: int, permit_s: float) -> PermitsTaken:
        """Takes what is free; see ``Budget``."""
        now_s = self._clock.boot_s()
        if now_s < self._blocked_until_s:
            return PermitsTaken((), self._blocked_until_s - now_s)
        free = [slot for slot, free_at_s in enumerate(self._free_at_s) if free_at_s <= now_s][:count]
        grants = tuple(PermitGrant(slot, str(next(self._numbers))) for slot in free)
        for grant in grants:
            self._free_at_s[grant.slot] = now_s + permit_s + self._window_s
            self._holdings[grant.slot] = grant.holder
        return PermitsTaken(grants, None if len(grants) == count else min(self._free_at_s) - now_s)

    def done(self, grant: PermitGrant) -> Rest:
        """Lets it rest for a window; see ``Budget``."""
        self._end(grant, self._clock.boot_s() + self._window_s)
        return None

    def release_unused(self, grant: PermitGrant) -> Rest:
        """Frees it; see ``Budget``."""
        self._end(grant, self._clock.boot_s())
        return None

    def block(self, for_s: float) -> Rest:
        """Frees nothing for a while; see ``Budget``."""
        self._blocked_until_s = max(self._blocked_until_s, self._clock.boot_s() + for_s)
        return None

    def _end(self, grant: PermitGrant, free_at_s: float) -> None:
        if self._holdings[grant.slot] == grant.holder:
            self._holdings[grant.slot] = ""
            self._free_at_s[grant.slot] = free_at_s
