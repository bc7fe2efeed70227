"""Takes up an approval: its token becomes a stored customer, once for the checkout that asked for it."""

import msgspec

from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.customers.customer import Approval
from payrelay.core.notifications.notification import NewsKind, NotifiedStatus, Why
from payrelay.core.secret import Secret
from payrelay.flows.checkouts.finish_checkout import finish_with
from payrelay.flows.customers.approve_customer import approve
from payrelay.flows.notifications.context import Arrival, shown_payment


async def take_approval(arrival: Arrival, checkout: Checkout) -> Why:
    """Stores the customer of an approval; where an amount was asked for as well, once its payment is shown."""
    news = arrival.news
    if news.customer_token is None or news.told is not NotifiedStatus.SUCCEEDED:
        return Why.INCOMPLETE
    payment_id = None  # that of the news is not signed
    if checkout.amount_minor is not None:
        shown = await shown_payment(arrival)
        if isinstance(shown, Why):
            return shown
        payment_id = shown.payment_id
    if not await arrival.accepts_token(NewsKind.PREAPPROVAL, news.customer_token):
        return Why.OTHER_TOKEN
    if checkout.customer_id is not None:
        # Heard once more: it has its customer, whatever became of that, and whichever approval it had last.
        return Why.CUSTOMER_APPROVED
    customer = await approve(
        arrival.relay,
        Approval(
            account=arrival.account.name,
            merchant=arrival.account.merchant,
            principal=checkout.principal,
            reference=checkout.customer_reference,
            token=Secret(news.customer_token),
            method=news.method,
            card_no_masked=news.card_no_masked,
            card_expiry=news.card_expiry,
            card_holder=None if news.card_holder is None else news.card_holder.reveal(),
            order_id=news.order_id,
            payment_id=news.payment_id,
        ),
    )
    approved = msgspec.structs.replace(arrival.settled, payment_id=payment_id, customer_id=customer.id)
    await finish_with(arrival.relay, checkout, approved)
    return Why.CUSTOMER_APPROVED
