"""The permits of a budget: in the store for all processes that share it, or in memory for one process alone.

Rules for both:

1. A permit is free again one window after the latest possible end of its call. So a permit comes back by itself when
   its holder dies.
2. ``done`` changes that to one window from now, and ``release_unused`` to now. Both change only the grant that they
   name.
"""

import itertools
from collections.abc import Coroutine
from typing import Protocol, TypeAlias

from payrelay.clock import Clock
from payrelay.core.gateways.permit_grants import PermitGrant, PermitsGranted
from payrelay.core.gateways.rate_limit import RateLimit

Rest: TypeAlias = Coroutine[object, object, None] | None
"""Work that is left to do in the background; None where all is done."""


class Budget(Protocol):
    """Keeps the permits of one gateway account.

    Attributes:
        is_shared: whether another process may free a permit without our knowledge.
    """

    is_shared: bool

    async def take(self, count: int, permit_s: float) -> PermitsGranted:
        """Takes permits for calls that end within ``permit_s`` seconds, whatever happens. Raises StoreUnavailable."""
        ...

    def done(self, grant: PermitGrant) -> Rest:
        """Ends a grant whose call has ended: the permit is free one window from now."""
        ...

    def release_unused(self, grant: PermitGrant) -> Rest:
        """Ends a grant on which nothing was sent: the permit is free now."""
        ...

    def block(self, for_s: float) -> Rest:
        """Keeps all permits from all processes for ``for_s`` seconds, because the gateway takes no calls."""
        ...


class MemoryBudget:
    """The permits of a process that shares its budget with no other."""

    is_shared = False

    def __init__(self, limit: RateLimit, clock: Clock) -> None:
        self._window_s = limit.window_s
        self._clock = clock
        self._free_at_s = [0.0] * limit.calls
        self._holders = [""] * limit.calls
        self._numbers = itertools.count(1)
        self._blocked_until_s = 0.0

    async def take(self, count: int, permit_s: float) -> PermitsGranted:
        """Takes free permits; see ``Budget``."""
        now_s = self._clock.boot_s()
        if now_s < self._blocked_until_s:
            return PermitsGranted((), self._blocked_until_s - now_s)
        free = [slot for slot, free_at_s in enumerate(self._free_at_s) if free_at_s <= now_s][:count]
        grants = tuple(PermitGrant(slot, str(next(self._numbers))) for slot in free)
        for grant in grants:
            self._free_at_s[grant.slot] = now_s + permit_s + self._window_s
            self._holders[grant.slot] = grant.holder
        return PermitsGranted(grants, None if len(grants) == count else min(self._free_at_s) - now_s)

    def done(self, grant: PermitGrant) -> Rest:
        """Frees the permit one window from now; see ``Budget``."""
        self._end(grant, self._clock.boot_s() + self._window_s)
        return None

    def release_unused(self, grant: PermitGrant) -> Rest:
        """Frees the permit now; see ``Budget``."""
        self._end(grant, self._clock.boot_s())
        return None

    def block(self, for_s: float) -> Rest:
        """Frees no permit for a while; see ``Budget``."""
        self._blocked_until_s = max(self._blocked_until_s, self._clock.boot_s() + for_s)
        return None

    def _end(self, grant: PermitGrant, free_at_s: float) -> None:
        if self._holders[grant.slot] == grant.holder:
            self._holders[grant.slot] = ""
            self._free_at_s[grant.slot] = free_at_s
