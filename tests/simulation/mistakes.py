"""Mistakes that nobody made, to see that the simulation would notice them: each is one part in another's place."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import msgspec
from multidict import CIMultiDict
from tests.gateways.veil import Veil
from tests.simulation.buyers import OWN_ORDERS
from tests.simulation.network import OPERATION, SimulatedNetwork
from tests.simulation.process import ACCOUNT, SEAL, Parts

from payrelay.core.answers import Answer
from payrelay.core.calls import Effect, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout, event_of
from payrelay.core.events.event import OutgoingEvent
from payrelay.core.notifications.notification import (
    Authenticity,
    NewsKind,
    Notification,
    NotificationFilter,
    NotificationState,
)
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, Line, Operation, State, advance
from payrelay.core.payments.payment import Payment, PaymentsSeen, PaymentStatus, Sight
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.core.subscriptions.subscription import Fact
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import Gateway
from payrelay.gateways.pacing.rate_limiter import Governor, Permit, Priority
from payrelay.gateways.payhere.client import PayHere
from payrelay.gateways.payhere.connections import Loss, LossCause, Reply
from payrelay.gateways.payhere.wire.requests import WireRequest
from payrelay.store.chargebacks import Chargeback, Chargebacks
from payrelay.store.checkouts import Checkouts
from payrelay.store.engine.database import Database
from payrelay.store.events import outbox
from payrelay.store.inbox import Inbox, Put
from payrelay.store.payments.journal import Acceptance, Accepted, Claimed, Journal
from payrelay.store.payments.resolution import Settling
from payrelay.store.subscriptions import Subscriptions, Whose

SOMETHING: Final = Payment(
    payment_id="1",
    order_id="",
    at_ms=None,
    description="",
    status=PaymentStatus.RECEIVED,
    currency="LKR",
    amount_minor=1,
)


class Guardless(Journal):
    """Lets an operation begin while another one on the same subject is open."""

    async def accept(
        self, operation: Operation, line: Line, call: Effect, *, barred_by: str | None, now_ms: int
    ) -> Acceptance:
        """Takes a guard that nobody else has."""
        alone = msgspec.structs.replace(operation, guard=operation.id)
        return await super().accept(alone, line, call, barred_by=barred_by, now_ms=now_ms)


class Claimless(Journal):
    """Forgets what it was asked before."""

    async def find_claim(self, principal: str, claim: str, *, now_ms: int) -> Claimed | None:  # noqa: ARG002, forgotten
        """Finds nothing."""
        return None

    async def accept(
        self, operation: Operation, line: Line, call: Effect, *, barred_by: str | None, now_ms: int
    ) -> Acceptance:
        """Takes a claim that nobody else has."""
        new = msgspec.structs.replace(operation, claim=f"key/{operation.id}")
        return await super().accept(new, line, call, barred_by=barred_by, now_ms=now_ms)


class Hasty(Journal):
    """Says that the intent is stored, and stores it meanwhile."""

    async def accept(
        self, operation: Operation, line: Line, call: Effect, *, barred_by: str | None, now_ms: int
    ) -> Acceptance:
        """Stores in the background."""
        storing = asyncio.ensure_future(super().accept(operation, line, call, barred_by=barred_by, now_ms=now_ms))
        storing.add_done_callback(lambda done: done.cancelled() or done.exception())
        return Accepted(operation)


class Unjournaled(Journal):
    """Sends once more without saying so first."""

    async def record(self, operation: Operation, line: Line, answer: Answer | None) -> Operation:
        """Leaves out the line that announces a second sending."""
        return operation if line.event is Event.PROBING else await super().record(operation, line, answer)


class Forgetful(Journal):
    """Keeps the state and not the answer."""

    async def record(self, operation: Operation, line: Line, answer: Answer | None) -> Operation:  # noqa: ARG002, dropped
        """Stores without it."""
        return await super().record(operation, line, None)


class Shameless(Settling):
    """Takes whatever payment is there for its own."""

    async def owned_by_others(self, operation: Operation, payment_ids: Sequence[str]) -> frozenset[str]:  # noqa: ARG002
        """Finds that nobody owns anything."""
        return frozenset()


class Optimist(SimulatedNetwork):
    """Takes silence for a sign that nothing was sent."""

    async def exchange(
        self, request: WireRequest, headers: CIMultiDict[str], *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Says so."""
        outcome = await super().exchange(request, headers, send_by_s=send_by_s)
        if isinstance(outcome, Loss) and outcome.cause is LossCause.TIMEOUT:
            return Loss(is_sent=False, cause=LossCause.CONNECT_TIMEOUT)
        return outcome


