"""What an addressee of alerts is told of an operation, a notification or an endpoint, as JSON without secrets."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from payrelay.core.events.delivery import EndpointState
from payrelay.core.moments import rfc3339
from payrelay.core.money import amount_json
from payrelay.core.notifications.notification import REASON_PHRASES, NotificationState
from payrelay.core.payments.explanations import reason_phrase
from payrelay.core.payments.operation import Operation
from payrelay.flows.payments.operation_views import view
from payrelay.flows.relay import Relay
from payrelay.runtime.webhook_sender import host_of
from payrelay.store.alerts import Alert, AlertSubject
from payrelay.store.inbox import REFUSED_ALERT_FROM

STOPPED_SENTENCE: Final = (
    "Events are no longer sent to this endpoint: start it again once its receiver is mended, and replay what it missed"
)


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
    reported: str
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


async def _of_operation(relay: Relay, alert: Alert) -> bytes:
    operation = await relay.journal.get(alert.subject_id)
    if operation is None:
        raise LookupError(f"no operation {alert.subject_id}")
    history = await relay.journal.history(alert.subject_id)
    reason = reason_phrase([entry for entry in history if entry.version <= alert.version])
    if alert.attempts == 0:
        _log(relay, operation, reason)
    return message_of(alert, operation, reason)


async def _of_notification(relay: Relay, alert: Alert) -> bytes:
    """Writes of a notification; the log has it since it came to where it stands, but for those that were refused."""
    notification = await relay.inbox.get(alert.subject_id)
    if notification is None:
        raise LookupError(f"no notification {alert.subject_id}")
    reason = REASON_PHRASES[notification.reason]
    if notification.state is NotificationState.REFUSED:
        reason = f"{REFUSED_ALERT_FROM} notifications or more were refused within a day; of this one {reason}"
    message = NotificationMessage(
        alert=alert.id,
        raised_at=rfc3339(alert.created_at_ms),
        why=f"{reason[:1].upper()}{reason[1:]}",
        notification_id=notification.id,
        kind=notification.kind,
        reported=notification.reported,
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


MESSAGES: Final[dict[AlertSubject, Callable[[Relay, Alert], Awaitable[bytes | None]]]] = {
    AlertSubject.OPERATION: _of_operation,
    AlertSubject.NOTIFICATION: _of_notification,
    AlertSubject.ENDPOINT: _of_endpoint,
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
