"""One search of an order at the gateway, made at most once in a slot, for everything that waits for the order.

Rules:

1. Whoever needs to know what the gateway shows of an order asks here. The first who asks takes the order's slot. The
   calls of that slot are made once, and shared by all who hold this object.
2. Where the slot is not given, nothing is called. What the last search showed then answers, unless it is too old.
3. Ids that nobody signed cost no calls of their own: subscriptions that are not known as the order's are looked up one
   at a time, and from the second one on in the list of all subscriptions.
"""

from dataclasses import dataclass, field
from typing import Final

from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.outcomes import Evidence, Reading
from payrelay.core.payments.order_search import READING_COUNTS_MS, SCHEDULE_MS, SearchSchedule, next_try_ms
from payrelay.core.payments.payment import NoObservation, NothingShown, Observation, Payment, PaymentsSeen
from payrelay.core.subscriptions.subscription import Fact
from payrelay.errors import Code
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import Gateway
from payrelay.gateways.pacing.rate_limiter import PAYRELAY, Priority, Requester
from payrelay.runtime.hooks import FlowPoint
from payrelay.store.payments.order_searches import OrderReading

SUBSCRIPTIONS_MAX: Final = 3
"""Subscriptions of one order whose payments one slot asks for. An order has one; a second one was begun by mistake."""

INQUIRE_WITHIN_S: Final = 10.0
"""How long each call waits for a permit of the gateway's rate limiter."""
FORGOTTEN_MAX: Final = 500
"""Schedules that one round deletes, so that it never holds the store for long."""

_NO_SLOT: Final = NoObservation(code=Code.GATEWAY_BUSY, evidence=Evidence())
_NONE: Final = NothingShown(evidence=Evidence())


