"""Works on notifications: right after they came, and again later where they have to wait.

Rules:

1. The effects of a notification are stored before its final state, and may be repeated. After a crash in between,
   another process repeats them, and no effect happens twice.
2. A notification on which Payrelay fails delays no other one.
3. Those of one order are worked on one after the other, and share one search at the gateway. However many they are,
   they take one place among AT_ONCE_MAX. What the search does not show waits for the next slot of the order.
"""

from typing import Final

from payrelay.core.notifications.notification import (
    EFFECTS,
    LOST_WAITS_FOR_MS,
    UNKNOWN,
    Authenticity,
    Notification,
    NotificationEvent,
    NotificationReason,
    NotificationState,
    NotificationStep,
    advance,
    occasion_of,
    step_of,
)
from payrelay.core.payments.operation import OperationFilter
from payrelay.core.payments.order_search import SearchSchedule
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import IllegalTransition, Outdated, Refusal, StoreError, StoreUnusable
from payrelay.flows.checkouts.finish_checkout import end_by_search, finish_by_search
from payrelay.flows.notifications.apply_notification import OPERATIONS_MAX, apply_notification
from payrelay.flows.notifications.context import NotificationContext
from payrelay.flows.order_search import OrderSearch
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import NO_HEADERS, Gateway, UnreadableNotification
from payrelay.runtime.hooks import FlowPoint

AT_ONCE_MAX: Final = 20
"""Orders whose notifications are worked on at the same time: each may cost a call to the gateway."""
OF_AN_ORDER_MAX: Final = 100
"""Notifications of one order that are leased at a time."""
LEASE_MS: Final = 180_000
"""Lease of a notification: longer than an inquiry at the gateway takes, with all its waits."""
REFUSED_KEPT_MS: Final = 30 * DAY_MS
"""How long a refused notification is kept."""
BODY_KEPT_MS: Final = 90 * DAY_MS
"""How long the body of a finished notification is kept, for an operator who wants to read it."""
FORGOTTEN_MAX: Final = 500
"""Notifications, and bodies, that one round deletes."""
ATTEMPTS_MAX: Final = 3
"""Attempts to apply one notification whose objects others change at the same time, before it is put off."""


async def begin_inbox(relay: Relay) -> int:
    """Leases notifications that are due, and works on them in the background; returns how many. Raises StoreError."""
    inbox = relay.inbox
    room = AT_ONCE_MAX - len(relay.under_way.being_worked_on)
    if room <= 0:
        return 0
    now_ms = relay.clock.now_ms()
    due_ms = await inbox.next_due_ms()
    if due_ms is None or due_ms > now_ms:
        return 0
    due = await inbox.lease_due(now_ms, leased_until_ms=now_ms + LEASE_MS, orders=room, of_an_order=OF_AN_ORDER_MAX)
    for notification in due:
        work_later(relay, notification)
    return len(due)


async def forget_notifications(relay: Relay) -> int:
    """Deletes some old refused notifications, and some old bodies; returns how many. Raises StoreError."""
    now_ms = relay.clock.now_ms()
    refused = await relay.inbox.forget_refused(now_ms - REFUSED_KEPT_MS, FORGOTTEN_MAX)
    return refused + await relay.inbox.forget_bodies(now_ms - BODY_KEPT_MS, FORGOTTEN_MAX)


def has_room(relay: Relay, merchant: str, order_id: str) -> bool:
    """Tells whether this process can work on a notification of an order now.

    Not while the database is behind: what it lacks may own the payment.
    """
    if relay.database.lost_commits.behind is not None:
        return False
    return (merchant, order_id) in relay.under_way.being_worked_on or len(relay.under_way.being_worked_on) < AT_ONCE_MAX


def work_later(relay: Relay, notification: Notification) -> None:
    """Works on a notification in the background, after those of its order that came before.

    Where too many orders are being worked on, the worker leases it later.
    """
    order = (notification.merchant, notification.order_id)
    waiting = relay.under_way.being_worked_on.get(order)
    if waiting is not None:
        waiting.setdefault(notification.id, notification)
    elif has_room(relay, *order):
        relay.under_way.being_worked_on[order] = {notification.id: notification}
        relay.background.start(_work_on_order(relay, order))


