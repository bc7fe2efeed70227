"""Brings checkouts to their end: by a notification, by what the gateway shows, by the browser's hint, by time.

All of it goes through ``core.checkouts.checkout.advance``. What the browser says completes nothing.
"""

import asyncio
from contextlib import suppress
from typing import Final

from payrelay.core.checkouts.checkout import (
    INQUIRED_FOR_MS,
    SHOWN,
    Checkout,
    CheckoutEvent,
    CheckoutKind,
    CheckoutOutcome,
    CheckoutState,
    Result,
    advance,
    checkout_of,
    is_inquired,
    next_inquiry_ms,
)
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import Outdated, Refusal, StoreError
from payrelay.flows.checkouts.search_for_checkout import NoObservationError, search_for
from payrelay.flows.relay import Relay
from payrelay.runtime.hooks import FlowPoint

DECISIONS_MAX: Final = 5
"""Each further one needs somebody else to have changed the row between our reading and our writing."""
INQUIRY_WAIT_S: Final = 3.0
"""How long who asks waits for a look; it goes on, and whoever asks next has what it found."""
ENDING_AT_ONCE_MAX: Final = 5
"""Checkouts of one round whose time has ended: each may cost a call to the gateway, and one that was paid three."""
LEASE_MS: Final = 240_000
"""How long a process keeps what it took to end: longer than a look usually lasts, with its three questions. A second
look beside it comes to the same."""
FORGOTTEN_AFTER_MS: Final = 30 * DAY_MS
"""How long the customer's data and the Idempotency-Key are kept after the outcome: as long as an operation's answer."""


async def finish_by_notification(relay: Relay, content: CheckoutOutcome) -> Checkout | None:
    """Brings the checkout of an order to what verified news say, and gives it as it stands then.

    None where no checkout has that order. Of several, ``checkout_of`` chooses one; where none fits, the one
    that holds the order, or the newest, is given as it was, unchanged. It may be repeated, and come in any order.
    Raises StoreError, and ValueError for an outcome that nobody can tell of.
    """
    event = content.event
    found = await relay.checkouts.of_order(content.merchant, content.order_id)
    if not found:
        return None
    chosen = checkout_of(found, content)
    return found[0] if chosen is None else await _bring(relay, chosen, event, content.result)


async def finish_with(relay: Relay, checkout: Checkout, content: CheckoutOutcome) -> Checkout:
    """Brings a checkout to what was proved of it, and of no other one of its order; gives it as it stands then.

    May be repeated, and come in any order. Raises StoreError, and ValueError for an outcome that nobody can tell of.
    """
    return await _bring(relay, checkout, content.event, content.result)


async def note_abandoned(relay: Relay, checkout: Checkout) -> Checkout:
    """Notes that the customer's browser came to the page for those who cancel. Raises StoreError."""
    return await _bring(relay, checkout, CheckoutEvent.ABANDONED, None)


async def inquire(relay: Relay, checkout: Checkout) -> Checkout:
    """Gives a checkout as we know it: the gateway is asked where that may tell more, and at most every few seconds.

    Waits for that no longer than INQUIRY_WAIT_S. Raises StoreError where the store can't be used; whatever keeps the
    gateway from being seen changes nothing.
    """
    now_ms = relay.clock.now_ms()
    if not is_inquired(checkout, now_ms) or relay.background.is_leaving:
        return checkout
    if not await relay.checkouts.lease_inquiry(checkout.id, now_ms, next_ms=next_inquiry_ms(checkout, now_ms)):
        return checkout
    looking = relay.background.start(_safely_inquired(relay, checkout))
    await asyncio.wait({looking}, timeout=INQUIRY_WAIT_S)
    return looking.result() if looking.done() else checkout


async def end_checkouts(relay: Relay) -> int:
    """Ends checkouts whose time is over; what can be seen of them is looked for before. Gives how many were taken.

    Raises StoreError.
    """
    now_ms = relay.clock.now_ms()
    taken = await relay.checkouts.lease_ending(now_ms, leased_until_ms=now_ms + LEASE_MS, limit=ENDING_AT_ONCE_MAX)
    for checkout in taken:
        relay.background.start(_end(relay, checkout))
    return len(taken)


async def end_overdue(relay: Relay, checkout: Checkout) -> Checkout:
    """Ends a checkout whose time is over before the worker came to it, by the same rule.

    Otherwise its order would be free for another one while the customer has paid. Waits for a look no longer than
    INQUIRY_WAIT_S; until that is over, or where somebody else is at it, the checkout is given as it was.
    Raises StoreError.
    """
    if checkout.kind not in SHOWN:
        return await expire(relay, checkout)
    now_ms = relay.clock.now_ms()
    if relay.background.is_leaving:
        return checkout
    if not await relay.checkouts.lease_overdue(checkout.id, now_ms, leased_until_ms=now_ms + LEASE_MS):
        return checkout
    ending = relay.background.start(_end(relay, checkout))
    await asyncio.wait({ending}, timeout=INQUIRY_WAIT_S)
    return ending.result() if ending.done() else checkout


