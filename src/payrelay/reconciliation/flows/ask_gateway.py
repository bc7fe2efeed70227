"""Asks the gateway for the payments of our own orders and subscriptions of a day, as what nobody waits for.

Rules:

1. A search has the lowest priority, one is made at a time, and a pause follows each. So whatever a customer waits for
   goes first.
2. It may be interrupted and begun again: what was asked for after its payment is not asked for again.
3. A search that shows nothing counts only where a control query shows that searches work. For a subscription nothing
   else can show that, so its list counts where it has a payment.
4. A search that shows a payment without a date or an amount of ours counts as none: nobody could tell whether the
   payment that is missing is that one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date
from enum import Enum, auto
from typing import Final, TypeAlias

import msgspec

from payrelay.core.calls import PaymentsOfOrder, PaymentsOfSubscription, subscription_number
from payrelay.core.payments.payment import NoObservation, Observation, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.payments.proof import Control
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.control_query import shared_control
from payrelay.gateways.gateway import Gateway
from payrelay.gateways.pacing.rate_limiter import Priority
from payrelay.reconciliation.flows.scope import BooksScope
from payrelay.reconciliation.rules.entries import (
    TOLERANCE_MS,
    UNPAID,
    BooksEntry,
    LineState,
    Movement,
    Source,
    StatementLine,
)
from payrelay.reconciliation.store.stores import ReconciliationStores

PAUSE_S: Final = 1.0
"""After each search: at 20 calls in 10 seconds it takes a twentieth of the budget beside the searches' own time."""
FAILURES_MAX: Final = 3
"""Searches in a row that may fail; then the gateway, or its budget, is left alone."""

STATES: Final = {
    PaymentStatus.RECEIVED: LineState.TAKEN,
    PaymentStatus.AUTHORIZED: LineState.AUTHORIZED,
    PaymentStatus.REFUND_REQUESTED: LineState.REFUND_UNDER_WAY,
    PaymentStatus.REFUND_PROCESSING: LineState.REFUND_UNDER_WAY,
    PaymentStatus.REFUNDED: LineState.REFUNDED,
    PaymentStatus.CHARGED_BACK: LineState.CHARGED_BACK,
    PaymentStatus.OTHER: LineState.OTHER,
}
"""What each status of the gateway's means in a comparison."""


_Question: TypeAlias = PaymentsOfOrder | PaymentsOfSubscription


class _Came(Enum):
    """What came of a search."""

    SHOWN = auto()
    FAILED = auto()
    UNPROVED = auto()
    UNREADABLE = auto()


class AskedOrders(msgspec.Struct, kw_only=True):
    """How far the searches of a day have come.

    Attributes:
        asked: orders and subscriptions that were searched for now, so that it counts.
        known: those that had been before.
        failed: those that couldn't be.
        unproved: those that showed nothing, while nothing showed that the search works.
        unreadable: those that showed a payment whose amount or date can't be read.
        is_ended_early: the gateway gave no answer any more.
    """

    asked: int = 0
    known: int = 0
    failed: int = 0
    unproved: int = 0
    unreadable: int = 0
    is_ended_early: bool = False


async def ask_gateway(
    relay: Relay,
    scope: BooksScope,
    day: date,
    *,
    pause: Callable[[float], Awaitable[None]],
    progress: Callable[[AskedOrders], None] = lambda _: None,
) -> AskedOrders:
    """Searches for every order and subscription with a payment in our books of a day, and stores what is shown.

    Raises Refusal (conflict) for a day that isn't over, as a search would show nothing of what comes; StoreError.
    """
    if relay.clock.now_ms() < scope.zone.ends_ms(day) + TOLERANCE_MS:
        raise Refusal(Code.CONFLICT, f"{day} is not over in {scope.zone.name}, with a quarter of an hour for the rest")
    gateway, asked, in_a_row = relay.account(scope.account), AskedOrders(), 0
    async for questions in _questions(relay, scope, day):
        searched = await relay.find(ReconciliationStores).lines.searches(scope.merchant, questions)
        for name in sorted(questions):
            if searched.get(name, -1) > scope.zone.ends_ms(day) + TOLERANCE_MS:
                asked.known += 1
                continue
            came = await _search(relay, scope, gateway, name, questions[name])
            in_a_row = in_a_row + 1 if came is _Came.FAILED else 0
            asked.asked += came is _Came.SHOWN
            asked.failed += came is _Came.FAILED
            asked.unproved += came is _Came.UNPROVED
            asked.unreadable += came is _Came.UNREADABLE
            progress(asked)
            if in_a_row >= FAILURES_MAX:
                asked.is_ended_early = True
                return asked
            await pause(PAUSE_S)
    return asked


