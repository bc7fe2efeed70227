"""An operation as a client sees it, with sentences that can be read out to a customer."""

import msgspec

from payrelay.core.moments import rfc3339
from payrelay.core.money import amount_json
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.explanations import sentence_with_evidence
from payrelay.core.payments.operation import JournalEntry, Operation, State
from payrelay.core.payments.sentences import STATE_SENTENCES


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One journal entry as a client sees it."""

    at: str
    state: State
    text: str
    evidence: Evidence


class FinishedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer that a repeat of the request gets."""

    http_status: int
    body: msgspec.Raw


class OperationView(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as a client sees it; times are RFC 3339 in UTC, ``amount`` is the amount of the request."""

    id: str
    kind: str
    state: State
    explanation: str
    is_final: bool
    account: str
    principal: str
    idempotency_key: str | None
    request_id: str
    order_id: str | None
    payment_id: str | None
    subscription_id: str | None
    customer_id: str | None
    amount: msgspec.Raw
    currency: str | None
    created_at: str
    updated_at: str
    send_by: str


class ChargebackView(msgspec.Struct, frozen=True, kw_only=True):
    """A payment that the bank took back, as the gateway notified; it doesn't change the operation's state."""

    payment_id: str
    amount: msgspec.Raw
    currency: str
    at: str
    notification_id: str


class OperationDetail(OperationView, frozen=True, kw_only=True):
    """An operation with all that is known of it; only the operation's own principal is shown ``answer``."""

    history: list[HistoryEntry]
    chargebacks: list[ChargebackView]
    answer: FinishedAnswer | None


def view(operation: Operation) -> OperationView:
    """Returns an operation as a client sees it in a list."""
    return OperationView(
        id=operation.id,
        kind=operation.kind,
        state=operation.state,
        explanation=STATE_SENTENCES[operation.state],
        is_final=operation.is_final,
        account=operation.account,
        principal=operation.principal,
        idempotency_key=operation.idempotency_key,
        request_id=operation.request_id,
        order_id=operation.order_id,
        payment_id=operation.payment_id,
        subscription_id=operation.subscription_id,
        customer_id=operation.customer_id,
        amount=amount_json(operation.amount_minor),
        currency=operation.currency,
        created_at=rfc3339(operation.created_at_ms),
        updated_at=rfc3339(operation.updated_at_ms),
        send_by=rfc3339(operation.send_by_ms),
    )


def history_entry(entry: JournalEntry) -> HistoryEntry:
    """Returns a journal entry as a client sees it."""
    return HistoryEntry(
        at=rfc3339(entry.at_ms), state=entry.state, text=sentence_with_evidence(entry), evidence=entry.evidence
    )
