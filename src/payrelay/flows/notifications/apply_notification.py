"""Does what follows from a genuine notification: to the order's operation, its checkout, its subscription.

Rules:

1. Only five fields are signed. Money counts when the gateway's own records show exactly that payment; a token, which no
   record shows, counts once for an order that is waiting for one, and a second one is for a person.
2. An operation is changed by nothing but ``apply``, with the notification as evidence.
3. That something failed, was cancelled or is pending is told on, and disproves nothing.
4. Each step may be done again: the process may have died after it.
"""

from dataclasses import replace
from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutState, addressee
from payrelay.core.notifications.notification import NewsKind, NotifiedStatus, Why
from payrelay.core.payments.operation import PROBED, TAKING, Operation, OperationFilter
from payrelay.core.secret import secret_hash
from payrelay.flows.checkouts.finish_checkout import finish_by_notification
from payrelay.flows.notifications.apply_to_checkout import OF_FIRST, apply_to_checkout
from payrelay.flows.notifications.apply_to_operations import apply_to_operations
from payrelay.flows.notifications.context import GOOD, Arrival, shown_installment
from payrelay.flows.notifications.keep_chargeback import keep_chargeback
from payrelay.flows.notifications.note_subscription import note_news
from payrelay.flows.resolution.resolve import settle_one

OPERATIONS_MAX: Final = 50
"""Operations of one order, or of one subscription, that are looked through: the newest."""
_HINTS: Final = {NotifiedStatus.CANCELLED: CheckoutState.CANCELLED, NotifiedStatus.FAILED: CheckoutState.FAILED}


async def apply_news(arrival: Arrival) -> Why:
    """Does what follows, and tells why the notification then stands where it stands. May be repeated.

    Raises StoreError; Outdated where what it is about was changed meanwhile, and it is to be decided anew.
    """
    news = arrival.news
    if news.kind is NewsKind.CHARGEBACK:
        return await keep_chargeback(arrival)
    operations = await _operations(arrival)
    checkouts = await arrival.relay.checkouts.of_order(arrival.account.merchant, news.order_id)
    checkout = addressee(checkouts, arrival.settled) or next(iter(checkouts), None)
    arrival = replace(arrival, checkouts=tuple(checkouts))
    if news.told not in GOOD:
        return await _tell_on(arrival, operations, checkout)
    of_operations = await apply_to_operations(arrival, operations)
    if of_operations is not None and checkout is not None:
        of_operations = await _beside_checkout(arrival, of_operations, checkout)
    if of_operations is not None:
        return of_operations
    if checkout is None:
        return await _of_no_checkout(arrival)
    return await apply_to_checkout(arrival, checkout)


async def _operations(arrival: Arrival) -> list[Operation]:
    """Finds the operations that the news may be of, newest first."""
    news, journal = arrival.news, arrival.relay.journal
    found = await journal.list(OperationFilter(order_id=news.order_id), before=None, limit=OPERATIONS_MAX)
    if news.subscription_id is not None:
        of_plan = OperationFilter(subscription_id=news.subscription_id)
        found += await journal.list(of_plan, before=None, limit=OPERATIONS_MAX)
    return [each for each in found if each.merchant == arrival.account.merchant and each.kind in TAKING]


async def _tell_on(arrival: Arrival, operations: list[Operation], checkout: Checkout | None) -> Why:
    """Passes on that nothing was taken: to the checkout as a hint, to operations as a reason to look."""
    for operation in operations:
        if operation.state in PROBED:
            await settle_one(arrival.relay, operation, is_nudged=True)
    outcome = _HINTS.get(arrival.news.told)
    is_hint = checkout is not None and outcome is not None and arrival.news.message_type in OF_FIRST
    if is_hint and outcome is not None:
        await finish_by_notification(arrival.relay, msgspec.structs.replace(arrival.settled, outcome=outcome))
    why = await note_news(arrival, checkout, payment=None)
    if is_hint:  # of a plan whose first payment failed there may be nothing to be shown
        return Why.UNSEEN if why is Why.UNSEEN else Why.CHECKOUT_FINISHED
    return why or (Why.INFORMED if operations or checkout is not None else Why.UNKNOWN_ORDER)


async def _beside_checkout(arrival: Arrival, why: Why, checkout: Checkout) -> Why | None:
    """Gives what the news are to an operation, where a checkout has the same order; None where they are none of it.

    They are its own where the payment is an operation's, or the hold; while one is open nobody can tell yet, and a
    payment that isn't the checkout's already may be the operation's: what was looked for and not found may show itself.
    """
    if why in {Why.OPERATION_PROVED, Why.OPERATION_UNDER_WAY, Why.OTHER_TOKEN}:
        return why
    while_open = Why.OPERATION_UNDER_WAY if why is Why.OPERATION_LOOKED_FOR else why
    payment_id, token, merchant = arrival.news.payment_id, arrival.news.authorization_token, arrival.account.merchant
    # A hold's token before its payment, which nothing shows: whoever had the news could have put another one there.
    if token is not None and await arrival.relay.journal.authorization_of(secret_hash(token), merchant) is not None:
        return while_open
    if payment_id is not None:
        if await arrival.relay.inbox.owner_of_payment(merchant, payment_id) is not None:
            return why
        is_open = why in {Why.OPERATION_LOOKED_FOR, Why.OPERATION_OPEN}
        return while_open if is_open and checkout.payment_id != payment_id else None
    return None


async def _of_no_checkout(arrival: Arrival) -> Why:
    """Takes up what is of no operation and no checkout of ours: at most it is of a subscription that we know of."""
    news = arrival.news
    if news.subscription_id is None:
        return Why.UNKNOWN_ORDER
    if await arrival.relay.subscriptions.standing(arrival.account.merchant, news.subscription_id) is None:
        return Why.UNKNOWN_ORDER
    shown = await shown_installment(arrival)
    if isinstance(shown, Why):
        return shown
    return await note_news(arrival, None, payment=shown) or Why.INFORMED
