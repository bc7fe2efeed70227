"""Mistakes that nobody made, to see that the simulation would notice them: each is one part in another's place."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import msgspec
from tests.gateways.facade import GatewayFacade
from tests.simulation.buyers import OWN_ORDERS
from tests.simulation.hostility import CHEAP_MINOR
from tests.simulation.mistakes_of_clearing import MISTAKES_OF_CLEARING
from tests.simulation.mistakes_of_money import MISTAKES_OF_MONEY
from tests.simulation.mistakes_of_recovery import MISTAKES_OF_RECOVERY
from tests.simulation.network import OPERATION, SimulatedNetwork
from tests.simulation.process import ACCOUNT, SEAL, Parts

from payrelay.api.requests.route import ParsedRequest
from payrelay.api.routes.policies import own_charge
from payrelay.api.routes.table import ROUTES
from payrelay.core.access.credential import Bound
from payrelay.core.answers import Answer
from payrelay.core.calls import Effect, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState, event_of
from payrelay.core.checkouts.text_holders import TextHolder
from payrelay.core.customers.customer import Customer
from payrelay.core.events.event import OutgoingEvent
from payrelay.core.gateways.fair_shares import PAYRELAY, Requester
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.notifications.notification import (
    Authenticity,
    Notification,
    NotificationFilter,
    NotificationKind,
    NotificationState,
)
from payrelay.core.orders.chargeback import Chargeback
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, JournalEntry, Operation, State, advance
from payrelay.core.payments.order_search import Slot
from payrelay.core.payments.payment import Observation, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.core.secret import Secret
from payrelay.core.subscriptions.subscription import Fact
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import Gateway
from payrelay.gateways.http.exchange import CallHeaders, Loss, LossCause, OutgoingRequest, Reply
from payrelay.gateways.pacing.rate_limiter import Permit, Priority, RateLimiter
from payrelay.gateways.payhere.client import PayHere
from payrelay.store.access.owners import Owners
from payrelay.store.chargebacks import Chargebacks
from payrelay.store.checkouts import Checkouts
from payrelay.store.customers import Customers
from payrelay.store.engine.database import Database, Statement
from payrelay.store.events import outbox
from payrelay.store.inbox import Inbox, StoredNotification
from payrelay.store.payments.journal import Acceptance, AcceptedOperation, ClaimedOperation, Condition, Journal
from payrelay.store.payments.order_searches import OrderSearches
from payrelay.store.payments.resolution import ResolutionStore
from payrelay.store.signed_texts import SignedTexts
from payrelay.store.subscriptions import SubscriptionOwner, Subscriptions

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
        self,
        operation: Operation,
        entry: JournalEntry,
        call: Effect,
        *,
        conflicts_with: str | None,
        now_ms: int,
        beside: Sequence[Statement] = (),
        condition: Condition | None = None,
    ) -> Acceptance:
        """Takes a guard that nobody else has."""
        alone = msgspec.structs.replace(operation, guard=operation.id)
        return await super().accept(
            alone,
            entry,
            call,
            conflicts_with=conflicts_with,
            now_ms=now_ms,
            beside=beside,
            condition=condition,
        )


class Uncounting(Journal):
    """Lets phones pay an order as often as they have tokens."""

    async def accept(
        self,
        operation: Operation,
        entry: JournalEntry,
        call: Effect,
        *,
        conflicts_with: str | None,
        now_ms: int,
        beside: Sequence[Statement] = (),
        condition: Condition | None = None,  # noqa: ARG002, not asked
    ) -> Acceptance:
        """Asks nothing about the order."""
        return await super().accept(operation, entry, call, conflicts_with=conflicts_with, now_ms=now_ms, beside=beside)


class Claimless(Journal):
    """Forgets what it was asked before."""

    async def find_claim(self, principal: str, claim: str, *, now_ms: int) -> ClaimedOperation | None:  # noqa: ARG002, forgotten
        """Finds nothing."""
        return None

    async def accept(
        self,
        operation: Operation,
        entry: JournalEntry,
        call: Effect,
        *,
        conflicts_with: str | None,
        now_ms: int,
        beside: Sequence[Statement] = (),
        condition: Condition | None = None,
    ) -> Acceptance:
        """Takes a claim that nobody else has."""
        new = msgspec.structs.replace(operation, claim=f"key/{operation.id}")
        return await super().accept(
            new,
            entry,
            call,
            conflicts_with=conflicts_with,
            now_ms=now_ms,
            beside=beside,
            condition=condition,
        )


class Hasty(Journal):
    """Says that the intent is stored, and stores it meanwhile."""

    async def accept(
        self,
        operation: Operation,
        entry: JournalEntry,
        call: Effect,
        *,
        conflicts_with: str | None,
        now_ms: int,
        beside: Sequence[Statement] = (),
        condition: Condition | None = None,
    ) -> Acceptance:
        """Stores in the background."""
        storing = asyncio.ensure_future(
            super().accept(
                operation,
                entry,
                call,
                conflicts_with=conflicts_with,
                now_ms=now_ms,
                beside=beside,
                condition=condition,
            )
        )
        storing.add_done_callback(lambda done: done.cancelled() or done.exception())
        return AcceptedOperation(operation)


class Unjournaled(Journal):
    """Sends once more without saying so first."""

    async def record(
        self, operation: Operation, entry: JournalEntry, answer: Answer | None, *, may_be_paid_again: bool = True
    ) -> Operation:
        """Leaves out the line that announces a second sending."""
        if entry.event is Event.RESENT_TO_RESOLVE:
            return operation
        return await super().record(operation, entry, answer, may_be_paid_again=may_be_paid_again)


class Forgetful(Journal):
    """Keeps the state and not the answer."""

    async def record(
        self,
        operation: Operation,
        entry: JournalEntry,
        answer: Answer | None,  # noqa: ARG002, dropped
        *,
        may_be_paid_again: bool = True,
    ) -> Operation:
        """Stores without it."""
        return await super().record(operation, entry, None, may_be_paid_again=may_be_paid_again)


class Shameless(ResolutionStore):
    """Takes whatever payment is there for its own."""

    async def owned_by_others(self, operation: Operation, payment_ids: Sequence[str]) -> frozenset[str]:  # noqa: ARG002
        """Finds that nobody owns anything."""
        return frozenset()


class Optimist(SimulatedNetwork):
    """Takes silence for a sign that nothing was sent."""

    async def exchange(
        self, request: OutgoingRequest, headers: CallHeaders, *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Says so."""
        outcome = await super().exchange(request, headers, send_by_s=send_by_s)
        if isinstance(outcome, Loss) and outcome.cause is LossCause.TIMEOUT:
            return Loss(is_sent=False, cause=LossCause.CONNECT_TIMEOUT)
        return outcome


