"""Calls a person: each time that an operation or a notification comes to need one, or an endpoint is stopped.

It is noted in the unit of work that makes the change. From there on it is given to each addressee that is configured,
again and again until it was taken or is too old. A process that dies loses none; it may give one twice.
"""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.events.delivery import EndpointState
from payrelay.core.moments import rfc3339
from payrelay.core.money import amount_json
from payrelay.core.notifications.notification import WHY_PHRASES, NotificationState
from payrelay.core.payments.explanations import why
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.schedules import DAY_MS, HOUR_MS
from payrelay.errors import StoreError
from payrelay.flows.payments.find_operations import view
from payrelay.flows.relay import Relay
from payrelay.runtime.alert_channels import NotGivenError
from payrelay.runtime.webhook_sender import host_of
from payrelay.store.alerts import About, Alert, Alerts
from payrelay.store.inbox import REFUSED_ALERT_FROM

AT_ONCE_MAX: Final = 8
"""Alerts that are given at the same time: each may be a process of its own."""
TAKEN_FOR_MS: Final = 90_000
"""How long a process keeps an alert that it took: longer than a command and an address may take, with the store's own
waits. What a dead process took comes back after that."""
AGAIN_AFTER_MS: Final = (10_000, 60_000, 300_000, 1_800_000, HOUR_MS)
"""After the first try that failed, the second, …; the last of them from then on."""
GIVEN_UP_AFTER_MS: Final = 3 * DAY_MS
"""Whoever could not be reached for that long looks at the list by himself."""
STOPPED_SENTENCE: Final = (
    "Events are no longer sent to this endpoint: start it again once its receiver is mended, and replay what it missed"
)


class AlertOutcome(StrEnum):
    """What became of an alert, for the metrics."""

    RAISED = "raised"
    """Something came to need a person."""
    GIVEN = "given"
    """Every addressee has it."""
    FAILED = "failed"
    """A try did not reach every addressee; there will be another."""
    GIVEN_UP = "given_up"
    """It is too old to be tried again."""


class AlertMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What an addressee gets, as JSON, whatever it is about; holds no secret.

    ``alert`` is the same whenever the same alert is given again. A ``state`` is as it stands when it is given.
    """

    alert: str
    raised_at: str
    why: str


class OperationMessage(AlertMessage, frozen=True, kw_only=True):
    """What an addressee gets of an operation."""

    operation_id: str
    kind: str
    state: str
    explanation: str
    account: str
    principal: str
    order_id: str | None
    payment_id: str | None
    subscription_id: str | None
    amount: msgspec.Raw
    currency: str | None
    created_at: str
    updated_at: str


class NotificationMessage(AlertMessage, frozen=True, kw_only=True):
    """What an addressee gets of a notification."""

    notification_id: str
    kind: str
    told: str
    state: str
    account: str
    order_id: str
    payment_id: str | None
    subscription_id: str | None
    amount: msgspec.Raw
    currency: str
    received_at: str


class EndpointMessage(AlertMessage, frozen=True, kw_only=True):
    """What an addressee gets of an endpoint that was stopped; of its address only the host, the rest may be secret."""

    kind: str = "endpoint_stopped"
    endpoint_id: str
    state: str
    explanation: str
    account: str
    principal: str
    host: str
    label: str | None


async def begin_alerts(relay: Relay) -> int:
    """Begins to give what is due, in the background; gives how many there were.

    At most AT_ONCE_MAX are given at any time. Raises StoreError where the store can't be asked.
    """
    return sum([await _begin(relay, alerts) for alerts in relay.alarm.alerts])


async def _begin(relay: Relay, alerts: Alerts) -> int:
    under_way = relay.alarm.under_way
    now_ms, room = relay.clock.now_ms(), AT_ONCE_MAX - len(under_way)
    due_ms = await alerts.next_due_ms() if room > 0 else None
    if due_ms is None or due_ms > now_ms:
        return 0
    taken = await alerts.take(now_ms, until_ms=now_ms + TAKEN_FOR_MS, limit=room)
    for alert in taken:
        under_way.add((alert.subject_id, alert.version))
        relay.background.start(give_alert(relay, alerts, alert))
    return len(taken)


async def give_alert(relay: Relay, alerts: Alerts, alert: Alert) -> None:
    """Gives one alert to all who don't have it yet, and stores what came of it; raises nothing but a cancellation."""
    try:
        await _give(relay, alerts, alert)
    except StoreError as error:  # it comes back when its time with us is over
        relay.log.warning("alert_not_stored", about=alert.subject_id, reason=str(error))
    except Exception:  # our own mistake in one must not keep the others from being given
        relay.log.exception("alert_failed", about=alert.subject_id)
    finally:
        relay.alarm.under_way.discard((alert.subject_id, alert.version))


async def _give(relay: Relay, alerts: Alerts, alert: Alert) -> None:
    message = await _MESSAGES[alerts.about](relay, alert)
    if message is None:
        await alerts.end(alert, alert.given_to)
        return
    if alert.attempts == 0:
        relay.watch.alerted(AlertOutcome.RAISED)
    outlets = relay.alarm.outlets
    waiting = {name: outlet for name, outlet in outlets.items() if name not in alert.given_to}
    failures = await asyncio.gather(*(_failure_of(outlet(message)) for outlet in waiting.values()))
    failed = {name: failure for name, failure in zip(waiting, failures, strict=True) if failure is not None}
    given_to = alert.given_to | (waiting.keys() - failed.keys())
    if not failed:
        await alerts.end(alert, given_to)
        if outlets:
            relay.watch.alerted(AlertOutcome.GIVEN)
        return
    await _try_again(relay, alerts, alert, given_to, failed)


