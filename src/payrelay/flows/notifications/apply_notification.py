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

from payrelay.core.checkouts.checkout import Checkout, CheckoutState, checkout_of
from payrelay.core.notifications.notification import NotificationKind, NotificationReason, ReportedStatus
from payrelay.core.payments.operation import INQUIRED, PAYMENT_KINDS, Operation, OperationFilter
from payrelay.core.secret import secret_hash
from payrelay.flows.checkouts.finish_checkout import finish_by_notification
from payrelay.flows.notifications.apply_to_checkout import OF_FIRST, apply_to_checkout
from payrelay.flows.notifications.apply_to_operations import apply_to_operations
from payrelay.flows.notifications.context import GOOD, NotificationContext, shown_installment
from payrelay.flows.notifications.keep_chargeback import keep_chargeback
from payrelay.flows.notifications.note_subscription import note_subscription
from payrelay.flows.resolution.resolve import resolve_one

OPERATIONS_MAX: Final = 50
"""Operations of one order, or of one subscription, that are looked through: the newest."""
_HINTS: Final = {ReportedStatus.CANCELLED: CheckoutState.CANCELLED, ReportedStatus.FAILED: CheckoutState.FAILED}


async def apply_notification(context: NotificationContext) -> NotificationReason:
    """Does what follows, and tells why the notification then stands where it stands. May be repeated.

    Raises StoreError; Outdated where what it is about was changed meanwhile, and it is to be decided anew.
    """
    content = context.content
    if content.kind is NotificationKind.CHARGEBACK:
        return await keep_chargeback(context)
    operations = await _operations(context)
    checkouts = await context.relay.checkouts.of_order(context.account.merchant, content.order_id)
    checkout = checkout_of(checkouts, context.settled) or next(iter(checkouts), None)
    context = replace(context, checkouts=tuple(checkouts))
    if content.reported not in GOOD:
        return await _tell_on(context, operations, checkout)
    of_operations = await apply_to_operations(context, operations)
    if of_operations is not None and checkout is not None:
        of_operations = await _beside_checkout(context, of_operations, checkout)
    if of_operations is not None:
        return of_operations
    if checkout is None:
        return await _of_no_checkout(context)
    return await apply_to_checkout(context, checkout)


async def _operations(context: NotificationContext) -> list[Operation]:
    """Finds the operations that the news may be of, newest first."""
    content, journal = context.content, context.relay.journal
    found = await journal.list(OperationFilter(order_id=content.order_id), before=None, limit=OPERATIONS_MAX)
    if content.subscription_id is not None:
        of_plan = OperationFilter(subscription_id=content.subscription_id)
        found += await journal.list(of_plan, before=None, limit=OPERATIONS_MAX)
    return [each for each in found if each.merchant == context.account.merchant and each.kind in PAYMENT_KINDS]


async def _tell_on(
    context: NotificationContext, operations: list[Operation], checkout: Checkout | None
) -> NotificationReason:
    """Passes on that nothing was taken: to the checkout as a hint, to operations as a reason to look."""
    for operation in operations:
        if operation.state in INQUIRED:
            await resolve_one(context.relay, operation, is_urgent=True)
    outcome = _HINTS.get(context.content.reported)
    is_hint = checkout is not None and outcome is not None and context.content.message_type in OF_FIRST
    if is_hint and outcome is not None:
        await finish_by_notification(context.relay, msgspec.structs.replace(context.settled, outcome=outcome))
    reason = await note_subscription(context, checkout, payment=None)
    if is_hint:  # of a plan whose first payment failed there may be nothing to be shown
        return (
            NotificationReason.UNSEEN if reason is NotificationReason.UNSEEN else NotificationReason.CHECKOUT_FINISHED
        )
    return reason or (
        NotificationReason.INFORMED if operations or checkout is not None else NotificationReason.UNKNOWN_ORDER
    )


async def _beside_checkout(
    context: NotificationContext, reason: NotificationReason, checkout: Checkout
) -> NotificationReason | None:
    """Gives what the news are to an operation, where a checkout has the same order; None where they are none of it.

    They are its own where the payment is an operation's, or the hold; while one is open nobody can tell yet, and a
    payment that isn't the checkout's already may be the operation's: what was looked for and not found may show itself.
    """
    if reason in {
        NotificationReason.OPERATION_PROVED,
        NotificationReason.OPERATION_UNDER_WAY,
        NotificationReason.OTHER_TOKEN,
    }:
        return reason
    while_open = NotificationReason.OPERATION_UNDER_WAY if reason is NotificationReason.OPERATION_INQUIRED else reason
    payment_id, token, merchant = (
        context.content.payment_id,
        context.content.authorization_token,
        context.account.merchant,
    )
    # A hold's token before its payment, which nothing shows: whoever had the news could have put another one there.
    if token is not None and await context.relay.journal.authorization_of(secret_hash(token), merchant) is not None:
        return while_open
    if payment_id is not None:
        if await context.relay.inbox.owner_of_payment(merchant, payment_id) is not None:
            return reason
        is_open = reason in {NotificationReason.OPERATION_INQUIRED, NotificationReason.OPERATION_OPEN}
        return while_open if is_open and checkout.payment_id != payment_id else None
    return None


async def _of_no_checkout(context: NotificationContext) -> NotificationReason:
    """Takes up what is of no operation and no checkout of ours: at most it is of a subscription that we know of."""
    content = context.content
    if content.subscription_id is None:
        return NotificationReason.UNKNOWN_ORDER
    if await context.relay.subscriptions.summary(context.account.merchant, content.subscription_id) is None:
        return NotificationReason.UNKNOWN_ORDER
    shown = await shown_installment(context)
    if isinstance(shown, NotificationReason):
        return shown
    return await note_subscription(context, None, payment=shown) or NotificationReason.INFORMED
