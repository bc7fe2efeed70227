"""Mistakes about an order's money, its ways of being paid and its repeats, to see that the simulation notices them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import msgspec
from tests.simulation.process import ACCOUNT, Parts

from payrelay.core.access.ownership import OrderOwners
from payrelay.core.answers import Answer
from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.paid_again import made_by
from payrelay.core.orders.received_again import SECOND_LOOK_MS
from payrelay.core.payments.operation import JournalEntry, Kind, Operation, State
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.flows.relay import Relay
from payrelay.gateways.pacing.rate_limiter import PAYRELAY, Priority
from payrelay.store.access.owners import Owners
from payrelay.store.digests.rows import RowVerifier
from payrelay.store.engine.database import Database, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.orders.facts import AGAIN, Orders
from payrelay.store.payments.journal import ClaimedOperation, EqualRequest, GuardedOperation, Journal
from payrelay.store.payments.paid_again import tell_if_paid_again
from payrelay.store.statements.gateways.readings import NOTE_RECEIVED, RETURNS_SEEN

_FORGET_ALERTS: Final = query("DELETE FROM row_alerts")
_FORGET_LOOK: Final = query(
    "DELETE FROM returns_seen WHERE merchant = $1 AND payment_id = $2 AND status = $3 RETURNING seen_at_ms"
)


class Miscounting(Orders):
    """Reads an order's money as ``bend`` makes it."""

    def bend(self, facts: OrderFacts) -> OrderFacts:
        """Gives the facts as they are."""
        return facts

    def _facts(
        self, merchant: str, order_id: str | None, payment_id: str | None, verifier: RowVerifier, *, stored: int = 0
    ) -> Unit[OrderFacts]:
        return self.bend((yield from super()._facts(merchant, order_id, payment_id, verifier, stored=stored)))


class Optimistic(Miscounting):
    """Counts a declined charge as paid."""

    def bend(self, facts: OrderFacts) -> OrderFacts:
        """Takes it for one that succeeded."""
        return _with_operations(facts, [_as_paid(each) for each in facts.operations])


class Partless(Miscounting):
    """Forgets the refunds of parts."""

    def bend(self, facts: OrderFacts) -> OrderFacts:
        """Leaves them out."""
        kept = [each for each in facts.operations if each.kind is not Kind.REFUND or each.amount_minor is None]
        return _with_operations(facts, kept)


class Unpunished(Miscounting):
    """Knows of no chargeback, and so refunds what a bank has taken back."""

    def bend(self, facts: OrderFacts) -> OrderFacts:
        """Takes a payment that was charged back for one that was received."""
        seen = [
            msgspec.structs.replace(each, status=PaymentStatus.RECEIVED)
            if each.status is PaymentStatus.CHARGED_BACK
            else each
            for each in facts.seen
        ]
        returned = [each for each in facts.returned if each.status is not PaymentStatus.CHARGED_BACK]
        return msgspec.structs.replace(facts, chargebacks=(), told=(), seen=tuple(seen), returned=tuple(returned))


class Curious(Orders):
    """Asks the gateway for each order that it reads."""

    def __init__(self, relay: Relay) -> None:
        super().__init__(relay.checkouts.rows)
        self._relay = relay

    async def facts_of_order(self, merchant: str, order_id: str) -> OrderFacts:
        """Asks first."""
        until_s = self._relay.clock.boot_s() + 10.0
        await self._relay.account(ACCOUNT).inquire(
            PaymentsOfOrder(order_id=order_id), until_s=until_s, priority=Priority.READ, requester=PAYRELAY
        )
        return await super().facts_of_order(merchant, order_id)


class Keyless(Journal):
    """Doesn't know an equal request that had a key."""

    async def newest_equal(self, equal: EqualRequest, *, since_ms: int, but_for: str) -> ClaimedOperation | None:  # noqa: ARG002
        """Finds none."""
        return None


class Pageless(Journal):
    """Sees no charge of an order of which a page is to be opened."""

    async def find_guard(self, merchant: str, guard: str) -> GuardedOperation | None:
        """Finds none of an order."""
        return None if guard.startswith("order/") else await super().find_guard(merchant, guard)


class Hurried(Owners):
    """Looks for pages of an order once, before a charge of it is stored, and not again."""

    async def of_order(
        self, merchant: str, order_id: str, *, before_ms: int | None = None, but_for: str = ""
    ) -> OrderOwners:
        """Finds no pages the second time."""
        owners = await super().of_order(merchant, order_id, before_ms=before_ms, but_for=but_for)
        return msgspec.structs.replace(owners, open_pages=()) if but_for else owners