@dataclass(kw_only=True, slots=True)
class OrderSearch:
    """The search for one order, as far as its slot goes. Serves one task at a time; ``end`` it when that is done.

    Attributes:
        relay: gives access to stores and hooks.
        account: the account at which the order is searched for.
        order_id: the order.
        occasions: what has happened to the order, for ``core.payments.order_search``.
        priority: of the calls, and ``wait_s`` how long each waits for a permit.
        requester: the one whom the calls are for.
        is_needed: whether somebody has asked since this was last set to False.
        slot: the schedule with the slot that was taken; None before anybody has asked, or where it was not given.
        schedule: the schedule as it was when the slot was asked for; None before.
    """

    relay: Relay
    account: Gateway
    order_id: str
    occasions: frozenset[str] = frozenset()
    priority: Priority = Priority.RESOLUTION
    requester: Requester = PAYRELAY
    wait_s: float
    is_needed: bool = False
    slot: SearchSchedule | None = None
    schedule: SearchSchedule | None = None
    _observations: dict[PaymentsOfOrder | PaymentsOfSubscription, Observation] = field(default_factory=dict)
    _readings: dict[OneSubscription | AllSubscriptions, tuple[Reading, int]] = field(default_factory=dict)
    _stored: list[OrderReading | None] = field(default_factory=list)
    _asked_for: set[str] = field(default_factory=set)

    async def has_slot(self) -> bool:
        """Takes the slot of the order where it is due, the first time; tells whether this search has it.

        Raises StoreError.
        """
        self.is_needed = True
        if self.schedule is None:
            with self.relay.hooks.passing(FlowPoint.TAKING_SLOT, FlowPoint.TOOK_SLOT, self.order_id):
                taken = await self.relay.money.order_searches.take(
                    self.account.merchant, self.order_id, sorted(self.occasions), now_ms=self.relay.clock.now_ms()
                )
            self.schedule = taken.schedule
            self.slot = taken.schedule if taken.is_given else None
        return self.slot is not None

    def count_as_own(self) -> None:
        """Counts the further calls as Payrelay's own: the gateway has shown what may have to be resolved.

        The share of one app may be a single call in each window of the budget. No search with three calls ends in it.
        """
        self.priority, self.requester = Priority.RESOLUTION, PAYRELAY

    @property
    def next_at_ms(self) -> int | None:
        """When what still waits may ask again; None where nobody has asked since ``is_needed`` was set to False."""
        if not self.is_needed or self.schedule is None:
            return None
        return next_try_ms(self.schedule, self.relay.clock.now_ms(), is_given=self.slot is not None)

    @property
    def payments(self) -> tuple[Payment, ...] | None:
        """The payments of the order that this search has seen; None where it has not seen any answer."""
        seen = self._observations.get(PaymentsOfOrder(order_id=self.order_id))
        if isinstance(seen, PaymentsSeen):
            return seen.payments
        return () if isinstance(seen, NothingShown) else None

    async def inquire(
        self, call: PaymentsOfOrder | PaymentsOfSubscription, *, for_id: str, since_ms: int | None = None
    ) -> Observation:
        """Asks the gateway for payments, once in this slot for each call.

        Without a slot, what the last search of the order showed counts where it is not much older than ``since_ms``.
        Gives NoObservation where nothing is known. ``for_id`` names who asks, for the hooks. Raises StoreError.
        """
        if isinstance(call, PaymentsOfOrder) and call.order_id != self.order_id:
            return _NO_SLOT  # another order has a schedule of its own
        if not await self.has_slot():
            return await self._stored_observation(call, since_ms)
        if call not in self._observations:
            self._observations[call] = _NO_SLOT  # also where the call fails by an error of ours: once in this slot
            await self._observe(call, for_id)
        return self._observations[call]

    async def subscription(self, subscription_id: str, *, for_id: str) -> Fact | NoObservation | None:
        """Gives what the gateway shows of a subscription of the order; None where it shows none.

        Gives NoObservation where it can't be asked, or not before the next slot. Raises StoreError.
        """
        call: OneSubscription | AllSubscriptions = OneSubscription(subscription_id=int(subscription_id))
        is_listed = AllSubscriptions() in self._readings
        is_second = any(isinstance(each, OneSubscription) and each != call for each in self._readings)
        if is_listed or (is_second and call not in self._readings and not await self._is_known(subscription_id)):
            call = AllSubscriptions()
        read = await self.read(call, for_id=for_id)
        if isinstance(read, NoObservation):
            return read
        reading, asked_ms = read
        if reading.code is Code.NOT_FOUND:
            return None
        if reading.code is not None:
            return NoObservation(code=reading.code, evidence=Evidence())
        of_order = self.order_id if isinstance(call, AllSubscriptions) else None
        shown = self.account.subscriptions_in(reading.raw_data or b"", seen_at_ms=asked_ms, order_id=of_order)
        wanted = (subscription_id, self.order_id)
        return next((each for each in shown if (each.subscription_id, each.order_id) == wanted), None)

    async def read(
        self, call: OneSubscription | AllSubscriptions, *, for_id: str
    ) -> tuple[Reading, int] | NoObservation:
        """Reads subscriptions at the gateway, once in this slot for each call; with the time of the call in ms.

        Gives NoObservation without a slot. Raises StoreError.
        """
        if not await self.has_slot():
            return _NO_SLOT
        if call not in self._readings:
            asked_ms = self.relay.clock.now_ms()
            self._readings[call] = (await self._read(call, for_id), asked_ms)
        return self._readings[call]

    async def end(self) -> None:
        """Ends the slot, and stores what the search showed of the order; does nothing without a slot.

        May be repeated. Where the process dies before, the slot is free again when its lease ends. Raises StoreError.
        """
        if self.slot is None:
            return
        with self.relay.hooks.passing(FlowPoint.ENDING_SLOT, FlowPoint.ENDED_SLOT, self.order_id):
            await self.relay.money.order_searches.end(self.slot, self.payments, now_ms=self.relay.clock.now_ms())

    async def _stored_observation(
        self, call: PaymentsOfOrder | PaymentsOfSubscription, since_ms: int | None
    ) -> Observation:
        if since_ms is None or call != PaymentsOfOrder(order_id=self.order_id):
            return _NO_SLOT
        if not self._stored:
            self._stored.append(await self.relay.money.order_searches.reading(self.account.merchant, self.order_id))
        [reading] = self._stored
        if reading is None or reading.read_at_ms < since_ms - READING_COUNTS_MS:
            return _NO_SLOT
        return PaymentsSeen(payments=reading.payments, evidence=Evidence()) if reading.payments else _NONE

    async def _observe(self, call: PaymentsOfOrder | PaymentsOfSubscription, for_id: str) -> None:
        if isinstance(call, PaymentsOfSubscription):
            refused = await self._refused(str(call.subscription_id), for_id)
            if refused is not None:
                self._observations[call] = refused
                return
        relay = self.relay
        asked_ms = relay.clock.now_ms()
        with relay.hooks.passing(FlowPoint.INQUIRING, FlowPoint.INQUIRED, for_id):
            observation = await self.account.inquire(
                call, until_s=self._until_s, priority=self.priority, requester=self.requester
            )
        self._observations[call] = observation
        if isinstance(observation, PaymentsSeen):
            await relay.read_cache.note_payments(self.account.merchant, observation.payments, seen_at_ms=asked_ms)

    async def _refused(self, subscription_id: str, for_id: str) -> Observation | None:
        """Gives what is observed of a subscription whose payments aren't asked for; None where they are to be.

        They are asked for where the subscription is the order's, and for SUBSCRIPTIONS_MAX of them in one slot.
        """
        if not await self._is_known(subscription_id):
            shown = await self.subscription(subscription_id, for_id=for_id)
            if not isinstance(shown, Fact):
                return shown or _NONE
        if len(self._asked_for) >= SUBSCRIPTIONS_MAX:
            return _NO_SLOT
        self._asked_for.add(subscription_id)
        return None

    async def _is_known(self, subscription_id: str) -> bool:
        """Tells whether a checkout of the order was proved to have begun the subscription."""
        checkouts = await self.relay.checkouts.of_order(self.account.merchant, self.order_id)
        return any(each.subscription_id == subscription_id for each in checkouts)

    async def _read(self, call: Read, for_id: str) -> Reading:
        with self.relay.hooks.passing(FlowPoint.INQUIRING, FlowPoint.INQUIRED, for_id):
            return await self.account.read(
                call, priority=self.priority, until_s=self._until_s, requester=self.requester
            )

    @property
    def _until_s(self) -> float:
        return self.relay.clock.boot_s() + self.wait_s


def search_of(relay: Relay, account: Gateway, checkout: Checkout, occasion: str | None) -> OrderSearch:
    """Returns the search for a checkout's order, which takes the order's slot when it is first asked.

    ``occasion`` is what has happened to the checkout, None for nothing new. The calls have the priority of a read,
    and are counted as those of an app of the checkout's principal: pages that are refreshed must not take the permits
    of charges.
    """
    return OrderSearch(
        relay=relay,
        account=account,
        order_id=checkout.order_id,
        occasions=frozenset() if occasion is None else frozenset({f"{occasion} {checkout.id}"}),
        priority=Priority.READ,
        requester=Requester.of_app(checkout.principal, checkout.order_id),
        wait_s=INQUIRE_WITHIN_S,
    )


async def forget_searches(relay: Relay) -> int:
    """Deletes some schedules that have ended; returns how many. Raises StoreError."""
    return await relay.money.order_searches.forget(relay.clock.now_ms() - SCHEDULE_MS, FORGOTTEN_MAX)
