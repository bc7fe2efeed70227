"""Applies a genuine notification: to the operations, the checkout and the subscription of its order.

Rules:

1. Only five fields are signed. A payment counts when the gateway's own records show exactly that payment. No record
   shows a token: it counts once for an order that waits for one, and a second token needs an operator.
2. Only ``apply`` changes an operation, with the notification as evidence.
3. A report of failure, cancellation or a pending payment is passed on, and disproves nothing.
4. What is about nothing that Payrelay knows costs no call to the gateway.
5. Each step may be repeated: the process may have died after it.
"""

from dataclasses import replace
from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState, fitting_checkouts
from payrelay.core.notifications.notification import (
    ExpectedAmount,
    NotificationKind,
    NotificationReason,
    ReportedStatus,
    differs,
)
from payrelay.core.payments.operation import (
    INQUIRED,
    OPEN_STATES,
    PAYMENT_KINDS,
    Kind,
    Operation,
    OperationFilter,
    State,
)
from payrelay.core.secret import secret_hash
from payrelay.flows.access.ownership import contenders_of
from payrelay.flows.checkouts.finish_checkout import finish_by_notification
from payrelay.flows.notifications.apply_to_checkout import OF_FIRST, apply_to_checkout
from payrelay.flows.notifications.apply_to_operations import apply_to_operations, tell_second_payment
from payrelay.flows.notifications.context import GOOD, NotificationContext, shown_installment, shown_payment
from payrelay.flows.notifications.keep_chargeback import keep_chargeback, look_whether_won
from payrelay.flows.notifications.note_subscription import note_subscription
from payrelay.flows.notifications.signature import fits_other_orders

OPERATIONS_MAX: Final = 50
"""Operations of one order, or of one subscription, that a notification is compared with: the newest."""
_WHILE_OPEN: Final = frozenset(
    {NotificationReason.OPERATION_INQUIRED, NotificationReason.SEARCH_WAITS, NotificationReason.OPERATION_OPEN}
)
_HINTS: Final = {ReportedStatus.CANCELLED: CheckoutState.CANCELLED, ReportedStatus.FAILED: CheckoutState.FAILED}


async def apply_notification(context: NotificationContext) -> NotificationReason:
    """Applies a notification, and returns the reason of its next state. May be repeated.

    Raises StoreError; Outdated where an object of the order was changed meanwhile: the caller then decides anew.
    """
    content = context.content
    if content.kind is NotificationKind.CHARGEBACK:
        return await keep_chargeback(context)
    operations = await _operations(context)
    checkouts = await context.relay.checkouts.of_order(context.account.merchant, content.order_id)
    fitting = fitting_checkouts(checkouts, context.checkout_outcome)
    checkout = next(iter(fitting or checkouts), None)
    is_contested = checkout is not None and bool(await contenders_of(context.relay, checkout, fitting))
    context = replace(context, checkouts=tuple(checkouts), is_contested=is_contested)
    if content.reported not in GOOD:
        return await _pass_on(context, operations, checkout)
    won = await look_whether_won(context)
    if won is not None:
        return won
    reason = await apply_to_operations(context, operations)
    if reason is not None and checkout is not None:
        reason = await _reason_beside_checkout(context, reason, checkout, operations)
    if reason is not None:
        return reason
    if checkout is None and operations and content.subscription_id is None:
        return await _beside_operations(context, operations)
    if checkout is None:
        return await _apply_to_subscription(context)
    return NotificationReason.SEVERAL_OWNERS if is_contested else await apply_to_checkout(context, checkout)


async def _operations(context: NotificationContext) -> list[Operation]:
    """Finds the operations that the notification may be about, newest first."""
    content, journal = context.content, context.relay.journal
    found = await journal.list(OperationFilter(order_id=content.order_id), before=None, limit=OPERATIONS_MAX)
    if content.subscription_id is not None:
        of_plan = OperationFilter(subscription_id=content.subscription_id)
        found += await journal.list(of_plan, before=None, limit=OPERATIONS_MAX)
    return [each for each in found if each.merchant == context.account.merchant and each.kind in PAYMENT_KINDS]