async def _work_on_order(relay: Relay, order: tuple[str, str]) -> None:
    """Works on the notifications of an order until none is left to this process."""
    waiting = relay.under_way.being_worked_on[order]
    try:
        while waiting:
            batch = list(waiting.values())
            waiting.clear()
            try:
                await _work_on_batch(relay, batch)
            except StoreError as error:  # what is left is due again when its lease ends
                relay.log.warning("order_not_searched", order_id=order[1], reason=str(error))
            except Exception:  # a fault of Payrelay in one order must not end the work on what comes after
                relay.log.exception("order_failed", order_id=order[1])
    finally:
        del relay.under_way.being_worked_on[order]


async def _work_on_batch(relay: Relay, batch: list[Notification]) -> None:
    """Works on notifications of one order, and after a search on all others that wait for it. Raises StoreError.

    The checkouts of the order get the result of the search too.
    """
    first = batch[0]
    accounts = (relay.account_of(each.account, each.merchant) for each in batch)
    account = next((each for each in accounts if each is not None), None)
    if account is None:
        for notification in batch:
            await work_on(relay, notification, None)
        return
    occasions = await _occasions(relay, account, batch)
    search = OrderSearch(
        relay=relay, account=account, order_id=first.order_id, occasions=occasions, wait_s=account.queue_s
    )
    for notification in batch:
        await work_on(relay, notification, search)
    if search.slot is None:
        return
    known = {each.id for each in batch}
    while left := await _lease_others(relay, search.slot, known):
        for notification in left:
            await work_on(relay, notification, search)
    if search.payments:
        await finish_by_search(relay, account.merchant, first.order_id, search.payments)
    await end_by_search(relay, search)
    await search.end()


async def _occasions(relay: Relay, account: Gateway, batch: list[Notification]) -> frozenset[str]:
    """Gives the occasions to search for an order: genuine texts of amounts that something of the order asked for.

    A stranger has texts of other amounts for nothing, from forms of orders of its own. Raises StoreError.
    """
    order_id = batch[0].order_id
    asked: set[int | None] = set()
    for checkout in await relay.checkouts.of_order(account.merchant, order_id):
        asked |= {checkout.amount_minor, checkout.first_minor}
    for operation in await relay.journal.list(OperationFilter(order_id=order_id), before=None, limit=OPERATIONS_MAX):
        asked.add(operation.amount_minor)
    return frozenset(
        occasion_of(each)
        for each in batch
        if each.authenticity is Authenticity.GENUINE
        and (each.amount_minor in asked or account.is_approval_amount(each.amount_minor, each.currency))
    )


async def _lease_others(relay: Relay, slot: SearchSchedule, known: set[str]) -> list[Notification]:
    """Leases notifications of the order that wait, and were not worked on since its search began."""
    now_ms = relay.clock.now_ms()
    leased = await relay.inbox.lease_waiting(
        slot.merchant,
        slot.order_id,
        before_ms=slot.asked_at_ms,
        leased_until_ms=now_ms + LEASE_MS,
        limit=OF_AN_ORDER_MAX,
    )
    left = [each for each in leased if each.id not in known]
    known.update(each.id for each in left)
    return left


async def work_on(relay: Relay, notification: Notification, search: OrderSearch | None) -> None:
    """Works on one notification once, and stores its new state; raises nothing but a cancellation.

    ``search`` is that of its order; None where its account is gone. May be repeated, at any time and after any crash.
    """
    try:
        await _work(relay, notification, search)
    except (Outdated, IllegalTransition):
        pass  # another process has worked on it meanwhile
    except StoreError as error:  # it is due again when the lease ends
        relay.log.warning("notification_not_stored", notification_id=notification.id, reason=str(error))
    except Exception:  # a fault of Payrelay in one notification must not delay the others
        relay.log.exception("notification_failed", notification_id=notification.id)


