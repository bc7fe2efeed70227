"""Replays a notification, after an operator has removed the cause of its failure."""

from payrelay.core.notifications.notification import (
    Notification,
    NotificationEvent,
    NotificationReason,
    NotificationState,
    NotificationStep,
    advance,
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
    inbox = relay.inbox
    notification = await inbox.get(notification_id)
    if notification is None:
        raise UnknownNotificationError("there is no such notification")
    if notification.state is NotificationState.RECEIVED:
        raise NotReplayedError("it has just come, and is being worked on")
    if await inbox.body_of(notification_id) is None:
        raise NotReplayedError("its body was deleted")
    step = NotificationStep(event=NotificationEvent.REPLAYED, reason=NotificationReason.REPLAYED)
    replayed = advance(notification, step, at_ms=relay.clock.now_ms())
    try:
        await inbox.record(replayed)
    except Outdated:
        raise NotReplayedError("it was changed at this moment; read it again") from None
    await relay.order_searches.bring_forward(replayed.merchant, replayed.order_id, now_ms=replayed.updated_at_ms)
    return replayed
