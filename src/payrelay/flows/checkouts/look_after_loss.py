"""Looks, before a customer is sent to pay, whether a checkout from before a loss of commits was paid within it.

Rules:

1. No look counts that was made before the gateway had time to show the lost window.
2. A look is a search of the order in a slot of its own, and a control query beside it. What it finds is settled by the
   rules for every search. What they don't settle is for an operator, and the checkout stays in doubt.
3. A plan that begins later has no payment to show. There the list of subscriptions must show others, and none of the
   order.
4. The gateway shows no authorization and no approval. Of these a look finds only what was captured or charged.
5. An acknowledgement ends no doubt: a principal knows what it has sent, and not what its customers did.
"""

import asyncio
from functools import partial

from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.checkouts.checkout import SHOWN, Checkout
from payrelay.core.database.incarnations import Incarnation
from payrelay.core.payments.payment import NoObservation, PaymentsSeen
from payrelay.core.payments.proof import Control
from payrelay.errors import Refusal, StoreError
from payrelay.flows.checkouts.doubted_payments import (
    doubted_since,
    is_shown_by_now,
    is_unexplained,
)
from payrelay.flows.checkouts.finish_checkout import INQUIRY_WAIT_S, RECOVERED, complete
from payrelay.flows.checkouts.search_for_checkout import NoObservationError, search_for_checkout, shows_no_plan
from payrelay.flows.order_search import OrderSearch, search_of
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.control_query import shared_control


async def look_after_loss(relay: Relay, checkout: Checkout) -> Checkout:
    """Looks at the gateway where a checkout is in doubt and a look is due; returns the checkout as stored then.

    Waits for the look no longer than INQUIRY_WAIT_S; the next request sees what it found. A look that fails changes
    nothing. May be repeated: the slots of the order keep it from asking too often. Raises StoreError.
    """
    loss = await doubted_since(relay, checkout)
    if loss is None or relay.background.is_leaving or await relay.database.lost_commits.is_behind():
        return checkout
    if not is_shown_by_now(relay, checkout, loss):
        return checkout
    look = relay.background.start(_look_safely(relay, checkout, loss))
    await asyncio.wait({look}, timeout=INQUIRY_WAIT_S)
    return look.result() if look.done() else checkout


async def _look_safely(relay: Relay, checkout: Checkout, loss: Incarnation) -> Checkout:
    try:
        return await _look(relay, checkout, loss)
    except (StoreError, Refusal) as error:
        relay.log.warning("checkout_look_failed", checkout_id=checkout.id, reason=str(error))
        return checkout


async def _look(relay: Relay, checkout: Checkout, loss: Incarnation) -> Checkout:
    account = relay.account(checkout.account)
    if account.merchant != checkout.merchant:
        return checkout  # the account now belongs to another merchant
    search = search_of(relay, account, checkout, f"{RECOVERED}-{loss.number}")
    if not await search.has_slot():
        return checkout
    try:
        return await _judged(relay, checkout, search, loss)
    except NoObservationError:
        return checkout
    finally:
        await search.end()


async def _judged(relay: Relay, checkout: Checkout, search: OrderSearch, loss: Incarnation) -> Checkout:
    """Settles what the gateway shows, and ends the doubt where it shows nothing. Raises NoObservationError."""
    seen = await search.inquire(PaymentsOfOrder(order_id=checkout.order_id), for_id=checkout.id)
    if isinstance(seen, NoObservation):
        return checkout
    payments = seen.payments if isinstance(seen, PaymentsSeen) else ()
    if checkout.kind in SHOWN:
        result = await search_for_checkout(relay, checkout, search)
        if result is not None:
            return await complete(relay, checkout, result)
    if await is_unexplained(relay, checkout, payments):
        return checkout
    if await shows_no_plan(relay, checkout, search) and await _is_search_working(relay, checkout, search):
        relay.database.lost_commits.cleared_checkouts.add(checkout.id, loss.number)
    return checkout


async def _is_search_working(relay: Relay, checkout: Checkout, search: OrderSearch) -> bool:
    inquire = partial(
        search.account.inquire,
        until_s=relay.clock.boot_s() + search.wait_s,
        priority=search.priority,
        requester=search.requester,
    )
    return await shared_control(relay, checkout.merchant, checkout.order_id, inquire) is Control.FOUND