async def _try_again(
    relay: Relay, alerts: Alerts, alert: Alert, given_to: frozenset[str], failed: dict[str, str]
) -> None:
    now_ms = relay.clock.now_ms()
    next_ms = now_ms + AGAIN_AFTER_MS[min(alert.attempts, len(AGAIN_AFTER_MS) - 1)]
    told = {"about": alert.subject_id, "attempts": alert.attempts + 1, "failures": failed}
    if next_ms - alert.created_at_ms > GIVEN_UP_AFTER_MS:
        await alerts.end(alert, given_to)
        relay.log.error("alert_given_up", **told)
        relay.watch.alerted(AlertOutcome.GIVEN_UP)
        return
    await alerts.put_off(alert, given_to, next_ms)
    relay.log.warning("alert_not_given", again_at=rfc3339(next_ms), **told)
    relay.watch.alerted(AlertOutcome.FAILED)


async def _failure_of(giving: Awaitable[None]) -> str | None:
    try:
        await giving
    except NotGivenError as error:
        return str(error)
    return None


async def _of_operation(relay: Relay, alert: Alert) -> bytes:
    operation = await relay.journal.get(alert.subject_id)
    if operation is None:
        raise LookupError(f"no operation {alert.subject_id}")
    history = await relay.journal.history(alert.subject_id)
    reason = why([line for line in history if line.version <= alert.version])
    if alert.attempts == 0:
        _log(relay, operation, reason)
    return message_of(alert, operation, reason)


async def _of_notification(relay: Relay, alert: Alert) -> bytes:
    """Writes of a notification; the log has it since it came to where it stands, but for those that were refused."""
    notification = await relay.inbox.get(alert.subject_id)
    if notification is None:
        raise LookupError(f"no notification {alert.subject_id}")
    reason = WHY_PHRASES[notification.why]
    if notification.state is NotificationState.REFUSED:
        reason = f"{REFUSED_ALERT_FROM} notifications or more were refused within a day; of this one {reason}"
    message = NotificationMessage(
        alert=alert.id,
        raised_at=rfc3339(alert.created_at_ms),
        why=f"{reason[:1].upper()}{reason[1:]}",
        notification_id=notification.id,
        kind=notification.kind,
        told=notification.told,
        state=notification.state,
        account=notification.account,
        order_id=notification.order_id,
        payment_id=notification.payment_id,
        subscription_id=notification.subscription_id,
        amount=amount_json(notification.amount_minor),
        currency=notification.currency,
        received_at=rfc3339(notification.received_at_ms),
    )
    if alert.attempts == 0:
        relay.log.error("notification_alert", notification_id=notification.id, why=message.why)
    return msgspec.json.encode(message)


async def _of_endpoint(relay: Relay, alert: Alert) -> bytes | None:
    """Says why an endpoint was stopped; its line in the log was written where that was done."""
    endpoint = await relay.dispatch.endpoints.get(alert.subject_id)
    if endpoint is None or endpoint.state is not EndpointState.STOPPED or endpoint.reason is None:
        return None  # whoever removed it, or started it again, knows
    message = EndpointMessage(
        alert=alert.id,
        raised_at=rfc3339(alert.created_at_ms),
        why=endpoint.reason,
        endpoint_id=endpoint.id,
        state=endpoint.state,
        explanation=STOPPED_SENTENCE,
        account=endpoint.account,
        principal=endpoint.principal,
        host=host_of(endpoint.url),
        label=endpoint.label,
    )
    return msgspec.json.encode(message)


_MESSAGES: Final[dict[About, Callable[[Relay, Alert], Awaitable[bytes | None]]]] = {
    About.OPERATION: _of_operation,
    About.NOTIFICATION: _of_notification,
    About.ENDPOINT: _of_endpoint,
}
"""Write what is given out; give None where nobody need be called any more. Raise LookupError, StoreError."""


def message_of(alert: Alert, operation: Operation, reason: str) -> bytes:
    """Writes what an addressee gets of an operation."""
    shown = view(operation)
    return msgspec.json.encode(
        OperationMessage(
            alert=alert.id,
            raised_at=rfc3339(alert.created_at_ms),
            why=reason,
            operation_id=shown.id,
            kind=shown.kind,
            state=shown.state,
            explanation=shown.explanation,
            account=shown.account,
            principal=shown.principal,
            order_id=shown.order_id,
            payment_id=shown.payment_id,
            subscription_id=shown.subscription_id,
            amount=shown.amount,
            currency=shown.currency,
            created_at=shown.created_at,
            updated_at=shown.updated_at,
        )
    )


def _log(relay: Relay, operation: Operation, reason: str) -> None:
    relay.log.error(
        "operation_needs_attention",
        operation_id=operation.id,
        kind=operation.kind,
        state=operation.state,
        account=operation.account,
        order_id=operation.order_id,
        payment_id=operation.payment_id,
        subscription_id=operation.subscription_id,
        amount_minor=operation.amount_minor,
        currency=operation.currency,
        why=reason,
    )