class Silent(Journal):
    """Tells nobody that an order was paid again by a charge."""

    async def record(
        self,
        operation: Operation,
        entry: JournalEntry,
        answer: Answer | None,
        *,
        may_be_paid_again: bool = True,  # noqa: ARG002, taken for False
    ) -> Operation:
        """Takes the payment for the only one."""
        return await super().record(operation, entry, answer, may_be_paid_again=False)


class Insistent(Journal):
    """Tells that an order was paid again as often as the payment is looked at."""

    async def record(
        self, operation: Operation, entry: JournalEntry, answer: Answer | None, *, may_be_paid_again: bool = True
    ) -> Operation:
        """Tells it twice."""
        stored = await super().record(operation, entry, answer, may_be_paid_again=may_be_paid_again)
        payment = made_by(stored)
        if payment is not None and stored.state is State.SUCCEEDED and may_be_paid_again:
            await self._database.write(self._once_more(stored, entry.at_ms + 1))
        return stored

    def _once_more(self, operation: Operation, at_ms: int) -> Unit[None]:
        payment = made_by(operation)
        assert payment is not None
        yield Statement(_FORGET_ALERTS, ())
        yield from tell_if_paid_again(payment, at_ms=at_ms, key=self._consequences._rows)


class Rash(ReadingStore):
    """Believes one look at a payment that went back, as though another one had confirmed it."""

    async def _note_received_again(self, merchant: str, shown: list[Payment]) -> None:
        """Looks a second time at once, and dates the first look back."""
        await super()._note_received_again(merchant, shown)
        for each in shown:
            await self._database.write(self._dated_back(merchant, each.payment_id))
        await super()._note_received_again(merchant, shown)

    def _dated_back(self, merchant: str, payment_id: str) -> Unit[None]:
        for (seen_at_ms,) in (yield Statement(_FORGET_LOOK, (merchant, payment_id, AGAIN))):
            row = (merchant, payment_id, AGAIN, int(str(seen_at_ms)) - SECOND_LOOK_MS)
            yield Statement(NOTE_RECEIVED, (*row, self._key.of(RETURNS_SEEN, row)))


def _with_operations(facts: OrderFacts, operations: Sequence[Operation]) -> OrderFacts:
    return msgspec.structs.replace(facts, operations=tuple(operations))


def _as_paid(operation: Operation) -> Operation:
    is_declined = operation.kind is Kind.CHARGE and operation.state is State.DECLINED
    return msgspec.structs.replace(operation, state=State.SUCCEEDED) if is_declined else operation


def _with_orders(kind: type[Orders]) -> Parts:
    return Parts(change=lambda relay, _: replace(relay, money=replace(relay.money, orders=kind(relay.checkouts.rows))))


def _with_journal(kind: type[Journal]) -> Parts:
    def change(relay: Relay, _: Database) -> Relay:
        journal = kind.__new__(kind)
        vars(journal).update(vars(relay.journal))
        return replace(relay, journal=journal)

    return Parts(change=change)


def _rash(relay: Relay, _: Database) -> Relay:
    store = Rash.__new__(Rash)
    cache = relay.read_cache
    vars(store).update(vars(cache._last))
    cache._last = cache._behind._last = store
    return relay


def _hurried(relay: Relay, database: Database) -> Relay:
    return replace(relay, access=replace(relay.access, owners=Hurried(database, relay.checkouts.rows)))


MISTAKES_OF_MONEY: Final[dict[str, Callable[[], Parts]]] = {
    "a declined charge is counted": lambda: _with_orders(Optimistic),
    "a refund of a part is forgotten": lambda: _with_orders(Partless),
    "what was charged back is refunded": lambda: _with_orders(Unpunished),
    "one look is believed": lambda: Parts(change=_rash),
    "a balance asks the gateway": lambda: Parts(
        change=lambda relay, _: replace(relay, money=replace(relay.money, orders=Curious(relay)))
    ),
    "a repeat without its key is new": lambda: _with_journal(Keyless),
    "a page is opened beside a charge": lambda: _with_journal(Pageless),
    "no second look for pages": lambda: Parts(change=_hurried),
    "paid again, and nobody is told": lambda: _with_journal(Silent),
    "paid again is told twice": lambda: _with_journal(Insistent),
}
