"""Replays a notification, after an operator has removed the cause of its failure, or has accepted it."""

import msgspec

from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.notifications.notification import (
    Notification,
    NotificationEvent,
    NotificationReason,
    NotificationState,
    NotificationStep,
    advance,
    may_be_accepted,
)
from payrelay.errors import Outdated, PayrelayError
from payrelay.flows.relay import Relay


class UnknownNotificationError(PayrelayError):
    """No notification has this id."""


class NotReplayedError(PayrelayError):
    """A notification can't be replayed; the text says why."""


async def replay(relay: Relay, notification_id: str) -> Notification:
    """Makes a notification due at once for any serving process; returns it in its new state.

    Its order may be searched for at once, too.

    May be repeated, and changes nothing for an applied notification: its effects are known already. The authenticity of
    a refused one is checked again. Raises UnknownNotificationError, NotReplayedError, StoreError.
    """
    notification = await _replayable(relay, notification_id)
    return await _work_on_anew(relay, notification)


async def accept(relay: Relay, notification_id: str, *, operator: str, reason: str) -> Notification:
    """Accepts the notification of an authorization for an operator, and replays it; returns it in its new state.

    Its token becomes that of its order, in place of one that was accepted before, and its checkout ``notified``. The
    capture of that token still has to prove the amount. Operator and reason are stored with the notification.

    The row and its digest change together. Raises UnknownNotificationError, NotReplayedError where the notification is
    no doubted authorization or no checkout of its order waits for one, and StoreError.
    """
    notification = await _replayable(relay, notification_id)
    if not may_be_accepted(notification):
        raise NotReplayedError("it is no authorization that another token or another order stands in the way of")
    checkouts = await relay.checkouts.of_order(notification.merchant, notification.order_id)
    waiting = [each for each in checkouts if each.kind is CheckoutKind.AUTHORIZATION]
    if not waiting or any(each.state is CheckoutState.COMPLETED for each in waiting):
        raise NotReplayedError("its order has no checkout that waits for an authorization")
    accepted = msgspec.structs.replace(
        notification, accepted_by=operator, accepted_because=reason, accepted_at_ms=relay.clock.now_ms()
    )
    replayed = await _work_on_anew(relay, accepted)
    relay.log.warning("notification_accepted", notification_id=notification.id, operator=operator)
    return replayed


async def _replayable(relay: Relay, notification_id: str) -> Notification:
    notification = await relay.inbox.get(notification_id)
    if notification is None:
        raise UnknownNotificationError("there is no such notification")
    if notification.state is NotificationState.RECEIVED:
        raise NotReplayedError("it has just come, and is being worked on")
    if await relay.inbox.body_of(notification_id) is None:
        raise NotReplayedError("its body was deleted")
    return notification


async def _work_on_anew(relay: Relay, notification: Notification) -> Notification:
    step = NotificationStep(event=NotificationEvent.REPLAYED, reason=NotificationReason.REPLAYED)
    replayed = advance(notification, step, at_ms=relay.clock.now_ms())
    try:
        await relay.inbox.record(replayed)
    except Outdated:
        raise NotReplayedError("it was changed at this moment; read it again") from None
    await relay.money.order_searches.bring_forward(replayed.merchant, replayed.order_id, now_ms=replayed.updated_at_ms)
    return replayed
