"""Events: what is told to those who registered for it, once for each change of an operation, customer or checkout."""

import hashlib
from typing import Final, TypeAlias

import msgspec

from payrelay.core.money import decimal_text
from payrelay.core.payments.operation import TRANSITIONS, JournalEntry, Operation, State

Plain: TypeAlias = str | int | bool | None
"""What an event's data may hold; nothing secret, and of a person nothing but what an answer shows too."""

TOLD: Final = frozenset(State) - {State.ACCEPTED, State.SENDING}
"""The states of an operation that are told: all that an answer to its client may come from."""

TEST: Final = "endpoint.test"
"""Tries one endpoint; it goes to that one, whatever types it wants, and to no other."""
STOPPED: Final = "endpoint.stopped"
"""Nothing more is sent to an endpoint."""

TYPES: Final = frozenset(
    {
        *(f"operation.{state}" for state in TOLD),
        "payment.charged_back",
        *(
            f"subscription.{what}"
            for what in ("updated", "installment_paid", "installment_failed", "completed", "stopped")
        ),
        *(f"customer.{what}" for what in ("created", "updated", "removed", "erased")),
        *(f"checkout.{what}" for what in ("completed", "failed", "cancelled", "expired")),
        TEST,
        STOPPED,
    }
)
"""Every type of event that there is."""

_CHANGES: Final = frozenset((event, after) for (before, event), after in TRANSITIONS.items() if before is not after)
"""What brings an operation to another state; a look that saw nothing new, for one, doesn't."""

_DIGEST_LENGTH: Final = 20
"""Hex digits behind the time, as many as other ids have."""


class OutgoingEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened, as it is told.

    Attributes:
        id: ``evt_…``; the same however often it is sent.
        type: ``<noun>.<what happened>``, such as ``customer.created``.
        account: the gateway account that it happened on.
        merchant: whose account that is.
        principal: who is told of it.
        subject: what it is about, such as ``customer:cus_…``; events of one subject are told in their order.
        at_ms: when, in milliseconds since 1970, UTC.
        data: what the receiver is told beyond that.
    """

    id: str
    type: str
    account: str
    merchant: str
    principal: str
    subject: str
    at_ms: int
    data: dict[str, Plain]


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


def event_id(at_ms: int, cause: str) -> str:
    """Makes the id of the event that a cause brings about: the same for the same cause, and ids sort by time."""
    digest = hashlib.sha256(cause.encode()).hexdigest()
    return f"evt_{at_ms:012x}{digest[:_DIGEST_LENGTH]}"


def of_operation(operation: Operation, entry: JournalEntry) -> OutgoingEvent | None:
    """Gives what is told of a change of an operation; None where it came to no state that is told.

    The line is the one that made the operation what it is now. One that may have changed the state is told even where
    it did not: what came late to an operation that needed a person already, for one.
    """
    if operation.state not in TOLD or entry.event is None or (entry.event, operation.state) not in _CHANGES:
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
        },
    )
