"""A world whose database has lost its newest commits, over a gateway that keeps a ledger and may show it late."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec
from tests.flows.subscriptions.test_retry_subscription import RETRY
from tests.flows.world import CHARGE, START_MS, ScriptedAccount, Steps, World, asked

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.calls import Charge, Effect, PaymentsOfOrder, PaymentsOfSubscription, Refund, RetrySubscription
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.gateways.fair_shares import PAYRELAY, Requester
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.outcomes import Evidence, Outcome, OutcomeKind
from payrelay.core.payments.payment import (
    NoObservation,
    NothingShown,
    Observation,
    Payment,
    PaymentsSeen,
    PaymentStatus,
)
from payrelay.errors import Code
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund
from payrelay.flows.subscriptions.retry_subscription import retry_subscription
from payrelay.gateways.gateway import ExpectedReply, Sending
from payrelay.gateways.pacing.rate_limiter import Priority, RateLimiter
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.store.payments.journal import Journal

LAG_MS: Final = 600_000
HOUR_MS: Final = 3_600_000
LOST: Final = LostWindow(since_ms=START_MS + 10 * HOUR_MS, until_ms=START_MS + 11 * HOUR_MS)
MOST_MS: Final = LOST.since_ms + HOUR_MS // 2
"""When the lost operations of these tests were sent."""
LOOKED_MS: Final = LOST.until_ms + 40_000 + LAG_MS
"""From when on the gateway must show them all: a commit, ten seconds to its sending, the time-out, and the lag."""
KNOWN_ORDER: Final = "A-0"
"""The order whose payment is known, for control queries."""

FIRST: Final = Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=0)
RECOVERING: Final = Incarnation(
    number=2, reason=Beginning.RECOVERED, began_at_ms=LOST.until_ms, lost=LOST, operator="dana"
)


class ShowingAccount(ScriptedAccount):
    """Carries effects out, and shows its payments, each from its own time on.

    Attributes:
        shown: the payments, each with the time in ms since 1970 from which a search finds it.
        plans: the payments of subscriptions, as ``shown``.
        effects: everything that took effect.
        is_blind: searches find nothing.
        is_away: searches fail.
        searched: the searches that were made.
    """

    def __init__(self, clock: Clock, steps: Steps, journal: Journal) -> None:
        super().__init__(clock, steps, journal)
        self.now_ms = clock.now_ms
        self.shown: list[tuple[Payment, int]] = []
        self.plans: dict[int, list[tuple[Payment, int]]] = {}
        self.effects: list[Effect] = []
        self.is_blind = False
        self.is_away = False
        self.searched: list[PaymentsOfOrder | PaymentsOfSubscription] = []

    async def effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:
        """Carries out what the script says, and keeps what can be searched for."""
        before = len(self.ledger)
        outcome = await super().effect(call, expected, sending)
        if len(self.ledger) == before:
            return outcome
        payment = self.execute(call, at_ms=self.now_ms())
        if outcome.kind is OutcomeKind.SUCCEEDED and payment is not None:
            facts = msgspec.structs.replace(outcome.facts, payment_id=payment.payment_id)
            return msgspec.structs.replace(outcome, facts=facts)
        return outcome

    def execute(self, call: Effect, *, at_ms: int, shown_at_ms: int = 0) -> Payment | None:
        """Does what a call asks for, in the ledger."""
        self.effects.append(call)
        number = 320_000_000_000 + len(self.shown) + sum(map(len, self.plans.values()))
        if isinstance(call, Charge):
            self.shown.append((payment_of(call, str(number), at_ms), shown_at_ms))
            return self.shown[-1][0]
        if isinstance(call, RetrySubscription):
            installment = payment_of(CHARGE, str(number), at_ms)
            self.plans.setdefault(call.subscription_id, []).append((installment, shown_at_ms))
            return installment
        if isinstance(call, Refund):
            refunded = PaymentStatus.REFUND_REQUESTED
            self.shown = [
                (msgspec.structs.replace(each, status=refunded) if each.payment_id == call.payment_id else each, at_ms)
                for each, at_ms in self.shown
            ]
        return None

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,  # noqa: ARG002, the interface of a gateway
        priority: Priority = Priority.RESOLUTION,  # noqa: ARG002, the interface of a gateway
        requester: Requester = PAYRELAY,  # noqa: ARG002, the interface of a gateway
    ) -> Observation:
        """Searches the ledger."""
        self.searched.append(call)
        await self._steps.reach("observe")
        if self.is_away:
            return NoObservation(code=Code.GATEWAY_UNREACHABLE, evidence=Evidence())
        if isinstance(call, PaymentsOfSubscription):
            kept = self.plans.get(call.subscription_id, [])
        else:
            kept = [each for each in self.shown if each[0].order_id == call.order_id]
        found = tuple(payment for payment, shown_at_ms in kept if shown_at_ms <= self.now_ms())
        if self.is_blind or not found:
            return NothingShown(evidence=Evidence(gateway_msg="No payments found"))
        return PaymentsSeen(payments=found, evidence=Evidence())


class Recovery:
    """The state of the database that a test chooses."""

    def __init__(self, *incarnations: Incarnation) -> None:
        self.incarnations: Sequence[Incarnation] = incarnations

    async def read(self) -> DatabaseIdentity:
        """Reads it."""
        return DatabaseIdentity(id="0" * 32, incarnations=tuple(self.incarnations))


class LostWorld:
    """A world in recovery: a paid order, a payment and a subscription are known from before the loss."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.account = ShowingAccount(world.clock, world.steps, world.journal)
        world.account, world.accounts["gateway"] = self.account, self.account
        self.recovery = Recovery(FIRST)
        world.relay = replace(
            world.relay,
            database=replace(
                world.relay.database, lost_commits=LostCommits(self.recovery.read, world.clock, world.relay.log)
            ),
        )

    async def begin(self) -> None:
        """Makes what is known from before the loss."""
        await self.make(msgspec.structs.replace(CHARGE, order_id=KNOWN_ORDER), "k-0")
        payment, _ = self.account.shown[0]
        await self.world.relay.read_cache.note_payments(self.account.merchant, (payment,), seen_at_ms=START_MS)
        self.refund = Refund(payment_id=payment.payment_id, description="late")
        self.account.plans[RETRY.subscription_id] = [(payment_of(CHARGE, "319", START_MS), 0)]
        self.account.effects.clear()

    def limit_to(self, limit: RateLimit) -> None:
        """Gives the account a budget."""
        self.account.rate_limiter = RateLimiter(limit, self.world.clock, timer=self.account.timer)

    def lose(self, *, now_ms: int = LOOKED_MS, incarnation: Incarnation = RECOVERING) -> None:
        """Loses the commits of the lost window, and goes on at a later time."""
        self.recovery.incarnations = (FIRST, incarnation)
        self.world.clock.passed_ms = now_ms - START_MS

    async def make(self, call: Effect, key: str | None = "k-1", **credential: object) -> Answer:
        """Makes a request, with what is named of its credential."""
        from_client = asked(key, **credential)
        if isinstance(call, Charge):
            return await charge(self.world.relay, from_client, call)
        if isinstance(call, RetrySubscription):
            return await retry_subscription(self.world.relay, from_client, call)
        assert isinstance(call, Refund)
        return await refund(self.world.relay, from_client, call)


def payment_of(call: Charge, payment_id: str, at_ms: int) -> Payment:
    """Gives the record of a charge's payment."""
    return Payment(
        payment_id=payment_id,
        order_id=call.order_id,
        at_ms=at_ms,
        description=call.items,
        status=PaymentStatus.RECEIVED,
        currency=call.currency,
        amount_minor=call.amount_minor,
    )
