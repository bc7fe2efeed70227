"""Gives checkouts their outcome: by a notification, a status inquiry, the browser's hint, or the end of their time.

Every change goes through ``core.checkouts.checkout.advance``. A browser's hint never completes a checkout.
"""

import asyncio
from contextlib import suppress
from typing import Final

import msgspec

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
from payrelay.core.orders.paid_again import paid_on
from payrelay.core.orders.taken import page_let_go
from payrelay.core.payments.order_search import OURS
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import Outdated, Refusal, StoreError
from payrelay.flows.checkouts.doubted_payments import call_to_unread_plan, doubted_since, is_shown_by_now
from payrelay.flows.checkouts.search_for_checkout import NoObservationError, paid_by, search_for_checkout
from payrelay.flows.order_search import OrderSearch, search_of
from payrelay.flows.relay import Relay
from payrelay.runtime.hooks import FlowPoint

ATTEMPTS_MAX: Final = 5
"""Attempts to apply one event. Each further one means that another task changed the row between read and write."""
INQUIRY_WAIT_S: Final = 3.0
"""How long a request waits for an inquiry. The inquiry then goes on, and the next request sees what it found."""
ENDING_AT_ONCE_MAX: Final = 5
"""Overdue checkouts of one round: each may cost a call to the gateway, and a paid one three."""
LEASE_MS: Final = 240_000
"""Lease of an overdue checkout: longer than an inquiry with its three calls usually takes. A second inquiry beside it
has the same result."""
RETURNED, ENDED, RECOVERED = OURS
"""What happens to a checkout and begins the schedule of its order's searches anew."""
FORGOTTEN_AFTER_MS: Final = 30 * DAY_MS
"""How long the customer's data and the Idempotency-Key are kept after the outcome: as long as an operation's answer."""


async def finish_by_notification(relay: Relay, outcome: CheckoutOutcome) -> Checkout | None:
    """Gives the checkout of an order the outcome of a verified notification; returns the checkout as stored then.

    ``checkout_of`` chooses among several checkouts of the order. Where it chooses none, the checkout that holds the
    order, or else the newest, is returned unchanged. Returns None where no checkout has the order. May be repeated,
    and called in any order. Raises StoreError, and ValueError for an outcome that no notification can report.
    """
    event = outcome.event
    found = await relay.checkouts.of_order(outcome.merchant, outcome.order_id)
    if not found:
        return None
    chosen = checkout_of(found, outcome)
    return found[0] if chosen is None else await _apply_event(relay, chosen, event, outcome.result)


async def finish_checkout(relay: Relay, checkout: Checkout, outcome: CheckoutOutcome) -> Checkout:
    """Gives this checkout, and no other one of its order, its proved outcome; returns it as stored then.

    May be repeated, and called in any order. Raises StoreError, and ValueError for an outcome that nothing can prove.
    """
    return await _apply_event(relay, checkout, outcome.event, outcome.result)


async def note_abandoned(relay: Relay, checkout: Checkout) -> Checkout:
    """Notes that the customer's browser opened the cancel page. Raises StoreError."""
    return await _apply_event(relay, checkout, CheckoutEvent.ABANDONED, None)


async def finish_by_search(relay: Relay, merchant: str, order_id: str, payments: tuple[Payment, ...]) -> None:
    """Completes the checkouts of an order that are paid by what a search of the order showed.

    For checkouts for one payment; a subscription is proved by more. May be repeated. Raises StoreError.
    """
    for checkout in await relay.checkouts.of_order(merchant, order_id):
        if checkout.kind is not CheckoutKind.PAYMENT or checkout.state is CheckoutState.COMPLETED:
            continue
        result = await paid_by(relay, checkout, payments)
        if result is not None:
            with suppress(Outdated):  # the payment belongs to another checkout or operation by now
                await _apply_event(relay, checkout, CheckoutEvent.COMPLETED, result)


async def end_by_search(relay: Relay, search: OrderSearch) -> None:
    """Ends the checkouts of an order that are overdue for long after its search, which is their last inquiry too.

    The end of a checkout needs a slot of its order, and the notifications of the order may take every slot. May be
    repeated. Raises StoreError.
    """
    now_ms = relay.clock.now_ms() - LEASE_MS
    for checkout in await relay.checkouts.of_order(search.account.merchant, search.order_id):
        if checkout.kind in SHOWN and checkout.is_overdue(now_ms) and not await _is_shown_later(relay, checkout):
            with suppress(NoObservationError):  # it stays open, and is leased again
                result = await search_for_checkout(relay, checkout, search)
                finished = checkout if result is None else await complete(relay, checkout, result)
                if finished.is_open:
                    await expire(relay, finished)


