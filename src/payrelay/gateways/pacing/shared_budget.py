"""The permits of a budget: in the store for all processes that share it, or in memory for one process alone.

Rules for both:

1. A permit is free again one window after the latest possible end of its call. So a permit comes back by itself when
   its holder dies.
2. ``done`` changes that to one window from now, and ``release_unused`` to now. Both change only the grant that they
   name.
3. Of the calls that want a permit, ``core.gateways.fair_shares`` chooses those that get one.
"""

import itertools
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Protocol, TypeAlias

from payrelay.clock import Clock
from payrelay.core.gateways.fair_shares import Consumer, Usage, choose
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

    async def take(self, wanted: Sequence[Consumer], permit_s: float) -> PermitsGranted:
        """Takes permits for calls that end within ``permit_s`` seconds, whatever happens. Raises StoreUnavailable.

        ``wanted`` are the consumers of the calls that wait, in the order of their turns.
        """

    def done(self, grant: PermitGrant) -> Rest:
        """Ends a grant whose call has ended: the permit is free one window from now."""

    def release_unused(self, grant: PermitGrant) -> Rest:
        """Ends a grant on which nothing was sent: the permit is free now."""

    def block(self, for_s: float) -> Rest:
        """Keeps all permits from all processes for ``for_s`` seconds, because the gateway takes no calls."""


class MemoryBudget:
    """The permits of a process that shares its budget with no other."""

    is_shared = False

    def __init__(self, limit: RateLimit, clock: Clock) -> None:
        self._window_s = limit.window_s
        self._clock = clock
        self._calls = limit.calls
        self._free_at_s = [0.0] * limit.calls
        self._holders = [""] * limit.calls
        self._consumers: list[Consumer | None] = [None] * limit.calls
        self._numbers = itertools.count(1)
        self._blocked_until_s = 0.0

    async def take(self, wanted: Sequence[Consumer], permit_s: float) -> PermitsGranted:
        """Takes free permits; see ``Budget``."""
        now_s = self._clock.boot_s()
        if now_s < self._blocked_until_s:
            return PermitsGranted((), self._blocked_until_s - now_s)
        given, refused = choose(wanted, self._usages(now_s), calls=self._calls)
        grants = tuple(self._grant(consumer, now_s, now_s + permit_s + self._window_s) for consumer in given)
        if len(grants) == len(wanted):
            return PermitsGranted(grants)
        changes_s = [*self._free_at_s, *(free_at_s + self._window_s for free_at_s in self._free_at_s)]
        next_in_s = min(at_s for at_s in changes_s if at_s > now_s) - now_s
        is_any_left = any(at_s <= now_s for at_s in self._free_at_s)
        return PermitsGranted(grants, next_in_s, refused, is_any_left=is_any_left)

    def done(self, grant: PermitGrant) -> Rest:
        """Frees the permit one window from now; see ``Budget``."""
        self._end(grant, self._clock.boot_s() + self._window_s)
        return None

    def release_unused(self, grant: PermitGrant) -> Rest:
        """Frees the permit now; see ``Budget``."""
        if self._end(grant, self._clock.boot_s()):
            self._consumers[grant.slot] = None
        return None

    def block(self, for_s: float) -> Rest:
        """Frees no permit for a while; see ``Budget``."""
        self._blocked_until_s = max(self._blocked_until_s, self._clock.boot_s() + for_s)
        return None

    def _usages(self, now_s: float) -> list[Usage]:
        in_use: Counter[Consumer] = Counter()
        recent: Counter[Consumer] = Counter()
        for consumer, free_at_s in zip(self._consumers, self._free_at_s, strict=True):
            if consumer is not None:
                in_use[consumer] += free_at_s > now_s
                recent[consumer] += free_at_s <= now_s < free_at_s + self._window_s
        return [Usage(consumer, in_use[consumer], recent[consumer]) for consumer in in_use]

    def _grant(self, consumer: Consumer, now_s: float, free_at_s: float) -> PermitGrant:
        """Gives the permit that the consumer had last, or else the one that is free for longest."""
        free = [slot for slot, at_s in enumerate(self._free_at_s) if at_s <= now_s]
        slot = min(free, key=lambda each: (self._consumers[each] != consumer, self._free_at_s[each]))
        grant = PermitGrant(slot, str(next(self._numbers)), consumer)
        self._free_at_s[slot], self._holders[slot], self._consumers[slot] = free_at_s, grant.holder, consumer
        return grant

    def _end(self, grant: PermitGrant, free_at_s: float) -> bool:
        if self._holders[grant.slot] != grant.holder:
            return False
        self._holders[grant.slot] = ""
        self._free_at_s[grant.slot] = free_at_s
        return True
