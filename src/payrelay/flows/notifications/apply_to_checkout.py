"""Does what follows from a genuine notification for the checkout of its order: completes it with what was proved."""

from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState, begins_after, fits
from payrelay.core.moments import day_at
from payrelay.core.notifications.notification import MessageType, NewsKind, NotifiedStatus, Why
from payrelay.core.payments.payment import Payment
from payrelay.flows.checkouts.finish_checkout import finish_with
from payrelay.flows.notifications.context import Arrival, shown_installment, shown_payment
from payrelay.flows.notifications.ingest_approval import take_approval
from payrelay.flows.notifications.note_subscription import note_news

OF_FIRST: Final = frozenset({None, MessageType.AUTHORIZATION_SUCCESS, MessageType.AUTHORIZATION_FAILED})
"""News of what a customer does on the gateway's page; all other ones are of what comes later."""


async def apply_to_checkout(arrival: Arrival, checkout: Checkout) -> Why:
    """Completes a checkout with what was proved, or accepted."""
    news = arrival.news
    if not fits(checkout, arrival.settled.amount_minor, news.currency):
        return Why.OTHER_AMOUNT
    match checkout.kind:
        case CheckoutKind.PREAPPROVAL:
            return await take_approval(arrival, checkout)
        case CheckoutKind.AUTHORIZATION:
            return await _hold(arrival, checkout)
        case CheckoutKind.RECURRING:
            return await _subscribe(arrival, checkout)
        case CheckoutKind.PAYMENT:
            return await _pay(arrival, checkout)


async def _pay(arrival: Arrival, checkout: Checkout) -> Why:
    if arrival.news.told is not NotifiedStatus.SUCCEEDED:
        return Why.OTHER_KIND
    payment_id = arrival.news.payment_id
    if checkout.state is CheckoutState.COMPLETED and payment_id is not None and payment_id == checkout.payment_id:
        return Why.CHECKOUT_FINISHED  # proved before; repeats in any number of disguises cost no call
    shown = await shown_payment(arrival)
    if isinstance(shown, Why):
        return shown
    settled = msgspec.structs.replace(arrival.settled, payment_id=shown.payment_id)
    finished = await finish_with(arrival.relay, checkout, settled)
    is_second = finished.payment_id not in {None, shown.payment_id}
    return Why.SECOND_PAYMENT if is_second else Why.CHECKOUT_FINISHED


async def _hold(arrival: Arrival, checkout: Checkout) -> Why:
    """Takes up a hold's token, which is kept sealed for its capture."""
    news = arrival.news
    if news.authorization_token is None:
        return Why.INCOMPLETE
    if not await arrival.accepts_token(NewsKind.AUTHORIZATION, news.authorization_token):
        return Why.OTHER_TOKEN
    # The payment in the news is not signed, and nothing shows it: it proves none.
    await finish_with(arrival.relay, checkout, msgspec.structs.replace(arrival.settled, payment_id=None))
    return Why.CHECKOUT_FINISHED


async def _subscribe(arrival: Arrival, checkout: Checkout) -> Why:
    """Completes the checkout of a plan with its first payment, and notes that and every later one.

    Which plan it is, is not signed: the gateway must show it as the order's, and for the amount that was asked.
    """
    news = arrival.news
    if news.subscription_id is None:
        return Why.INCOMPLETE
    is_first = news.message_type in OF_FIRST
    shown: Payment | Why | None = await shown_installment(arrival)
    if shown is Why.NOT_SHOWN and is_first and await _begins_later(arrival, checkout):
        shown = None
    if isinstance(shown, Why):
        return shown
    why = await note_news(arrival, checkout, payment=shown)
    if why is not Why.SUBSCRIPTION_NOTED:
        return why or Why.INFORMED
    # The payment of the checkout is the first one.
    payment_id = shown.payment_id if shown is not None and is_first else None
    ids = {"subscription_id": news.subscription_id, "payment_id": payment_id}
    finished = await finish_with(arrival.relay, checkout, msgspec.structs.replace(arrival.settled, **ids))
    is_second = finished.subscription_id not in {None, news.subscription_id}
    return Why.SECOND_PAYMENT if is_second and is_first else why


async def _begins_later(arrival: Arrival, checkout: Checkout) -> bool:
    """Tells whether the first payment is yet to come, on the day on which the gateway told of the plan."""
    day = day_at(arrival.notification.received_at_ms, arrival.account.timezone)
    return begins_after(await arrival.relay.checkouts.details_of(checkout.id), day)