class Credulous(Veil):
    """Believes that a search that finds nothing would find whatever there is."""

    def __init__(self, account: Gateway) -> None:
        super().__init__(account)
        self._looked_for: dict[str | None, object] = {}

    async def observe(
        self, call: PaymentsOfOrder | PaymentsOfSubscription, *, until_s: float, priority: Priority = Priority.SETTLE
    ) -> Sight:
        """Takes every control query for answered."""
        if self._looked_for.setdefault(OPERATION.get(), call) != call:
            return PaymentsSeen(payments=(SOMETHING,), evidence=Evidence())
        return await super().observe(call, until_s=until_s, priority=priority)


class Lavish(Governor):
    """Gives a place again as soon as its call has ended."""

    def _end(self, place: Permit, *, is_used: bool) -> None:  # noqa: ARG002, it never was
        super()._end(place, is_used=False)


class Trusting(Veil):
    """Takes what a notification says for what the gateway shows, of the orders of checkouts."""

    def __init__(self, account: Gateway, inbox: Inbox) -> None:
        super().__init__(account)
        self._inbox = inbox

    async def observe(
        self, call: PaymentsOfOrder | PaymentsOfSubscription, *, until_s: float, priority: Priority = Priority.SETTLE
    ) -> Sight:
        """Shows what was told."""
        if not isinstance(call, PaymentsOfOrder) or call.order_id not in OWN_ORDERS:
            return await super().observe(call, until_s=until_s, priority=priority)
        told = await self._inbox.list(NotificationFilter(order_id=call.order_id), before=None, limit=100)
        payments = tuple(
            msgspec.structs.replace(
                SOMETHING,
                payment_id=each.payment_id or "",
                order_id=each.order_id,
                currency=each.currency,
                amount_minor=each.amount_minor,
            )
            for each in told
        )
        return PaymentsSeen(payments=payments, evidence=Evidence())


class Dropping(Inbox):
    """Says that a notification is stored, and keeps it in memory."""

    async def put(self, notification: Notification, body: bytes) -> Put | None:  # noqa: ARG002, it is lost
        """Takes it for new."""
        return Put(notification=notification, is_new=True)


class Gullible(Inbox):
    """Believes a chargeback whoever has signed it."""

    async def put(self, notification: Notification, body: bytes) -> Put | None:
        """Takes it for the gateway's."""
        if notification.kind is NewsKind.CHARGEBACK and notification.verdict is Authenticity.FORGED:
            at_ms = notification.received_at_ms
            notification = msgspec.structs.replace(
                notification, verdict=Authenticity.GENUINE, state=NotificationState.RECEIVED, next_at_ms=at_ms
            )
        return await super().put(notification, body)


class Talkative(Chargebacks):
    """Tells of a chargeback as often as it comes."""

    async def keep(self, chargeback: Chargeback, event: OutgoingEvent) -> bool:
        """Tells of it although it is kept already."""
        is_new = await super().keep(chargeback, event)
        if not is_new:
            await self._database.write(outbox.put(event))
        return is_new


class Recounting(Subscriptions):
    """Counts an installment whenever somebody tells of it."""

    async def note(self, whose: Whose, facts: Sequence[Fact], *, now_ms: int) -> None:
        """Takes one that is known for another one."""
        new = []
        for fact in facts:
            key = (whose.merchant, fact.subscription_id)
            is_repeat = fact.is_paid and fact.payment is not None and await self.is_paid(*key, fact.payment)
            new.append(msgspec.structs.replace(fact, payment=f"{fact.payment}0") if is_repeat else fact)
        await super().note(whose, new, now_ms=now_ms)