async def _questions(relay: Relay, scope: BooksScope, day: date) -> AsyncIterator[dict[str, _Question]]:
    """Gives, in pages, what shows the payments of a day that took effect, or still may, by its name in searches."""
    begins_ms, ends_ms = scope.zone.begins_ms(day), scope.zone.ends_ms(day)
    async for page in relay.find(ReconciliationStores).books.between(scope.merchant, begins_ms, ends_ms):
        yield {
            name: question
            for each in page
            if _is_of(each, scope, day)
            and (name := each.shown_by) is not None
            and (question := _question(each)) is not None
        }


def _question(entry: BooksEntry) -> _Question | None:
    if entry.subscription_id is None:
        return None if entry.order_id is None else PaymentsOfOrder(order_id=entry.order_id)
    number = subscription_number(entry.subscription_id)
    return None if number is None else PaymentsOfSubscription(subscription_id=number)


def _is_of(entry: BooksEntry, scope: BooksScope, day: date) -> bool:
    is_near = scope.zone.first_day(entry) <= day <= scope.zone.last_day(entry)
    return entry.movement is Movement.PAYMENT and entry.standing not in UNPAID and is_near


async def _search(relay: Relay, scope: BooksScope, gateway: Gateway, name: str, question: _Question) -> _Came:
    """Makes one search, and stores what it showed."""
    asked_ms = relay.clock.now_ms()

    async def inquire(asked: _Question) -> Observation:
        until_s = relay.clock.boot_s() + gateway.queue_s
        return await gateway.inquire(asked, until_s=until_s, priority=Priority.READ)

    seen = await inquire(question)
    if isinstance(seen, NoObservation):
        return _Came.FAILED
    payments = seen.payments if isinstance(seen, PaymentsSeen) else ()
    if not payments:
        if isinstance(question, PaymentsOfSubscription):
            return _Came.UNPROVED
        control = await shared_control(relay, scope.merchant, question.order_id, inquire)
        if control is not Control.FOUND:
            return _Came.UNPROVED if control is Control.NONE_KNOWN else _Came.FAILED
    lines = [each for payment in payments if (each := _line(payment, scope, asked_ms)) is not None]
    if lines:
        await relay.find(ReconciliationStores).lines.add(scope.merchant, lines)
    if len(lines) < len(payments):
        return _Came.UNREADABLE
    # Stored last: where the process ends in between, it is asked for again.
    await relay.find(ReconciliationStores).lines.put_search(scope.merchant, name, asked_ms)
    return _Came.SHOWN


def _line(payment: Payment, scope: BooksScope, asked_ms: int) -> StatementLine | None:
    """Makes a line of a payment that a search showed; None where its amount or its date can't be read."""
    if payment.amount_minor is None or payment.at_ms is None:
        return None
    return StatementLine(
        movement=Movement.PAYMENT,
        identity=payment.payment_id,
        currency=payment.currency,
        amount_minor=payment.amount_minor,
        day=scope.zone.day(payment.at_ms),
        state=STATES[payment.status],
        at_ms=payment.at_ms,
        order_id=payment.order_id,
        payment_id=payment.payment_id,
        source=Source.SEARCH,
        place="a search at the gateway",
        known_at_ms=asked_ms,
    )
