"""What becomes of a plan that somebody subscribed to: installments fall due, cards fail, and its shop looks on.

The simulated gateway does by its own clock what it does with any plan. Months alone are brought forward, because a life
would be over before the second installment.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Final

import msgspec
from tests.simulation.clients import Ask
from tests.simulation.loop import wait_seconds

from payrelay_simulator.installments import plan_next
from payrelay_simulator.records import Subscription
from payrelay_simulator.world import World

EVENTS_MAX: Final = 3
PAUSES_S: Final = (1.0, 30.0, 600.0, 8_000.0, 90_000.0)
ACTS: Final = ("due", "due", "due", "fails", "mends", "look", "look", "retry", "cancel")
APART_S: Final = 1_500.0
"""Between a retry and any other payment of its plan: what is dated nearer to it passes for its own, as is promised."""


class Plan:
    """One plan and the shop that offers it.

    Args:
        subscription_id: which one.
        world: the simulated gateway.
        random: the chance in it.
        ask: asks once, as the shop.
        persist: asks until it is told something final.
        tell: says that the gateway may have something to tell.
    """

    def __init__(
        self,
        subscription_id: int,
        world: World,
        random: Random,
        *,
        ask: Callable[[str, str], Ask],
        persist: Callable[[Ask], Awaitable[object]],
        tell: Callable[[], None],
    ) -> None:
        self._id = subscription_id
        self._world = world
        self._random = random
        self._ask = ask
        self._persist = persist
        self._tell = tell

    async def go_on(self) -> None:
        """Lives through a few events, until one of them makes its course unforeseeable."""
        for _ in range(self._random.randint(1, EVENTS_MAX)):
            await wait_seconds(self._random.choice(PAUSES_S) * self._random.uniform(0.5, 1.5))
            act = self._random.choice(ACTS)
            if act in {"fails", "mends"}:
                self._set_card(is_good=act == "mends")
            if act in {"due", "fails"}:
                self._fall_due()
            elif act == "look":
                await self._look()
            elif act == "cancel":
                await self._persist(self._ask("DELETE", f"subscriptions/{self._id}"))
            elif act == "retry" and self._is_quiet():
                await wait_seconds(APART_S)
                self._set_card(is_good=self._random.random() < 0.7)
                await self._persist(self._ask("POST", f"subscriptions/{self._id}/retry"))
                return

    @property
    def _subscription(self) -> Subscription:
        return self._world.state.subscriptions[self._id]

    def _set_card(self, *, is_good: bool) -> None:
        customers, token = self._world.state.customers, self._subscription.customer_token
        decline = None if is_good else "insufficient_funds"
        customers[token] = msgspec.structs.replace(customers[token], decline=decline)

    def _fall_due(self) -> None:
        if self._subscription.status == "ACTIVE":
            plan_next(self._world.state, self._subscription, self._world.clock.now())
            self._world.elapse()
            self._tell()

    def _is_quiet(self) -> bool:
        """Tells whether nothing of it falls due for some time, and there is something to be tried again."""
        subscription, now = self._subscription, self._world.clock.now()
        dues = [due.at for _, _, due in self._world.state._agenda if due.key == str(self._id)]
        is_near = any(abs(at - now) < timedelta(seconds=6 * APART_S) for at in dues)
        return subscription.failures > 0 and subscription.status in {"ACTIVE", "FAILED"} and not is_near

    async def _look(self) -> None:
        path = self._random.choice((f"subscriptions/{self._id}", f"subscriptions/{self._id}/payments", "subscriptions"))
        await self._persist(self._ask("GET", path))
