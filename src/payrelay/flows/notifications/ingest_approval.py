"""Ingests an approval: its token becomes a stored customer, once for each checkout."""

import msgspec

from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.checkouts.text_holders import TextHolder
from payrelay.core.customers.customer import Approval
from payrelay.core.notifications.notification import NotificationKind, NotificationReason, ReportedStatus
from payrelay.core.secret import Secret
from payrelay.flows.checkouts.finish_checkout import finish_checkout
from payrelay.flows.customers.approve_customer import approve
from payrelay.flows.notifications.context import NotificationContext, shown_payment
from payrelay.flows.notifications.signature import other_than_approval, text_holders


async def ingest_approval(context: NotificationContext, checkout: Checkout) -> NotificationReason:
    """Stores the customer of an approval, and completes its checkout; returns the notification's reason.

    Where the checkout has an amount, the gateway must show its payment first. May be repeated. Raises StoreError.
    """
    content = context.content
    if content.customer_token is None or content.reported is not ReportedStatus.SUCCEEDED:
        return NotificationReason.INCOMPLETE
    holders = await text_holders(context)
    if checkout.amount_minor is None and not _is_amount_expected(context, checkout, holders):
        return NotificationReason.OTHER_AMOUNT
    if await other_than_approval(context, checkout, holders):
        return NotificationReason.OTHER_TEXT
    payment_id = None  # the payment id of the notification is not signed
    if checkout.amount_minor is not None:
        shown = await shown_payment(context)
        if isinstance(shown, NotificationReason):
            return shown
        payment_id = shown.payment_id
    if not await context.accepts_token(NotificationKind.PREAPPROVAL, content.customer_token):
        return NotificationReason.OTHER_TOKEN
    if checkout.customer_id is not None:
        # The checkout has its customer already, whatever became of that customer since.
        return NotificationReason.CUSTOMER_APPROVED
    customer = await approve(
        context.relay,
        Approval(
            account=context.account.name,
            merchant=context.account.merchant,
            principal=checkout.principal,
            reference=await context.relay.checkouts.reference_of(checkout),
            token=Secret(content.customer_token),
            method=content.method,
            card_no_masked=content.card_no_masked,
            card_expiry=content.card_expiry,
            card_holder=None if content.card_holder is None else content.card_holder.reveal(),
            order_id=content.order_id,
            payment_id=content.payment_id,
        ),
    )
    approved = msgspec.structs.replace(context.checkout_outcome, payment_id=payment_id, customer_id=customer.id)
    await finish_checkout(context.relay, checkout, approved)
    return NotificationReason.CUSTOMER_APPROVED


def _is_amount_expected(context: NotificationContext, checkout: Checkout, holders: list[TextHolder]) -> bool:
    """Tells whether an approval that charges nothing was notified with an amount that the gateway may name.

    It is the amount that is signed today, the one that the checkout's own form had, or one that a setting lists. Which
    one the gateway notifies is not documented.
    """
    content = context.content
    has_own_text = any(each.subject == checkout.id and each.is_exact for each in holders)
    return has_own_text or context.account.is_approval_amount(content.amount_minor, content.currency)