class Credulous(GatewayFacade):
    """Believes that a search that finds nothing would find whatever there is."""

    def __init__(self, account: Gateway) -> None:
        super().__init__(account)
        self._looked_for: dict[str | None, object] = {}

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,
        priority: Priority = Priority.RESOLUTION,
        requester: Requester = PAYRELAY,
    ) -> Observation:
        """Takes every control query for answered."""
        if self._looked_for.setdefault(OPERATION.get(), call) != call:
            return PaymentsSeen(payments=(SOMETHING,), evidence=Evidence())
        return await super().inquire(call, until_s=until_s, priority=priority, requester=requester)


class Lavish(RateLimiter):
    """Gives a place again as soon as its call has ended."""

    def _end(self, permit: Permit, *, is_used: bool) -> None:  # noqa: ARG002, it never was
        super()._end(permit, is_used=False)


class Trusting(GatewayFacade):
    """Takes what a notification says for what the gateway shows, of the orders of checkouts."""

    def __init__(self, account: Gateway, inbox: Inbox) -> None:
        super().__init__(account)
        self._inbox = inbox

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,
        priority: Priority = Priority.RESOLUTION,
        requester: Requester = PAYRELAY,
    ) -> Observation:
        """Shows what was told."""
        if not isinstance(call, PaymentsOfOrder) or call.order_id not in OWN_ORDERS:
            return await super().inquire(call, until_s=until_s, priority=priority, requester=requester)
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

    async def put(self, notification: Notification, body: bytes) -> StoredNotification | None:  # noqa: ARG002, it is lost
        """Takes it for new."""
        return StoredNotification(notification=notification, is_new=True)


