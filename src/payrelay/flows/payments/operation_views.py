"""An operation as a client sees it, with sentences that can be read out to a customer."""

import msgspec

from payrelay.core.moments import rfc3339
from payrelay.core.money import amount_json
from payrelay.core.orders.chargeback import Chargeback
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.explanations import sentence_with_evidence
from payrelay.core.payments.operation import JournalEntry, Kind, Operation, State
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.core.views import view_of


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
    kind: Kind
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
    """A payment that the bank took back, as the gateway notified; it doesn't change the operation's state.

    ``amount`` is what the bank took: of a part, the part.
    """

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
    return view_of(operation, OperationView, explanation=STATE_SENTENCES[operation.state])


def chargeback_view(chargeback: Chargeback) -> ChargebackView:
    """Returns a chargeback as a client sees it."""
    amount = amount_json(chargeback.charged_back_minor)
    return view_of(chargeback, ChargebackView, amount=amount, at=rfc3339(chargeback.noted_at_ms))


def history_entry(entry: JournalEntry) -> HistoryEntry:
    """Returns a journal entry as a client sees it."""
    return view_of(entry, HistoryEntry, text=sentence_with_evidence(entry))