class Twofold(Checkouts):
    """Tells of a change in a commit of its own."""

    async def change(self, checkout: Checkout, *, is_told: bool, is_paid: bool = False) -> None:
        """Changes first, and tells then."""
        await super().change(checkout, is_told=False, is_paid=is_paid)
        if is_told:
            await self._database.write(outbox.put(event_of(checkout)))


async def recover_as_unsent(relay: Relay, *, is_sole_owner: bool) -> int:
    """Takes what a dead process was sending for not sent."""
    stranded = await relay.journal.stranded(before_ms=NEVER_MS if is_sole_owner else 0)
    for operation in stranded:
        event = Event.GAVE_UP if operation.state is State.ACCEPTED else Event.NOT_SENT
        changed, line = advance(
            operation, event, at_ms=relay.clock.now_ms(), retention=relay.retention, evidence=Evidence()
        )
        await relay.journal.record(changed, line, None)
    return len(stranded)


def with_journal(kind: type[Journal]) -> Parts:
    """Puts another journal in the place of the real one."""

    def change(relay: Relay, _: Database) -> Relay:
        journal = kind.__new__(kind)
        vars(journal).update(vars(relay.journal))
        return replace(relay, journal=journal)

    return Parts(change=change)


def _shameless(relay: Relay, database: Database) -> Relay:
    return replace(relay, settling=Shameless(database))


def _credulous(relay: Relay, _: Database) -> Relay:
    return replace(relay, accounts={ACCOUNT: Credulous(relay.accounts[ACCOUNT])})


def _trusting(relay: Relay, _: Database) -> Relay:
    return replace(relay, accounts={ACCOUNT: Trusting(relay.accounts[ACCOUNT], relay.inbox)})


def _dropping(relay: Relay, database: Database) -> Relay:
    return replace(relay, inbox=Dropping(database, SEAL))


def _twofold(relay: Relay, database: Database) -> Relay:
    return replace(relay, checkouts=Twofold(database, SEAL))


def _gullible(relay: Relay, database: Database) -> Relay:
    return replace(relay, inbox=Gullible(database, SEAL))


def _talkative(relay: Relay, database: Database) -> Relay:
    return replace(relay, chargebacks=Talkative(database))


def _recounting(relay: Relay, database: Database) -> Relay:
    return replace(relay, subscriptions=Recounting(database, relay.new_id))


def _lavish(relay: Relay, _: Database) -> Relay:
    account = relay.accounts[ACCOUNT]
    assert isinstance(account, PayHere)
    account.governor = Lavish(account.governor.limit, relay.clock)
    return relay


MISTAKES: Final[dict[str, Callable[[], Parts]]] = {
    "no guard": lambda: with_journal(Guardless),
    "no claim": lambda: with_journal(Claimless),
    "sent before it is stored": lambda: with_journal(Hasty),
    "second sending not journaled": lambda: with_journal(Unjournaled),
    "answer not kept": lambda: with_journal(Forgetful),
    "silence means not sent": lambda: Parts(network=Optimist),
    "what was sending was not sent": lambda: Parts(recover=recover_as_unsent),
    "another's payment is proof": lambda: Parts(change=_shameless),
    "nothing found is proof": lambda: Parts(change=_credulous),
    "places free at once": lambda: Parts(change=_lavish),
    "a notification is proof": lambda: Parts(change=_trusting),
    "answered before it is kept": lambda: Parts(change=_dropping),
    "told in another commit": lambda: Parts(change=_twofold),
    "an unsigned chargeback is believed": lambda: Parts(change=_gullible),
    "a chargeback is told again": lambda: Parts(change=_talkative),
    "an installment is counted twice": lambda: Parts(change=_recounting),
}
