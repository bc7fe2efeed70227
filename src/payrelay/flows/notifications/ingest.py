"""Ingests the notifications that a gateway posts: checks the authenticity, stores each once, and starts the work on it.

Rules:

1. The sender gets its answer when the notification is on disk, and doesn't wait for its application.
2. A notification that isn't genuine is stored too, up to a number that an operator can read, and changes nothing. Of
   each sender only so many a day get as far as the store, so that forged ones never delay genuine ones.
3. The authenticity is decided here, from the whole request. It is stored; the headers are not.
"""

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from payrelay.core.notifications.notification import (
    UNFINISHED,
    WAITS_FOR_MS,
    Authenticity,
    Notification,
    NotificationReason,
    NotificationState,
    advance,
    step_of_repeat,
)
from payrelay.core.views import with_members_of
from payrelay.errors import Code, Outdated, Refusal
from payrelay.flows.notifications.work_inbox import LEASE_MS, has_room, work_later
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import Gateway, Headers, ReceivedNotification, UnreadableNotification
from payrelay.runtime.hooks import FlowPoint

REFUSALS: Final = {
    Authenticity.FORGED: (Code.FORBIDDEN, "the signature is not that of this account's MERCHANT_SECRET"),
    Authenticity.WRONG_MERCHANT: (Code.FORBIDDEN, "the notification is for another merchant than this account's"),
    Authenticity.NO_SECRET: (Code.UNAVAILABLE, "this account has no MERCHANT_SECRET to check a notification by"),
}
"""The answers to notifications that aren't genuine. Where only the secret is missing, the sender may try again."""


class NotIngestedError(Refusal):
    """A notification that was not stored, because too many of its order came; it may be sent again."""

    def __init__(self) -> None:
        super().__init__(Code.UNAVAILABLE, "too many notifications of this order came in a day", retry_after_s=3_600)


async def ingest_notification(
    relay: Relay,
    account_name: str,
    headers: Headers,
    body: bytes,
    *,
    may_store_refused: Callable[[], bool] = lambda: True,
) -> Notification:
    """Stores a notification, and starts the work on it; when this returns, the notification is on disk.

    May be repeated: an equal body is the same notification. Raises StoreUnavailable, and Refusal. It is not_found for
    an unknown account, and malformed_request for a body that is no notification. It is forbidden for a notification
    that is forged or for another merchant, which is stored all the same where ``may_store_refused``. It is unavailable
    for one that can't be checked, or is one too many.
    """
    account = relay.account(account_name)
    received = account.notification(headers, body)
    if isinstance(received, UnreadableNotification):
        relay.hooks.notified(account_name, "unreadable")
        raise Refusal(Code.MALFORMED_REQUEST, received.reason)
    authenticity = received.authenticity
    if authenticity in REFUSALS and not may_store_refused():
        relay.hooks.notified(account_name, authenticity)
        raise Refusal(*REFUSALS[authenticity])
    notification = await _stored(relay, _new(relay, account, received, body), body)
    relay.hooks.notified(account_name, authenticity)
    if notification is not None and notification.state in UNFINISHED and notification.version == 1:
        work_later(relay, notification)
    if authenticity in REFUSALS:
        relay.log.warning("notification_refused", account=account_name, authenticity=authenticity)
        raise Refusal(*REFUSALS[authenticity])
    if notification is None:
        relay.log.error("notification_not_kept", account=account_name)
        raise NotIngestedError
    return notification


async def _stored(relay: Relay, new: Notification, body: bytes) -> Notification | None:
    """Stores a notification, or finds it stored; None where too many of its order came.

    A repeat that is genuine now, or of a notification that was given up, has the notification worked on anew.
    """
    with relay.hooks.passing(FlowPoint.INGESTING, FlowPoint.INGESTED, new.id):
        stored = await relay.inbox.put(new, body)
    if stored is None:
        return None
    known = stored.notification
    step = None if stored.is_new else step_of_repeat(known, new.authenticity)
    if step is None:
        return known
    replayed = msgspec.structs.replace(advance(known, step, at_ms=new.received_at_ms), authenticity=new.authenticity)
    try:
        await relay.inbox.record(replayed)
    except Outdated:  # another repeat was quicker
        return known
    return replayed


def _new(relay: Relay, account: Gateway, received: ReceivedNotification, body: bytes) -> Notification:
    now_ms, content, authenticity = relay.clock.now_ms(), received.content, received.authenticity
    is_genuine = authenticity is Authenticity.GENUINE
    # This process works on it right after the answer; if it dies before that, the worker does when the lease ends.
    next_at_ms = now_ms + LEASE_MS if has_room(relay, account.merchant, content.order_id) else now_ms
    return with_members_of(
        content,
        Notification,
        id=relay.new_id("ntf", now_ms),
        account=account.name,
        merchant=account.merchant,
        digest=hashlib.sha256(body).hexdigest(),
        authenticity=authenticity,
        state=NotificationState.RECEIVED if is_genuine else NotificationState.REFUSED,
        reason=NotificationReason.NEW if is_genuine else NotificationReason(authenticity.value),
        version=1,
        received_at_ms=now_ms,
        last_at_ms=now_ms,
        repeats=0,
        attempts=0,
        next_at_ms=next_at_ms if is_genuine else None,
        gives_up_at_ms=now_ms + WAITS_FOR_MS,
        updated_at_ms=now_ms,
    )
