"""Works on notifications: right after they came, and again where what they are about wasn't there yet.

Rules:

1. What follows from a notification is stored before the notification is said to be finished, and may be done again:
   whoever dies in between leaves it to the next, and nothing happens twice.
2. A notification that can't be worked on by our own fault keeps no other from its turn.
"""

from typing import Final

from payrelay.core.notifications.notification import (
    Authenticity,
    Notification,
    NotificationEvent,
    NotificationReason,
    NotificationState,
    NotificationStep,
    advance,
    step_of,
)
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import IllegalTransition, Outdated, Refusal, StoreError, StoreUnusable
from payrelay.flows.notifications.apply_notification import apply_notification
from payrelay.flows.notifications.context import NotificationContext
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import NO_HEADERS, Gateway, UnreadableNotification
from payrelay.runtime.hooks import FlowPoint

AT_ONCE_MAX: Final = 20
"""Notifications that are worked on at the same time: each may cost a call to the gateway."""
LEASE_MS: Final = 180_000
"""How long a process keeps what it took: longer than a look at the gateway lasts, with all its waits."""
REFUSED_KEPT_MS: Final = 30 * DAY_MS
"""How long what was refused can be looked at."""
BODY_KEPT_MS: Final = 90 * DAY_MS
"""How long the body of a finished one is kept, for somebody who wants to see what exactly came."""
FORGOTTEN_MAX: Final = 500
"""Of one round of forgetting."""
DECISIONS_MAX: Final = 3
"""How often what a notification is about may change under us before it is put off."""


async def begin_inbox(relay: Relay) -> int:
    """Begins to work on what is due, in the background; gives how many there were. Raises StoreError."""
    inbox = relay.inbox
    room = AT_ONCE_MAX - len(relay.being_worked_on)
    if room <= 0:
        return 0
    now_ms = relay.clock.now_ms()
    due_ms = await inbox.next_due_ms()
    if due_ms is None or due_ms > now_ms:
        return 0
    due = await inbox.lease_due(now_ms, leased_until_ms=now_ms + LEASE_MS, limit=room)
    for notification in due:
        work_later(relay, notification)
    return len(due)


async def forget_notifications(relay: Relay) -> int:
    """Forgets some of what is kept too long: what was refused, and bodies; gives how many. Raises StoreError."""
    now_ms = relay.clock.now_ms()
    refused = await relay.inbox.forget_refused(now_ms - REFUSED_KEPT_MS, FORGOTTEN_MAX)
    return refused + await relay.inbox.forget_bodies(now_ms - BODY_KEPT_MS, FORGOTTEN_MAX)


def has_room(relay: Relay) -> bool:
    """Tells whether one more can be worked on now."""
    return len(relay.being_worked_on) < AT_ONCE_MAX


def work_later(relay: Relay, notification: Notification) -> None:
    """Works on a notification in the background, unless that is full: then the worker takes it in its turn."""
    if has_room(relay) and notification.id not in relay.being_worked_on:
        relay.being_worked_on.add(notification.id)
        relay.background.start(work_on(relay, notification))


async def work_on(relay: Relay, notification: Notification) -> None:
    """Works on one notification once, and stores what that came to; raises nothing but a cancellation.

    May be repeated, at any time and after any crash.
    """
    try:
        await _work(relay, notification)
    except (Outdated, IllegalTransition):
        pass  # somebody else has worked on it meanwhile
    except StoreError as error:  # it comes back when its time with us is over
        relay.log.warning("notification_not_stored", notification_id=notification.id, reason=str(error))
    except Exception:  # our own mistake in one must not keep the others from their turn
        relay.log.exception("notification_failed", notification_id=notification.id)
    finally:
        relay.being_worked_on.discard(notification.id)


async def _work(relay: Relay, notification: Notification) -> None:
    account = relay.account_of(notification.account, notification.merchant)
    step = step_of(NotificationReason.ACCOUNT_GONE) if account is None else await _step(relay, account, notification)
    changed = advance(notification, step, at_ms=relay.clock.now_ms())
    relay.hooks.passed(FlowPoint.CLOSING, changed.id)
    await relay.inbox.record(changed)
    relay.hooks.passed(FlowPoint.CLOSED, changed.id)
    relay.hooks.worked_on(changed.state, changed.reason)
    tell = relay.log.error if changed.state is NotificationState.NEEDS_ATTENTION else relay.log.info
    tell(
        "notification_needs_attention"
        if changed.state is NotificationState.NEEDS_ATTENTION
        else "notification_worked_on",
        notification_id=changed.id,
        account=changed.account,
        state=changed.state,
        reason=changed.reason,
        order_id=changed.order_id,
        payment_id=changed.payment_id,
    )


async def _step(relay: Relay, account: Gateway, notification: Notification) -> NotificationStep:
    """Decides what becomes of a notification, and does what follows from it."""
    try:
        body = await relay.inbox.body_of(notification.id)
        if body is None:
            return step_of(NotificationReason.BODY_FORGOTTEN)
    except StoreUnusable as error:
        relay.log.error("notification_not_opened", notification_id=notification.id, reason=str(error))
        return step_of(NotificationReason.OUR_FAULT)
    received = account.notification(NO_HEADERS, body)
    if isinstance(received, UnreadableNotification):  # a newer release is stricter than the one that took it in
        return step_of(NotificationReason.INCOMPLETE)
    if Authenticity.GENUINE not in {notification.authenticity, received.authenticity}:
        return NotificationStep(
            event=NotificationEvent.REFUSED, reason=NotificationReason(notification.authenticity.value)
        )
    context = NotificationContext(relay=relay, account=account, notification=notification, content=received.content)
    return step_of(await _why(context))


async def _why(context: NotificationContext) -> NotificationReason:
    for _ in range(DECISIONS_MAX):
        try:
            return await apply_notification(context)
        except Outdated:  # what it is about was changed meanwhile: decided anew
            continue
        except Refusal as error:
            context.relay.log.warning(
                "notification_not_applied", notification_id=context.notification.id, reason=str(error)
            )
            return NotificationReason.OUR_FAULT
        except StoreUnusable as error:  # a sealed value of what it is about can't be opened, and won't be the next time
            context.relay.log.error(
                "notification_not_applied", notification_id=context.notification.id, reason=str(error)
            )
            return NotificationReason.OUR_FAULT
        except StoreError:
            raise
        except Exception:  # it is tried again, for as long as any other that waits, and then stands there visibly
            context.relay.log.exception("notification_failed", notification_id=context.notification.id)
            return NotificationReason.OUR_FAULT
    return NotificationReason.STORE_DOWN
