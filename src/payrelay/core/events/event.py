"""Events: the messages to registered clients, one for each change of an operation, customer or checkout."""

import hashlib
from typing import Final, TypeAlias

import msgspec

from payrelay.core.money import decimal_text
from payrelay.core.payments.operation import TRANSITIONS, JournalEntry, Operation, State

Plain: TypeAlias = str | int | bool | None
"""A value in an event's data; never a secret, and no personal data that an answer doesn't show too."""

PUBLISHED_STATES: Final = frozenset(State) - {State.ACCEPTED, State.SENDING}
"""The states of an operation that have events: all states that a client may be answered with."""

TEST: Final = "endpoint.test"
"""The test of one endpoint; it goes to that endpoint, whatever types it has, and to no other."""
STOPPED: Final = "endpoint.stopped"
"""The service sends no more events to an endpoint."""
REFUND_FAILED: Final = "payment.refund_failed"
"""A refund that the gateway had accepted has failed."""
PAID_AGAIN: Final = "order.paid_again"
"""An order that was paid got a further payment."""

TYPES: Final = frozenset(
    {
        *(f"operation.{state}" for state in PUBLISHED_STATES),
        "payment.charged_back",
        REFUND_FAILED,
        PAID_AGAIN,
        *(
            f"subscription.{change}"
            for change in ("updated", "installment_paid", "installment_failed", "completed", "stopped")
        ),
        *(f"customer.{change}" for change in ("created", "updated", "removed", "erased")),
        *(f"checkout.{change}" for change in ("completed", "notified", "failed", "cancelled", "expired")),
        TEST,
        STOPPED,
    }
)
"""Every type of event that there is."""

_CHANGES: Final = frozenset((event, after) for (before, event), after in TRANSITIONS.items() if before is not after)
"""Events with the other states that they can lead to; a status inquiry that resolves nothing is not among them."""

_DIGEST_LENGTH: Final = 20
"""The hex digits behind the time in an id, as many as other ids have."""


class OutgoingEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event before it has a position in the feed.

    Attributes:
        id: ``evt_…``; equal for every attempt to send the event.
        type: ``<noun>.<what happened>``, such as ``customer.created``.
        account: the gateway account of the change.
        merchant: the merchant of that account.
        principal: the principal that gets the event.
        subject: what it is about, such as ``customer:cus_…``; events of one subject are delivered in their order.
        at_ms: the time of the change, in milliseconds since 1970, UTC.
        data: further data for the receiver.
        traceparent: the W3C trace context of the change; None where tracing was off.
    """

    id: str
    type: str
    account: str
    merchant: str
    principal: str
    subject: str
    at_ms: int
    data: dict[str, Plain]
    traceparent: str | None = None


class PublishedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that has its position in the feed; the other members are those of ``OutgoingEvent``."""

    position: int
    id: str
    type: str
    account: str
    merchant: str
    principal: str
    subject: str
    at_ms: int
    data: dict[str, Plain]
    traceparent: str | None = None


def event_id(at_ms: int, cause: str) -> str:
    """Makes the id of an event from its time and cause: equal for equal arguments; ids sort by time."""
    digest = hashlib.sha256(cause.encode()).hexdigest()
    return f"evt_{at_ms:012x}{digest[:_DIGEST_LENGTH]}"


def of_operation(operation: Operation, entry: JournalEntry) -> OutgoingEvent | None:
    """Gives the event of a change of an operation; None where its state has no event.

    ``entry`` is the newest journal entry. An entry that may have changed the state has an event even where it did not,
    such as a late reply to an operation that already needed an operator. So has the first entry of a held operation.
    """
    is_held_first = entry.event is None and operation.state is State.HELD
    is_change = entry.event is not None and (entry.event, operation.state) in _CHANGES
    if operation.state not in PUBLISHED_STATES or not (is_held_first or is_change):
        return None
    amount_minor = operation.amount_minor
    return OutgoingEvent(
        id=event_id(entry.at_ms, f"{operation.id}/{operation.version}"),
        type=f"operation.{operation.state}",
        account=operation.account,
        merchant=operation.merchant,
        principal=operation.principal,
        subject=f"operation:{operation.id}",
        at_ms=entry.at_ms,
        data={
            "operation_id": operation.id,
            "kind": operation.kind.value,
            "state": operation.state.value,
            "version": operation.version,
            "order_id": operation.order_id,
            "payment_id": operation.payment_id,
            "subscription_id": operation.subscription_id,
            "customer_id": operation.customer_id,
            "amount": None if amount_minor is None else decimal_text(amount_minor),
            "currency": operation.currency,
            "request_id": operation.request_id,
        },
        traceparent=entry.evidence.traceparent,
    )