class Gullible(Inbox):
    """Believes a chargeback whoever has signed it."""

    async def put(self, notification: Notification, body: bytes) -> StoredNotification | None:
        """Takes it for the gateway's."""
        if notification.kind is NotificationKind.CHARGEBACK and notification.authenticity is Authenticity.FORGED:
            at_ms = notification.received_at_ms
            notification = msgspec.structs.replace(
                notification, authenticity=Authenticity.GENUINE, state=NotificationState.RECEIVED, next_at_ms=at_ms
            )
        return await super().put(notification, body)


class Accusing(GatewayFacade):
    """Takes what a notification says of a chargeback for what the gateway's record shows."""

    def __init__(self, account: Gateway, inbox: Inbox) -> None:
        super().__init__(account)
        self._inbox = inbox

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,
        priority: Priority = Priority.RESOLUTION,
        requester: Requester = PAYRELAY,
    ) -> Observation:
        """Shows every payment of an order as charged back of which somebody told that."""
        seen = await super().inquire(call, until_s=until_s, priority=priority, requester=requester)
        if not isinstance(seen, PaymentsSeen):
            return seen
        told = await self._inbox.list(NotificationFilter(), before=None, limit=1_000)
        accused = {each.payment_id for each in told if each.kind is NotificationKind.CHARGEBACK}
        payments = tuple(
            msgspec.structs.replace(each, status=PaymentStatus.CHARGED_BACK) if each.payment_id in accused else each
            for each in seen.payments
        )
        return PaymentsSeen(payments=payments, evidence=seen.evidence)


class Talkative(Chargebacks):
    """Tells of a chargeback as often as it comes."""

    async def of_payment(self, merchant: str, payment_id: str) -> Chargeback | None:  # noqa: ARG002, forgotten
        """Finds none, so that each is looked into anew."""
        return None

    async def keep(self, chargeback: Chargeback, event: OutgoingEvent, *, won: Chargeback | None = None) -> bool:
        """Tells of it although it is kept already."""
        is_new = await super().keep(chargeback, event, won=won)
        if not is_new:
            await self._database.write(outbox.put(event, self._rows.key))
        return is_new


class Recounting(Subscriptions):
    """Counts an installment whenever somebody tells of it."""

    async def note(self, whose: SubscriptionOwner, facts: Sequence[Fact], *, now_ms: int, is_news: bool = True) -> None:
        """Takes one that is known for another one."""
        new = []
        for fact in facts:
            key = (whose.merchant, fact.subscription_id)
            is_repeat = fact.is_paid and fact.payment is not None and await self.is_paid(*key, fact.payment)
            new.append(msgspec.structs.replace(fact, payment=f"{fact.payment}0") if is_repeat else fact)
        await super().note(whose, new, now_ms=now_ms, is_news=is_news)


class Twofold(Checkouts):
    """Tells of a change in a commit of its own."""

    async def change(self, checkout: Checkout, *, has_event: bool, is_paid: bool = False) -> None:
        """Changes first, and tells then."""
        await super().change(checkout, has_event=False, is_paid=is_paid)
        if has_event:
            await self._database.write(outbox.put(event_of(checkout), self.rows.key))


class Remembering(Customers):
    """Charges a customer who was removed: it remembers who may be charged, and the gateway's token."""

    def __init__(self, customers: Customers) -> None:
        vars(self).update(vars(customers))
        self._chargeable: dict[str, Customer] = {}
        self._tokens: dict[str, Secret] = {}

    async def get(self, customer_id: str) -> Customer | None:
        """Gives the customer as it was while it could be charged."""
        customer = await super().get(customer_id)
        if customer is not None and customer.can_be_charged:
            self._chargeable[customer_id] = customer
        return self._chargeable.get(customer_id, customer)

    async def token_of(self, customer_id: str) -> Secret | None:
        """Gives the token that was destroyed."""
        token = await super().token_of(customer_id)
        if token is not None:
            self._tokens[customer_id] = token
        return self._tokens.get(customer_id)


class Believing(Checkouts):
    """Believes what a notification reports of an authorization."""

    async def change(self, checkout: Checkout, *, has_event: bool, is_paid: bool = False) -> None:
        """Takes a reported authorization for one that was made."""
        if checkout.state is CheckoutState.NOTIFIED:
            checkout = msgspec.structs.replace(checkout, state=CheckoutState.COMPLETED)
        await super().change(checkout, has_event=has_event, is_paid=is_paid)


