"""Asks the gateway for the payments of our own orders of a day, one search each, as what nobody waits for.

A search has the lowest priority, one is made at a time, and a pause follows each. So whatever a customer waits for goes
first. It may be interrupted and begun again: an order that was asked for after its payment is not asked for again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date
from typing import Final

import msgspec

from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.payments.payment import NoObservation, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.reconciliation.entries import (
    TOLERANCE_MS,
    UNPAID,
    BooksEntry,
    LineState,
    Movement,
    Source,
    StatementLine,
)
from payrelay.errors import Code, Refusal
from payrelay.flows.reconciliation.scope import BooksScope
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import Gateway
from payrelay.gateways.pacing.rate_limiter import Priority

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


class AskedOrders(msgspec.Struct, kw_only=True):
    """How far the searches of a day have come: orders that were searched for now, before, and in vain."""

    asked: int = 0
    known: int = 0
    failed: int = 0
    is_ended_early: bool = False


async def ask_gateway(
    relay: Relay,
    scope: BooksScope,
    day: date,
    *,
    pause: Callable[[float], Awaitable[None]],
    progress: Callable[[AskedOrders], None] = lambda _: None,
) -> AskedOrders:
    """Searches for every order of a day that has a payment in our books, and stores what the gateway shows.

    Raises Refusal (conflict) for a day that isn't over, as a search would show nothing of what comes; StoreError.
    """
    if relay.clock.now_ms() < scope.zone.ends_ms(day) + TOLERANCE_MS:
        raise Refusal(Code.CONFLICT, f"{day} is not over in {scope.zone.name}, with a quarter of an hour for the rest")
    gateway, asked, in_a_row = relay.account(scope.account), AskedOrders(), 0
    async for orders in _orders(relay, scope, day):
        searched = await relay.reconciliation.lines.searches(scope.merchant, orders)
        for order_id in sorted(orders):
            if searched.get(order_id, -1) > scope.zone.ends_ms(day) + TOLERANCE_MS:
                asked.known += 1
                continue
            is_shown = await _search(relay, scope, gateway, order_id)
            in_a_row = 0 if is_shown else in_a_row + 1
            asked.asked, asked.failed = asked.asked + is_shown, asked.failed + (not is_shown)
            progress(asked)
            if in_a_row >= FAILURES_MAX:
                asked.is_ended_early = True
                return asked
            await pause(PAUSE_S)
    return asked


async def _orders(relay: Relay, scope: BooksScope, day: date) -> AsyncIterator[set[str]]:
    """Gives, in pages, the orders that have a payment on a day which took effect, or still may."""
    begins_ms, ends_ms = scope.zone.begins_ms(day), scope.zone.ends_ms(day)
    async for page in relay.reconciliation.books.between(scope.merchant, begins_ms, ends_ms):
        yield {each.order_id for each in page if each.order_id is not None and _is_of(each, scope, day)}


def _is_of(entry: BooksEntry, scope: BooksScope, day: date) -> bool:
    is_near = scope.zone.first_day(entry) <= day <= scope.zone.last_day(entry)
    return entry.movement is Movement.PAYMENT and entry.standing not in UNPAID and is_near


async def _search(relay: Relay, scope: BooksScope, gateway: Gateway, order_id: str) -> bool:
    """Makes one search, and stores what it showed; False where the gateway couldn't be asked."""
    asked_ms = relay.clock.now_ms()
    until_s = relay.clock.boot_s() + gateway.queue_s
    seen = await gateway.inquire(PaymentsOfOrder(order_id=order_id), until_s=until_s, priority=Priority.READ)
    if isinstance(seen, NoObservation):
        return False
    payments = seen.payments if isinstance(seen, PaymentsSeen) else ()
    lines = [each for payment in payments if (each := _line(payment, scope, asked_ms)) is not None]
    if lines:
        await relay.reconciliation.lines.add(scope.merchant, lines)
    # Stored last: where the process ends in between, the order is asked for again.
    await relay.reconciliation.lines.put_search(scope.merchant, order_id, asked_ms)
    return True


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