async def inquire(relay: Relay, checkout: Checkout, *, occasion: str | None = None) -> Checkout:
    """Returns a checkout after a status inquiry where one is due, which is at most once in each slot of its order.

    ``occasion`` is what has happened to the checkout; the first time, it begins the schedule of the order anew. Waits
    for the inquiry no longer than INQUIRY_WAIT_S, and then returns the checkout as it was. An inquiry that fails
    changes nothing, and none is made while the database is behind. Raises StoreError where the store can't be used.
    """
    now_ms = relay.clock.now_ms()
    if (
        not is_inquired(checkout, now_ms)
        or relay.background.is_leaving
        or await relay.database.lost_commits.is_behind()
    ):
        return checkout
    if not await relay.checkouts.lease_inquiry(checkout.id, now_ms, next_ms=next_inquiry_ms(checkout, now_ms)):
        return checkout
    inquiry = relay.background.start(_inquire_safely(relay, checkout, occasion))
    await asyncio.wait({inquiry}, timeout=INQUIRY_WAIT_S)
    return inquiry.result() if inquiry.done() else checkout


async def end_checkouts(relay: Relay) -> int:
    """Leases overdue checkouts, and ends each in the background after a last inquiry; returns how many it leased.

    Raises StoreError.
    """
    now_ms = relay.clock.now_ms()
    leased = await relay.checkouts.lease_ending(now_ms, leased_until_ms=now_ms + LEASE_MS, limit=ENDING_AT_ONCE_MAX)
    for checkout in leased:
        relay.background.start(_end(relay, checkout))
    return len(leased)


async def end_overdue(relay: Relay, checkout: Checkout) -> Checkout:
    """Ends an overdue checkout that the worker has not ended yet, also after a last inquiry.

    Without the inquiry the order would be free for another checkout although the customer has paid. Waits for the
    inquiry no longer than INQUIRY_WAIT_S. Where that is too short, another process leases the checkout, or the database
    is behind, it is returned as it was. Raises StoreError.
    """
    if await relay.database.lost_commits.is_behind():
        return checkout
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
    """Forgets the customers' data of checkouts that had their outcome FORGOTTEN_AFTER_MS ago. Raises StoreError.

    Returns how many were forgotten.
    """
    return await relay.checkouts.forget(relay.clock.now_ms() - FORGOTTEN_AFTER_MS)


async def expire(relay: Relay, checkout: Checkout) -> Checkout:
    """Expires a checkout. Raises StoreError."""
    return await _apply_event(relay, checkout, CheckoutEvent.EXPIRED, None)


async def withdraw(relay: Relay, checkout: Checkout) -> None:
    """Expires a checkout that was just stored and told to nobody, and frees its key. Raises StoreError.

    One that was changed meanwhile, or whose form a repeat of its request got, stays as it is: a charge finds it.
    """
    expired = advance(checkout, CheckoutEvent.EXPIRED, at_ms=relay.clock.now_ms())
    if expired is not None:
        with relay.hooks.passing(FlowPoint.FINISHING, FlowPoint.FINISHED, checkout.id), suppress(Outdated):
            await relay.checkouts.withdraw(expired)


async def close(relay: Relay, checkout: Checkout, *, looks_first: bool) -> Checkout:
    """Closes a checkout unless it was paid or held; returns it as stored then.

    With ``looks_first`` an open one whose payment the gateway would show is closed after a last inquiry. Waits for the
    inquiry no longer than INQUIRY_WAIT_S: it goes on, and completes the closed checkout where it finds it paid. An
    inquiry that fails changes nothing. Raises StoreError.
    """
    if looks_first and checkout.is_open and checkout.kind in SHOWN and not relay.background.is_leaving:
        inquiry = relay.background.start(_inquire_safely(relay, checkout, ENDED))
        await asyncio.wait({inquiry}, timeout=INQUIRY_WAIT_S)
        checkout = inquiry.result() if inquiry.done() else checkout
    return await _apply_event(relay, checkout, CheckoutEvent.CLOSED, None)


async def end_hold(relay: Relay, checkout: Checkout) -> Checkout:
    """Ends a notified checkout whose hold was voided as a whole or has lapsed; returns it as stored then.

    Any other one stays as it is, and so does every one while the database is behind. Raises StoreError.
    """
    if checkout.state is not CheckoutState.NOTIFIED or await relay.database.lost_commits.is_behind():
        return checkout
    facts = await relay.money.orders.facts_of_order(checkout.merchant, checkout.order_id)
    page = page_let_go(facts, now_ms=relay.clock.now_ms())
    if page is None or page.id != checkout.id:
        return checkout
    return await _apply_event(relay, page, CheckoutEvent.HOLD_ENDED, None)