class Undemanding(Checkouts):
    """Takes a plan for one whose first payment is what a hostile customer makes of it."""

    async def of_order(self, merchant: str, order_id: str) -> list[Checkout]:
        """Asks for less first."""
        found = await super().of_order(merchant, order_id)
        plans = CheckoutKind.RECURRING
        return [
            msgspec.structs.replace(each, first_minor=CHEAP_MINOR) if each.kind is plans else each for each in found
        ]

    async def change(self, checkout: Checkout, *, has_event: bool, is_paid: bool = False) -> None:
        """Stores what was asked for."""
        stored = await self.get(checkout.id) or checkout
        asked = msgspec.structs.replace(checkout, first_minor=stored.first_minor)
        await super().change(asked, has_event=has_event, is_paid=is_paid)


class Timeless(GatewayFacade):
    """Takes a plan for the one that was asked for, whenever and however long it charges."""

    def subscriptions_in(self, raw_data: bytes, *, seen_at_ms: int, order_id: str | None = None) -> tuple[Fact, ...]:
        """Leaves out what the gateway shows of its schedule."""
        shown = super().subscriptions_in(raw_data, seen_at_ms=seen_at_ms, order_id=order_id)
        return tuple(msgspec.structs.replace(each, schedule=None) for each in shown)


class Unaware(SignedTexts):
    """Takes a signature for that of what the notification says."""

    async def holders(self, merchant: str, readings: Sequence[SignedText]) -> list[TextHolder]:  # noqa: ARG002, unaware
        """Finds nothing else that it may be of."""
        return []


class Restless(OrderSearches):
    """Searches for an order as often after days as after an hour."""

    async def take(self, merchant: str, order_id: str, occasions: Iterable[str], *, now_ms: int) -> Slot:
        """Gives a slot to whoever asks, and the next one soon."""
        slot = await super().take(merchant, order_id, occasions, now_ms=now_ms)
        soon_ms = min(slot.schedule.next_at_ms, now_ms + 1_800_000)
        return Slot(msgspec.structs.replace(slot.schedule, next_at_ms=soon_ms), is_given=True)


class Ownerless(Owners):
    """Knows nobody who owns anything."""

    async def of_payment(
        self,
        merchant: str,  # noqa: ARG002, not asked
        payment_id: str,  # noqa: ARG002, not asked
        *,
        before_ms: int | None = None,  # noqa: ARG002, not asked
    ) -> frozenset[str]:
        """Finds nobody."""
        return frozenset()

    async def of_authorization(self, merchant: str, token_hash: str) -> frozenset[str]:  # noqa: ARG002, not asked
        """Finds nobody."""
        return frozenset()

    async def of_plan(
        self,
        merchant: str,  # noqa: ARG002, not asked
        subscription_id: str,  # noqa: ARG002, not asked
        *,
        before_ms: int | None = None,  # noqa: ARG002, not asked
    ) -> frozenset[str]:
        """Finds nobody."""
        return frozenset()


async def _own_charge_of_any_amount(relay: Relay, parsed: ParsedRequest, bound: Bound) -> ParsedRequest:
    """Lets a phone choose what it pays, whatever its token says."""
    parsed = await own_charge(relay, parsed, bound)
    if bound.allowance is None:
        return parsed
    allowance = msgspec.structs.replace(bound.allowance, amount_minor=None, is_open=True)
    credential = msgspec.structs.replace(
        parsed.request.credential, bound=msgspec.structs.replace(bound, allowance=allowance)
    )
    return msgspec.structs.replace(parsed, request=msgspec.structs.replace(parsed.request, credential=credential))


def _generous() -> Parts:
    routes = (replace(each, bound=_own_charge_of_any_amount) if each.bound is own_charge else each for each in ROUTES)
    return Parts(routes=tuple(routes))


async def recover_as_unsent(relay: Relay, *, is_sole_owner: bool) -> int:
    """Takes what a dead process was sending for not sent."""
    stranded = await relay.journal.stranded(before_ms=NEVER_MS if is_sole_owner else 0)
    for operation in stranded:
        event = Event.GAVE_UP if operation.state is State.ACCEPTED else Event.NOT_SENT
        changed, entry = advance(
            operation, event, at_ms=relay.clock.now_ms(), retention=relay.settings.retention, evidence=Evidence()
        )
        await relay.journal.record(changed, entry, None)
    return len(stranded)


def with_journal(kind: type[Journal]) -> Parts:
    """Puts another journal in the place of the real one."""
    return Parts(change=lambda relay, _: _with_journal(relay, kind))


