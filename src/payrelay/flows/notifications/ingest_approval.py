"""Takes up an approval: its token becomes a stored customer, once for the checkout that asked for it."""

import msgspec

from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.customers.customer import Approval
from payrelay.core.notifications.notification import NotificationKind, NotificationReason, ReportedStatus
from payrelay.core.secret import Secret
from payrelay.flows.checkouts.finish_checkout import finish_checkout
from payrelay.flows.customers.approve_customer import approve
from payrelay.flows.notifications.context import NotificationContext, shown_payment


async def ingest_approval(context: NotificationContext, checkout: Checkout) -> NotificationReason:
    """Stores the customer of an approval; where an amount was asked for as well, once its payment is shown."""
    content = context.content
    if content.customer_token is None or content.reported is not ReportedStatus.SUCCEEDED:
        return NotificationReason.INCOMPLETE
    payment_id = None  # that of the news is not signed
    if checkout.amount_minor is not None:
        shown = await shown_payment(context)
        if isinstance(shown, NotificationReason):
            return shown
        payment_id = shown.payment_id
    if not await context.accepts_token(NotificationKind.PREAPPROVAL, content.customer_token):
        return NotificationReason.OTHER_TOKEN
    if checkout.customer_id is not None:
        # Heard once more: it has its customer, whatever became of that, and whichever approval it had last.
        return NotificationReason.CUSTOMER_APPROVED
    customer = await approve(
        context.relay,
        Approval(
            account=context.account.name,
            merchant=context.account.merchant,
            principal=checkout.principal,
            reference=checkout.customer_reference,
            token=Secret(content.customer_token),
            method=content.method,
            card_no_masked=content.card_no_masked,
            card_expiry=content.card_expiry,
            card_holder=None if content.card_holder is None else content.card_holder.reveal(),
            order_id=content.order_id,
            payment_id=content.payment_id,
        ),
    )
    approved = msgspec.structs.replace(context.settled, payment_id=payment_id, customer_id=customer.id)
    await finish_checkout(context.relay, checkout, approved)
    return NotificationReason.CUSTOMER_APPROVED
