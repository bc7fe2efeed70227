"""Applies the notification of an authorization to the checkout that asked for it."""

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutState
from payrelay.core.checkouts.checkout_proof import is_authorized_by
from payrelay.core.notifications.notification import NotificationKind, NotificationReason, ReportedStatus
from payrelay.core.orders.facts import AcceptedHold
from payrelay.core.orders.taken import is_hold_over
from payrelay.core.secret import secret_hash
from payrelay.flows.checkouts.finish_checkout import finish_checkout
from payrelay.flows.notifications.context import NotificationContext
from payrelay.flows.notifications.signature import other_than_hosted_authorization


async def apply_authorization(context: NotificationContext, checkout: Checkout) -> NotificationReason:
    """Accepts the token of an authorization, which the store keeps sealed for the capture that proves it.

    The notification must report an authorization, and its signature must fit no other order that is known. Otherwise
    whoever has that other order's notification would take this one with a token of their own. It still proves nothing:
    the checkout becomes notified, and completed where the token was captured before. A hold that is over gives way to
    the next one, and a repeated report of it changes nothing. May be repeated. Raises StoreError.
    """
    content = context.content
    if content.reported is not ReportedStatus.AUTHORIZED:
        return NotificationReason.OTHER_KIND
    if content.authorization_token is None:
        return NotificationReason.INCOMPLETE
    is_accepted = context.notification.accepted_at_ms is not None  # an operator compared it with the gateway's portal
    if not is_accepted and await other_than_hosted_authorization(context, checkout):
        return NotificationReason.OTHER_TEXT
    token_hash, now_ms = secret_hash(content.authorization_token), context.relay.clock.now_ms()
    facts = await context.relay.money.orders.facts_of_order(checkout.merchant, checkout.order_id)
    before, own = facts.hold, AcceptedHold(token_hash=token_hash, accepted_at_ms=now_ms)
    if before is not None and before.token_hash == token_hash:
        own = before
    if is_hold_over(own, facts, now_ms=now_ms):
        return NotificationReason.CHECKOUT_FINISHED
    gives_way = before is not None and is_hold_over(before, facts, now_ms=now_ms)
    kind = NotificationKind.AUTHORIZATION
    if not await context.accepts_token(kind, content.authorization_token, in_place=gives_way):
        return NotificationReason.OTHER_TOKEN
    # The payment in the notification is not signed, and no record shows it: it proves nothing.
    notified = msgspec.structs.replace(context.checkout_outcome, outcome=CheckoutState.NOTIFIED, payment_id=None)
    await finish_checkout(context.relay, checkout, notified)
    # A capture that succeeds from now on finds the notified checkout in its own unit of work; an earlier one didn't.
    if not await _is_captured(context, checkout, content.authorization_token):
        return NotificationReason.CHECKOUT_NOTIFIED
    completed = msgspec.structs.replace(notified, outcome=CheckoutState.COMPLETED)
    await finish_checkout(context.relay, checkout, completed)
    return NotificationReason.CHECKOUT_FINISHED


async def _is_captured(context: NotificationContext, checkout: Checkout, token: str) -> bool:
    """Tells whether a capture of the token, made before its notification was applied, proves the authorization."""
    journal = context.relay.journal
    capture = await journal.capture_of(secret_hash(token), checkout.merchant)
    if capture is None:
        return False
    success = next((each for each in reversed(await journal.history(capture.id)) if each.state is capture.state), None)
    return success is not None and is_authorized_by(checkout, capture, success)