async def _work(relay: Relay, notification: Notification, search: OrderSearch | None) -> None:
    step, next_at_ms = step_of(NotificationReason.ACCOUNT_GONE), None
    account = relay.account_of(notification.account, notification.merchant)
    if account is not None and search is not None:
        search.is_needed = False
        step = await _step(relay, account, notification, search)
        next_at_ms = search.next_at_ms
    changed = advance(notification, step, at_ms=relay.clock.now_ms(), next_at_ms=next_at_ms)
    with relay.hooks.passing(FlowPoint.CLOSING, FlowPoint.CLOSED, changed.id):
        await relay.inbox.record(changed)
    relay.hooks.worked_on(changed.state, changed.reason)
    needs_attention = changed.state is NotificationState.NEEDS_ATTENTION
    log = relay.log.error if needs_attention else relay.log.info
    log(
        "notification_needs_attention" if needs_attention else "notification_worked_on",
        notification_id=changed.id,
        account=changed.account,
        state=changed.state,
        reason=changed.reason,
        order_id=changed.order_id,
        payment_id=changed.payment_id,
    )


async def _step(relay: Relay, account: Gateway, notification: Notification, search: OrderSearch) -> NotificationStep:
    """Checks and applies a notification; returns the step to its new state. Raises StoreError."""
    try:
        body = await relay.inbox.body_of(notification.id)
        if body is None:
            return step_of(NotificationReason.BODY_FORGOTTEN)
    except StoreUnusable as error:
        relay.log.error("notification_not_opened", notification_id=notification.id, reason=str(error))
        return step_of(NotificationReason.OUR_FAULT)
    received = account.notification(NO_HEADERS, body)
    if isinstance(received, UnreadableNotification):  # this release is stricter than the one that ingested it
        return step_of(NotificationReason.INCOMPLETE)
    if Authenticity.GENUINE not in {notification.authenticity, received.authenticity}:
        return NotificationStep(
            event=NotificationEvent.REFUSED, reason=NotificationReason(notification.authenticity.value)
        )
    context = NotificationContext(
        relay=relay, account=account, search=search, notification=notification, content=received.content
    )
    reason = await _unless_lost(context, await _apply(context))
    if reason is NotificationReason.UNSEEN and search.slot is None:
        reason = NotificationReason.SEARCH_WAITS
    return step_of(reason)


async def _unless_lost(context: NotificationContext, reason: NotificationReason) -> NotificationReason:
    """Gives the reason, or MAY_BE_LOST where a payment is reported that nothing here asked for since commits were lost.

    A person must look then, once a repeated request has had its time to bring the lost operation back. Raises
    StoreError.
    """
    relay, notification = context.relay, context.notification
    if reason not in UNKNOWN or notification.reported not in EFFECTS:
        return reason
    if relay.clock.now_ms() < notification.received_at_ms + LOST_WAITS_FOR_MS:
        return reason
    identity = await relay.database.lost_commits.identity()
    return NotificationReason.MAY_BE_LOST if identity.may_have_lost(notification.received_at_ms) else reason


async def _apply(context: NotificationContext) -> NotificationReason:
    """Applies a notification, and decides anew where its objects change; a fault of Payrelay gives OUR_FAULT."""
    for _ in range(ATTEMPTS_MAX):
        try:
            return await apply_notification(context)
        except Outdated:
            continue
        except (Refusal, StoreUnusable) as error:  # StoreUnusable: a sealed value can't be opened, now or later
            log = context.relay.log.warning if isinstance(error, Refusal) else context.relay.log.error
            log("notification_not_applied", notification_id=context.notification.id, reason=str(error))
            return NotificationReason.OUR_FAULT
        except StoreError:
            raise
        except Exception:  # it is tried again as long as any waiting notification, and then needs attention
            context.relay.log.exception("notification_failed", notification_id=context.notification.id)
            return NotificationReason.OUR_FAULT
    return NotificationReason.STORE_DOWN
