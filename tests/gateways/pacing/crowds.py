"""A crowd that asks for far more than the budget, and a polite caller beside it, on a clock that is moved by hand."""

import asyncio
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tests.gateways.pacing.hand_clock import HandClock

from payrelay.core.gateways.fair_shares import Requester
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.gateways.pacing.rate_limiter import Priority, RateLimiter

LIMIT: Final = RateLimit(20, 10.0)
LATENCY_S: Final = 0.3
QUEUE_S: Final = 5.0
"""How long everybody waits for a permit."""
CYCLE_S: Final = LIMIT.window_s + LATENCY_S
"""How long one call uses a permit."""
POLITE: Final = Requester("polite")


class Flood(NamedTuple):
    """One who asks again at once, over many connections, from one time to another (in seconds)."""

    requester: Requester
    connections: int
    priority: Priority = Priority.CHARGE
    from_s: float = 0.0
    until_s: float = 1_000.0


class Wait(NamedTuple):
    """When a call was asked for, and how long it waited for its permit; None where it got none."""

    at_s: float
    waited_s: float | None


@dataclass
class Street:
    """The rate limiters of some processes that share a budget, and all who come to them."""

    clock: HandClock
    rate_limiters: list[RateLimiter]
    given: list[str] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)

    async def run(self, floods: list[Flood], *, every_s: float, for_s: float, requester: Requester = POLITE) -> None:
        """Lets one call come every so many seconds, in turn to each process, and the floods to all of them."""
        began_s, tasks = self.clock.now_s, set[asyncio.Task[None]]()
        for number, flood in enumerate(each for each in floods for _ in range(each.connections)):
            rate_limiter = self.rate_limiters[number % len(self.rate_limiters)]
            tasks.add(asyncio.create_task(self._flood(flood, rate_limiter, began_s, began_s + for_s)))
        for number in range(int(for_s / every_s)):
            rate_limiter = self.rate_limiters[number % len(self.rate_limiters)]
            tasks.add(asyncio.create_task(self._ask(rate_limiter, requester, began_s)))
            await self.clock.run(every_s)
        await self.clock.run(QUEUE_S + CYCLE_S)
        await asyncio.gather(*tasks)
        for rate_limiter in self.rate_limiters:
            await rate_limiter.close()

    async def _flood(self, flood: Flood, rate_limiter: RateLimiter, began_s: float, until_s: float) -> None:
        woken = asyncio.Event()
        self.clock.timer(flood.from_s, woken.set)
        await woken.wait()
        while self.clock.now_s < min(until_s, began_s + flood.until_s):
            give_up_s = self.clock.now_s + QUEUE_S
            permit = await rate_limiter.take(give_up_s, priority=flood.priority, requester=flood.requester)
            if permit is not None:
                self.given.append(flood.requester.principal)
                self.clock.timer(LATENCY_S, permit.done)

    async def _ask(self, rate_limiter: RateLimiter, requester: Requester, began_s: float) -> None:
        at_s = self.clock.now_s
        permit = await rate_limiter.take(at_s + QUEUE_S, requester=requester)
        waited_s = None if permit is None else self.clock.now_s - at_s
        self.waits.append(Wait(at_s - began_s, waited_s))
        if permit is not None:
            self.clock.timer(LATENCY_S, permit.done)
