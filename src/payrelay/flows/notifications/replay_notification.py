"""Has a notification worked on anew, because somebody has mended what kept it from its end."""

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
    """There is no notification of that id."""


class NotReplayedError(PayrelayError):
    """A notification can't be worked on anew; the text says why."""


async def replay(relay: Relay, notification_id: str) -> Notification:
    """Has it worked on anew by whichever process serves, at once; gives it as it then stands.

    May be repeated, and does no harm to one that was applied: what follows from it is known already. One that was
    refused is checked anew. Raises UnknownNotificationError, NotReplayedError, StoreError.
    """
    inbox = relay.inbox
    notification = await inbox.get(notification_id)
    if notification is None:
        raise UnknownNotificationError("there is no such notification")
    if notification.state is NotificationState.RECEIVED:
        raise NotReplayedError("it has just come, and is being worked on")
    if await inbox.body_of(notification_id) is None:
        raise NotReplayedError("its body is not kept any more")
    step = NotificationStep(event=NotificationEvent.REPLAYED, reason=NotificationReason.REPLAYED)
    replayed = advance(notification, step, at_ms=relay.clock.now_ms())
    try:
        await inbox.record(replayed)
    except Outdated:
        raise NotReplayedError("it was changed at this very moment; look at it again") from None
    return replayed
