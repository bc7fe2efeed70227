"""Takes in what a gateway posts: told apart from what isn't the gateway's, stored once, and then worked on.

Rules:

1. Who posts is answered once it is on disk, and doesn't wait for what follows from it.
2. What is not the gateway's is kept too, as many as somebody can look at, and leads to nothing.
3. Who it is from is decided here, by the whole request. The verdict is stored, the headers are not.
"""

import hashlib
from typing import Final

import msgspec

from payrelay.core.notifications.notification import (
    REASON_OF_AUTHENTICITY,
    UNFINISHED,
    WAITS_FOR_MS,
    Authenticity,
    Notification,
    NotificationState,
    advance,
    step_of_repeat,
)
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
"""What whoever posts is told where nothing follows; without a secret it may be tried again, once there is one."""


class NotIngestedError(Refusal):
    """A notification that was not taken in for lack of room; it may be sent again."""

    def __init__(self) -> None:
        super().__init__(Code.UNAVAILABLE, "too many notifications of this order came in a day", retry_after_s=3_600)


async def ingest_notification(relay: Relay, account_name: str, headers: Headers, body: bytes) -> Notification:
    """Takes a notification in; when this returns it is on disk, and is being worked on.

    May be repeated: the same body is the same notification. Raises Refusal where it is no notification
    (malformed_request), not the gateway's or not for this account (forbidden; it is kept all the same), can't be
    checked or is one too many (unavailable), or the account is not configured (not_found); StoreUnavailable.
    """
    account = relay.account(account_name)
    received = account.notification(headers, body)
    if isinstance(received, UnreadableNotification):
        relay.hooks.notified(account_name, "unreadable")
        raise Refusal(Code.MALFORMED_REQUEST, received.reason)
    authenticity = received.authenticity
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
    """Stores it, or finds it stored; None for one that is one too many."""
    relay.hooks.passed(FlowPoint.INGESTING, new.id)
    put = await relay.inbox.put(new, body)
    relay.hooks.passed(FlowPoint.INGESTED, new.id)
    if put is None or put.is_new:
        return None if put is None else put.notification
    step = step_of_repeat(put.notification, new.authenticity)
    if step is None:
        return put.notification
    again = msgspec.structs.replace(
        advance(put.notification, step, at_ms=new.received_at_ms), authenticity=new.authenticity
    )
    try:
        await relay.inbox.record(again)
    except Outdated:  # another repeat was quicker
        return put.notification
    return again


def _new(relay: Relay, account: Gateway, received: ReceivedNotification, body: bytes) -> Notification:
    now_ms, content, authenticity = relay.clock.now_ms(), received.content, received.authenticity
    is_genuine = authenticity is Authenticity.GENUINE
    # It is worked on right after the answer; whoever dies in between leaves it to the worker.
    next_at_ms = now_ms + LEASE_MS if has_room(relay) else now_ms
    return Notification(
        id=relay.new_id("ntf", now_ms),
        account=account.name,
        merchant=account.merchant,
        digest=hashlib.sha256(body).hexdigest(),
        authenticity=authenticity,
        state=NotificationState.RECEIVED if is_genuine else NotificationState.REFUSED,
        reason=REASON_OF_AUTHENTICITY[authenticity],
        version=1,
        kind=content.kind,
        reported=content.reported,
        order_id=content.order_id,
        payment_id=content.payment_id,
        subscription_id=content.subscription_id,
        amount_minor=content.amount_minor,
        currency=content.currency,
        message_type=content.message_type,
        received_at_ms=now_ms,
        last_at_ms=now_ms,
        repeats=0,
        attempts=0,
        next_at_ms=next_at_ms if is_genuine else None,
        gives_up_at_ms=now_ms + WAITS_FOR_MS,
        updated_at_ms=now_ms,
    )