def _with_journal(relay: Relay, kind: type[Journal]) -> Relay:
    journal = kind.__new__(kind)
    vars(journal).update(vars(relay.journal))
    return replace(relay, journal=journal)


def _shameless(relay: Relay, database: Database) -> Relay:
    return replace(relay, resolution=Shameless(database, relay.checkouts.rows))


def _credulous(relay: Relay, _: Database) -> Relay:
    return replace(relay, accounts={ACCOUNT: Credulous(relay.accounts[ACCOUNT])})


def _trusting(relay: Relay, _: Database) -> Relay:
    return replace(relay, accounts={ACCOUNT: Trusting(relay.accounts[ACCOUNT], relay.inbox)})


def _dropping(relay: Relay, database: Database) -> Relay:
    return replace(relay, inbox=Dropping(database, SEAL, relay.checkouts.rows))


def _twofold(relay: Relay, database: Database) -> Relay:
    return replace(relay, checkouts=Twofold(database, SEAL, relay.checkouts.rows))


def _remembering(relay: Relay, _: Database) -> Relay:
    # The customer's state is looked at again in the charge's own commit: that is left out too.
    return replace(_with_journal(relay, Uncounting), customers=Remembering(relay.customers))


def _believing(relay: Relay, database: Database) -> Relay:
    return replace(relay, checkouts=Believing(database, SEAL, relay.checkouts.rows))


def _undemanding(relay: Relay, database: Database) -> Relay:
    return replace(relay, checkouts=Undemanding(database, SEAL, relay.checkouts.rows))


def _timeless(relay: Relay, _: Database) -> Relay:
    return replace(relay, accounts={ACCOUNT: Timeless(relay.accounts[ACCOUNT])})


def _unaware(relay: Relay, database: Database) -> Relay:
    return replace(relay, signed_texts=Unaware(database, relay.checkouts.rows, secret=b"u" * 32))


def _gullible(relay: Relay, database: Database) -> Relay:
    return replace(relay, inbox=Gullible(database, SEAL, relay.checkouts.rows))


def _accusing(relay: Relay, _: Database) -> Relay:
    return replace(relay, accounts={ACCOUNT: Accusing(relay.accounts[ACCOUNT], relay.inbox)})


def _talkative(relay: Relay, database: Database) -> Relay:
    return replace(relay, money=replace(relay.money, chargebacks=Talkative(database, relay.checkouts.rows)))


def _recounting(relay: Relay, database: Database) -> Relay:
    return replace(relay, subscriptions=Recounting(database, relay.new_id, relay.checkouts.rows))


def _lavish(relay: Relay, _: Database) -> Relay:
    account = relay.accounts[ACCOUNT]
    assert isinstance(account, PayHere)
    account.rate_limiter = Lavish(account.rate_limiter.limit, relay.clock)
    return relay


def _restless(relay: Relay, _: Database) -> Relay:
    searches = Restless.__new__(Restless)
    vars(searches).update(vars(relay.money.order_searches))
    return replace(relay, money=replace(relay.money, order_searches=searches))


def _ownerless(relay: Relay, database: Database) -> Relay:
    return replace(relay, access=replace(relay.access, owners=Ownerless(database, relay.checkouts.rows)))


MISTAKES: Final[dict[str, Callable[[], Parts]]] = {
    "no guard": lambda: with_journal(Guardless),
    "phones' payments are not counted": lambda: with_journal(Uncounting),
    "a phone's amount is not compared": _generous,
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
    "a signature has one reading": lambda: Parts(change=_unaware),
    "an order is searched for without end": lambda: Parts(change=_restless),
    "nobody owns anything": lambda: Parts(change=_ownerless),
    "a reported authorization is believed": lambda: Parts(change=_believing),
    "a first payment is not compared": lambda: Parts(change=_undemanding),
    "a schedule is not compared": lambda: Parts(change=_timeless),
    "an unsigned chargeback is believed": lambda: Parts(change=_gullible),
    "a chargeback needs no record": lambda: Parts(change=_accusing),
    "a chargeback is told again": lambda: Parts(change=_talkative),
    "an installment is counted twice": lambda: Parts(change=_recounting),
    "a removed customer is charged": lambda: Parts(change=_remembering),
    **MISTAKES_OF_RECOVERY,
    **MISTAKES_OF_CLEARING,
    **MISTAKES_OF_MONEY,
}