async def _apply_event(relay: Relay, checkout: Checkout, event: CheckoutEvent, result: Result | None) -> Checkout:
    """Applies an event to a checkout; decides anew where the row has changed meanwhile. Raises StoreError."""
    checkouts = relay.checkouts
    current = checkout
    for _ in range(ATTEMPTS_MAX):
        changed = advance(current, event, at_ms=relay.clock.now_ms(), result=result)
        if changed is None:
            if event is CheckoutEvent.COMPLETED and result is not None:
                await _tell_second_payment(relay, current, result)
            return current
        is_paid = changed.payment_id is not None and changed.payment_id != current.payment_id
        try:
            with relay.hooks.passing(FlowPoint.FINISHING, FlowPoint.FINISHED, changed.id):
                await checkouts.change(changed, has_event=changed.state is not current.state, is_paid=is_paid)
        except Outdated:
            current = await checkouts.get(checkout.id) or current
        else:
            if changed.state is not current.state:
                relay.log.info("checkout_changed", checkout_id=changed.id, state=changed.state)
            return changed
    raise Outdated(f"checkout {checkout.id} was changed by others {ATTEMPTS_MAX} times in a row")


async def _tell_second_payment(relay: Relay, checkout: Checkout, result: Result) -> None:
    """Tells that a page was paid by another payment than it has; a plan's are told where they are noted. StoreError."""
    if checkout.kind is CheckoutKind.RECURRING:
        return
    second = paid_on(msgspec.structs.replace(checkout, payment_id=result.payment_id))
    if second is None or result.payment_id in {None, checkout.payment_id}:
        return
    now_ms = relay.clock.now_ms()
    with relay.hooks.passing(FlowPoint.FINISHING, FlowPoint.FINISHED, checkout.id):
        await relay.money.paid_again.tell(second, at_ms=now_ms)


async def _inquire_safely(relay: Relay, checkout: Checkout, occasion: str | None) -> Checkout:
    try:
        return await _inquire_at_gateway(relay, checkout, occasion)
    except (StoreError, Refusal) as error:
        relay.log.warning("checkout_inquiry_failed", checkout_id=checkout.id, reason=str(error))
        return checkout


async def _inquire_at_gateway(
    relay: Relay, checkout: Checkout, occasion: str | None, *, needs_observation: bool = False
) -> Checkout:
    """Searches the gateway for the result of a checkout, and completes the checkout where it finds one.

    Where the gateway can't be asked, or not before the order's next slot, returns the checkout as it was; raises
    NoObservationError where ``needs_observation``. Raises StoreError, and Refusal for an account that isn't configured
    any more.
    """
    account = relay.account(checkout.account)
    if account.merchant != checkout.merchant:
        return checkout  # the account now belongs to another merchant
    search = search_of(relay, account, checkout, occasion)
    try:
        result = await search_for_checkout(relay, checkout, search)
    except NoObservationError:
        await search.end()
        if needs_observation:
            raise
        return checkout
    finished = checkout if result is None else await complete(relay, checkout, result)
    await search.end()
    return finished


async def complete(relay: Relay, checkout: Checkout, result: Result) -> Checkout:
    """Completes a checkout with what a search proved; returns it as stored then. Raises StoreError."""
    return await _apply_event(relay, checkout, CheckoutEvent.COMPLETED, result)


async def _end(relay: Relay, checkout: Checkout) -> Checkout:
    """Ends a checkout, and returns it as stored then; as it was where it could not be ended."""
    try:
        if await _is_shown_later(relay, checkout):
            return checkout  # the worker leases it again
        if checkout.kind in SHOWN:
            checkout = await _inquire_at_end(relay, checkout)
        return await expire(relay, checkout) if checkout.is_open else checkout
    except (StoreError, Refusal) as error:
        relay.log.warning("checkout_not_ended", checkout_id=checkout.id, reason=str(error))
        return checkout


async def _inquire_at_end(relay: Relay, checkout: Checkout) -> Checkout:
    """Makes the last inquiry about a checkout; raises NoObservationError where the checkout must stay open after it.

    While the gateway is down, the checkout stays open, for INQUIRED_FOR_MS: the worker leases it again every four
    minutes. After that it ends, and an operator is called to what an earlier search may have shown of it. Raises
    StoreError.
    """
    try:
        return await _inquire_at_gateway(relay, checkout, ENDED, needs_observation=True)
    except NoObservationError:
        if relay.clock.now_ms() < checkout.expires_at_ms + INQUIRED_FOR_MS:
            raise
        await call_to_unread_plan(relay, checkout)
        return checkout


async def _is_shown_later(relay: Relay, checkout: Checkout) -> bool:
    """Tells whether the gateway may yet show that the checkout was paid in commits that are lost."""
    loss = await doubted_since(relay, checkout)
    return loss is not None and not is_shown_by_now(relay, checkout, loss)