async def _pass_on(
    context: NotificationContext, operations: list[Operation], checkout: Checkout | None
) -> NotificationReason:
    """Passes on that nothing was charged: to the checkout as a hint, to operations as a reason to inquire."""
    if not operations and checkout is None and not await _has_known_subscription(context):
        return NotificationReason.UNKNOWN_ORDER
    for operation in operations:
        if operation.state in INQUIRED:
            await context.inquire_about(operation)
    outcome = _HINTS.get(context.content.reported)
    is_of_attempt = checkout is not None and not context.is_contested and context.content.message_type in OF_FIRST
    # Else whoever has a form with the same signed text could end the checkout by a declined card of their own.
    is_hint = is_of_attempt and outcome is not None and not await fits_other_orders(context)
    if is_hint and outcome is not None:
        await finish_by_notification(context.relay, msgspec.structs.replace(context.checkout_outcome, outcome=outcome))
    reason = await note_subscription(context, checkout, payment=None)
    if is_hint:  # a plan whose first payment failed may have no subscription to show
        return (
            NotificationReason.UNSEEN if reason is NotificationReason.UNSEEN else NotificationReason.CHECKOUT_FINISHED
        )
    return reason or NotificationReason.INFORMED


async def _reason_beside_checkout(
    context: NotificationContext, reason: NotificationReason, checkout: Checkout, operations: list[Operation]
) -> NotificationReason | None:
    """Decides whether a notification is about an operation where a checkout has the same order; None where it isn't.

    It is about an operation that owns the payment or the authorization. While an operation is open, a payment that the
    checkout doesn't have may still belong to the operation: an inquiry that found nothing may find it later. So may a
    token while an authorization of the order is open: nothing shows whether it was authorized by the call or the page.
    """
    if reason in {
        NotificationReason.OPERATION_PROVED,
        NotificationReason.OPERATION_UNDER_WAY,
        NotificationReason.OTHER_TOKEN,
    }:
        return reason
    while_open = NotificationReason.OPERATION_UNDER_WAY if reason is NotificationReason.OPERATION_INQUIRED else reason
    content, merchant = context.content, context.account.merchant
    payment_id, token = content.payment_id, content.authorization_token
    # An authorization's token is compared before its payment, which isn't signed and which no record shows.
    if token is not None and await context.relay.journal.authorization_of(secret_hash(token), merchant) is not None:
        return while_open
    if payment_id is not None:
        if await context.relay.inbox.owner_of_payment(merchant, payment_id) is not None:
            return reason
        is_open = reason in _WHILE_OPEN
        return while_open if is_open and checkout.payment_id != payment_id else None
    if token is not None and any(_may_have_token(context, each) for each in operations):
        return while_open
    # Without a payment's id the order's only payment would be taken for the checkout's, which may be the operation's.
    return while_open if reason in _WHILE_OPEN and checkout.kind is CheckoutKind.PAYMENT else None


def _may_have_token(context: NotificationContext, operation: Operation) -> bool:
    """Tells whether a reported authorization may be that of an operation whose outcome isn't known."""
    expected = ExpectedAmount(amount_minor=operation.amount_minor, currency=operation.currency or "")
    is_open = operation.kind is Kind.AUTHORIZATION and operation.state in OPEN_STATES
    return is_open and not differs(context.content, expected)


async def _beside_operations(context: NotificationContext, operations: list[Operation]) -> NotificationReason:
    """Says what a payment is that is of no operation of its order, where nothing but operations has the order.

    Where one of them succeeded and the gateway shows the payment, the order is paid twice. Otherwise somebody else may
    have asked for it: an operator hears of that where the notification has waited in vain.
    """
    if not any(each.state is State.SUCCEEDED for each in operations):
        return NotificationReason.UNKNOWN_PAYMENT
    shown = await shown_payment(context)
    if isinstance(shown, NotificationReason):
        return shown
    await tell_second_payment(context, operations, shown.payment_id)
    return await context.reason_of_second(shown.payment_id)


async def _apply_to_subscription(context: NotificationContext) -> NotificationReason:
    """Applies a notification whose order has no operation and no checkout: to a known subscription, if to anything."""
    if not await _has_known_subscription(context):
        return NotificationReason.UNKNOWN_ORDER
    shown = await shown_installment(context)
    if isinstance(shown, NotificationReason):
        return shown
    return await note_subscription(context, None, payment=shown) or NotificationReason.INFORMED


async def _has_known_subscription(context: NotificationContext) -> bool:
    """Tells whether the notification names a subscription of which something is stored. Raises StoreError."""
    subscription_id = context.content.subscription_id
    if subscription_id is None:
        return False
    return await context.relay.subscriptions.summary(context.account.merchant, subscription_id) is not None