async def forget_checkouts(relay: Relay) -> int:
    """Forgets the customers' data of checkouts that have long had their outcome. Raises StoreError."""
    return await relay.checkouts.forget(relay.clock.now_ms() - FORGOTTEN_AFTER_MS)


async def expire(relay: Relay, checkout: Checkout) -> Checkout:
    """Says of a checkout that its time has ended. Raises StoreError."""
    return await _bring(relay, checkout, CheckoutEvent.EXPIRED, None)


async def _bring(relay: Relay, checkout: Checkout, event: CheckoutEvent, result: Result | None) -> Checkout:
    """Takes a checkout through an event; decides anew where somebody else was quicker. Raises StoreError."""
    checkouts = relay.checkouts
    current = checkout
    for _ in range(DECISIONS_MAX):
        changed = advance(current, event, at_ms=relay.clock.now_ms(), result=result)
        if changed is None:
            _tell_of_another_payment(relay, current, event, result)
            return current
        relay.hooks.passed(FlowPoint.FINISHING, changed.id)
        try:
            is_paid = changed.payment_id is not None and changed.payment_id != current.payment_id
            await checkouts.change(changed, has_event=changed.state is not current.state, is_paid=is_paid)
        except Outdated:
            current = await checkouts.get(checkout.id) or current
        else:
            relay.hooks.passed(FlowPoint.FINISHED, changed.id)
            if changed.state is not current.state:
                relay.log.info("checkout_changed", checkout_id=changed.id, state=changed.state)
                await _tell_of_another_checkout(relay, changed)
            return changed
    raise Outdated(f"checkout {checkout.id} was changed by others {DECISIONS_MAX} times in a row")


def _tell_of_another_payment(relay: Relay, checkout: Checkout, event: CheckoutEvent, result: Result | None) -> None:
    """Tells the log that an order was paid twice; installments of a plan are many payments of one order."""
    paid = None if result is None else result.payment_id
    is_other = paid is not None and checkout.payment_id is not None and paid != checkout.payment_id
    if is_other and event is CheckoutEvent.COMPLETED and checkout.kind is not CheckoutKind.RECURRING:
        relay.log.error("checkout_paid_twice", checkout_id=checkout.id, payment_id=paid)


async def _tell_of_another_checkout(relay: Relay, checkout: Checkout) -> None:
    """Tells the log that an order was paid in two checkouts."""
    if checkout.state is not CheckoutState.COMPLETED:
        return
    with suppress(StoreError):  # what is stored is stored
        others = await relay.checkouts.of_order(checkout.merchant, checkout.order_id)
        if any(other.id != checkout.id and other.state is CheckoutState.COMPLETED for other in others):
            relay.log.error("checkout_paid_twice", checkout_id=checkout.id, payment_id=checkout.payment_id)


async def _safely_inquired(relay: Relay, checkout: Checkout) -> Checkout:
    try:
        return await _inquired(relay, checkout)
    except (StoreError, Refusal) as error:
        relay.log.warning("checkout_not_looked_for", checkout_id=checkout.id, reason=str(error))
        return checkout


async def _inquired(relay: Relay, checkout: Checkout, *, is_last: bool = False) -> Checkout:
    """Searches the gateway, and completes the checkout where what came of it is there.

    Raises Refusal where it is the last look and the gateway can't be seen.
    """
    try:
        result = await search_for(relay, checkout)
    except NoObservationError:
        if is_last:
            raise
        return checkout
    if result is None:
        return checkout
    completed = await _bring(relay, checkout, CheckoutEvent.COMPLETED, result)
    if None not in (plans := {completed.subscription_id, result.subscription_id}) and len(plans) > 1:
        relay.log.error("checkout_paid_twice", checkout_id=checkout.id, payment_id=result.payment_id)
    return completed


async def _end(relay: Relay, checkout: Checkout) -> Checkout:
    """Ends a checkout, and gives it as it stands then; as it was where it could not be ended."""
    try:
        # A gateway that is down is asked again every four minutes: an end without a look would be one without a reason.
        is_patient = relay.clock.now_ms() < checkout.expires_at_ms + INQUIRED_FOR_MS
        seen = await _inquired(relay, checkout, is_last=is_patient) if checkout.kind in SHOWN else checkout
        return await expire(relay, seen) if seen.is_open else seen
    except (StoreError, Refusal) as error:
        relay.log.warning("checkout_not_ended", checkout_id=checkout.id, reason=str(error))
        return checkout
