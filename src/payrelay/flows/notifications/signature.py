"""Finds out whether a notification's signature may be of something else than what the notification says.

A gateway that runs fields together before it signs them signs a text, and neither an order nor an amount
(``core.gateways.signed_text``).
"""

from typing import Final

from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.checkouts.text_holders import (
    TextHolder,
    beside_approval,
    beside_authorization,
    beside_hosted_authorization,
    of_other_orders,
)
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.proof import MatchResult
from payrelay.flows.access.lost_owners import may_be_anothers_order
from payrelay.flows.checkouts.doubted_payments import may_be_of_lost_call
from payrelay.flows.notifications.context import NotificationContext

OTHERS_LOGGED_MAX: Final = 10
"""Ids in one line of the log: enough to look them up."""


async def doubt_of_authorization(context: NotificationContext, operation: Operation) -> MatchResult | None:
    """Returns why a notification's signature doesn't prove an authorization; None where it does.

    The signature must fit no form of the merchant, and no other call that may have been executed. Nobody but Payrelay
    may sign with the account's secret, as far as the operator has said. Raises StoreError.
    """
    if not context.content.readings:
        return None
    others = beside_authorization(await text_holders(context), operation.id)
    if others:
        _log(context, operation.id, others)
        return MatchResult.TEXT_OF_ANOTHER
    return MatchResult.SIGNED_ELSEWHERE if await _is_signed_elsewhere(context) else None


async def text_holders(context: NotificationContext) -> list[TextHolder]:
    """Returns everything known that the notification's signature may be of. Raises StoreError."""
    return await context.relay.signed_texts.holders(context.account.merchant, context.content.readings)


async def other_than_approval(context: NotificationContext, checkout: Checkout, holders: list[TextHolder]) -> bool:
    """Tells, and logs, whether the signature of an approval's notification may be of something else.

    That is another text, and a page for the same order that is lost. Raises StoreError.
    """
    if await may_be_anothers_order(context.relay, checkout):
        return True
    return _is_doubted(context, beside_approval(holders, context.content.order_id))


async def other_than_hosted_authorization(context: NotificationContext, checkout: Checkout) -> bool:
    """Tells, and logs, whether the signature of a hosted authorization's notification may be of something else.

    That is another order, and a call or a page for the same order that is lost. Raises StoreError.
    """
    if await may_be_of_lost_call(context.relay, checkout, context.notification.received_at_ms):
        return True
    if await may_be_anothers_order(context.relay, checkout):
        return True
    return _is_doubted(context, beside_hosted_authorization(await text_holders(context), context.content.order_id))


async def fits_other_orders(context: NotificationContext) -> bool:
    """Tells, and logs, whether the notification's signature also fits a form or a call of another order.

    Raises StoreError.
    """
    return _is_doubted(context, of_other_orders(await text_holders(context), context.content.order_id))


def _is_doubted(context: NotificationContext, others: list[TextHolder]) -> bool:
    if others:
        _log(context, None, others)
    return bool(others)


async def _is_signed_elsewhere(context: NotificationContext) -> bool:
    """True unless each account of the merchant says that nobody else signs, and all that Payrelay signed is known.

    Raises StoreError.
    """
    relay, merchant = context.relay, context.account.merchant
    accounts = [account for account in relay.accounts.values() if account.merchant == merchant]
    if any(account.capabilities.signs_elsewhere is not False for account in accounts):
        return True
    # Forms and calls of a lost time may have the text, and are in no list.
    return (await relay.database.lost_commits.identity()).has_lost_commits


def _log(context: NotificationContext, operation_id: str | None, others: list[TextHolder]) -> None:
    context.relay.log.warning(
        "signature_fits_another",
        notification_id=context.notification.id,
        operation_id=operation_id,
        others=[each.subject for each in others[:OTHERS_LOGGED_MAX]],
    )
