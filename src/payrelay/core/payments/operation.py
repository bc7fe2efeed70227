"""The life of an operation: states, events, and the one table that joins them.

Rules:

1. Every source of evidence (a reply, a crash found at start, resolution, a notification, an operator) becomes an
   ``Event`` and goes through ``advance``. Nothing else changes a state. ``core.payments.changes``, which alone calls
   ``advance``, decides all further consequences of an event.
2. A step that the table ``TRANSITIONS`` lacks is an error that names state and event. Nothing falls through.
3. ``unknown`` is a state. An operation leaves it by evidence, never by time alone.
4. Only a final state freezes an answer. ``not_sent`` freezes none: an equal request begins anew.

To be changed together: ``TRANSITIONS``, the sets of states below it, the partial indexes of the table ``operations``
in the store, and the diagram in ``docs/operations.md``, which a test compares with this table.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import IllegalTransition


class Kind(StrEnum):
    """What an operation does at the gateway."""

    CHARGE = "charge"
    AUTHORIZATION = "authorization"
    CAPTURE = "capture"
    REFUND = "refund"
    VOID = "void"
    RETRY = "retry"
    CANCEL = "cancel"

    @property
    def stored(self) -> str:
        """The word for this kind in rows and hashes. It never changes: it is in hashes."""
        return _STORED_KINDS[self]


_STORED_KINDS: Final = {kind: kind.value for kind in Kind} | {Kind.VOID: "release"}
"""The stored word for a void is another one than the public one, and is in hashes."""


class State(StrEnum):
    """The state of an operation."""

    ACCEPTED = "accepted"
    """The intent is on disk, and waits for a permit in the gateway's budget; nothing was sent."""
    SENDING = "sending"
    """The intent is on disk with its ``send_by``; the operation may have been sent."""
    SUCCEEDED = "succeeded"
    """The operation took effect, exactly as requested."""
    DECLINED = "declined"
    """The gateway or the bank declined the charge."""
    REFUSED = "refused"
    """The gateway refused the request."""
    NOT_SENT = "not_sent"
    """The operation took no effect: it was never sent, or was rejected before execution."""
    PENDING = "pending"
    """The gateway says that the operation is pending."""
    UNKNOWN = "unknown"
    """The operation may have taken effect; evidence is awaited."""
    NEEDS_ATTENTION = "needs_attention"
    """Evidence can't resolve the operation; an operator must decide."""
    HELD = "held"
    """Nothing was sent for it, and an earlier try may be lost with commits of the database; an operator must decide."""
    FAILED = "failed"
    """Evidence proved, or an operator decided, that the operation took no effect."""


class Event(StrEnum):
    """What can become known of an operation."""

    GRANTED = "granted"
    """The operation got a permit in the gateway's budget, and the intent to send it was committed."""
    GAVE_UP = "gave_up"
    """No permit came in time, or the process died while the operation waited."""
    SUCCEEDED = "succeeded"
    DECLINED = "declined"
    REFUSED = "refused"
    PENDING = "pending"
    UNKNOWN = "unknown"
    """No readable answer came."""
    DIFFERED = "differed"
    """A success for another order, amount or currency."""
    NOT_EXECUTED = "not_executed"
    NOT_SENT = "not_sent"
    LOST = "lost"
    """The process that was sending the operation has ended, or its time is over."""
    RESENT = "resent"
    """The gateway rejected the access token before execution; the service is about to retry with a new one."""
    INQUIRED_ABOUT = "looked"
    """The service made a status inquiry, which resolved nothing."""
    RESENT_TO_RESOLVE = "probing"
    """The service is about to resend a capture or a cancellation, which the gateway can't do twice."""
    PROVED = "proved"
    """Evidence at the gateway shows that it took effect."""
    DISPROVED = "disproved"
    """Evidence at the gateway shows that it took no effect."""
    UNCLEAR = "unclear"
    """No evidence can resolve the operation, or the evidence contradicts itself."""
    REAPPEARED = "reappeared"
    """Evidence of the effect came after the operation had failed."""
    DECIDED_SUCCEEDED = "decided_succeeded"
    """An operator decided, and gave a reason, that the operation took effect."""
    DECIDED_FAILED = "decided_failed"
    """An operator decided, and gave a reason, that the operation took no effect."""
    DECIDED_SEND = "decided_send"
    """An operator decided, and gave a reason, that a held operation is sent; it has its permit."""
    DECIDED_REFUSE = "decided_refuse"
    """An operator decided, and gave a reason, that a held operation is not sent."""


TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    (State.ACCEPTED, Event.GRANTED): State.SENDING,
    (State.ACCEPTED, Event.GAVE_UP): State.NOT_SENT,
    # In a recovery: the gateway shows what an earlier try did, whose operation was lost. Nothing is sent for this one.
    (State.ACCEPTED, Event.PROVED): State.SUCCEEDED,
    (State.SENDING, Event.RESENT): State.SENDING,
    (State.SENDING, Event.SUCCEEDED): State.SUCCEEDED,
    (State.SENDING, Event.DECLINED): State.DECLINED,
    (State.SENDING, Event.REFUSED): State.REFUSED,
    (State.SENDING, Event.PENDING): State.PENDING,
    (State.SENDING, Event.UNKNOWN): State.UNKNOWN,
    (State.SENDING, Event.DIFFERED): State.NEEDS_ATTENTION,
    (State.SENDING, Event.NOT_EXECUTED): State.NOT_SENT,
    (State.SENDING, Event.NOT_SENT): State.NOT_SENT,
    (State.SENDING, Event.LOST): State.UNKNOWN,
    # The reply may come after another process took the sending process for lost. It is still the best evidence.
    (State.UNKNOWN, Event.SUCCEEDED): State.SUCCEEDED,
    (State.UNKNOWN, Event.DECLINED): State.DECLINED,
    (State.UNKNOWN, Event.REFUSED): State.REFUSED,
    (State.UNKNOWN, Event.PENDING): State.PENDING,
    (State.UNKNOWN, Event.UNKNOWN): State.UNKNOWN,
    (State.UNKNOWN, Event.DIFFERED): State.NEEDS_ATTENTION,
    (State.UNKNOWN, Event.NOT_EXECUTED): State.NOT_SENT,
    (State.UNKNOWN, Event.NOT_SENT): State.NOT_SENT,
    **{
        (state, event): after
        for state in (State.UNKNOWN, State.PENDING)
        for event, after in (
            (Event.INQUIRED_ABOUT, state),
            (Event.RESENT_TO_RESOLVE, state),
            (Event.PROVED, State.SUCCEEDED),
            (Event.DISPROVED, State.FAILED),
            (Event.UNCLEAR, State.NEEDS_ATTENTION),
            (Event.DECIDED_SUCCEEDED, State.SUCCEEDED),
            (Event.DECIDED_FAILED, State.FAILED),
        )
    },
    (State.NEEDS_ATTENTION, Event.INQUIRED_ABOUT): State.NEEDS_ATTENTION,
    (State.NEEDS_ATTENTION, Event.DECIDED_SUCCEEDED): State.SUCCEEDED,
    (State.NEEDS_ATTENTION, Event.DECIDED_FAILED): State.FAILED,
    # A reply that comes so late is still the reply to this very call, and no operator has decided yet.
    (State.NEEDS_ATTENTION, Event.SUCCEEDED): State.SUCCEEDED,
    (State.NEEDS_ATTENTION, Event.DECLINED): State.DECLINED,
    (State.NEEDS_ATTENTION, Event.REFUSED): State.REFUSED,
    (State.NEEDS_ATTENTION, Event.NOT_EXECUTED): State.NOT_SENT,
    (State.NEEDS_ATTENTION, Event.NOT_SENT): State.NOT_SENT,
    (State.NEEDS_ATTENTION, Event.PENDING): State.NEEDS_ATTENTION,
    (State.NEEDS_ATTENTION, Event.UNKNOWN): State.NEEDS_ATTENTION,
    (State.NEEDS_ATTENTION, Event.DIFFERED): State.NEEDS_ATTENTION,
    # Nothing was sent for it: its only outcome is that of an earlier try, which the database has lost.
    (State.HELD, Event.DECIDED_SUCCEEDED): State.SUCCEEDED,
    (State.HELD, Event.DECIDED_SEND): State.SENDING,
    (State.HELD, Event.DECIDED_REFUSE): State.NOT_SENT,
    # A client was told that the operation failed. Where its effect shows after all, an operator must decide.
    (State.FAILED, Event.INQUIRED_ABOUT): State.FAILED,
    (State.FAILED, Event.REAPPEARED): State.NEEDS_ATTENTION,
    (State.FAILED, Event.SUCCEEDED): State.NEEDS_ATTENTION,
    (State.FAILED, Event.DIFFERED): State.NEEDS_ATTENTION,
}

_STORED_STEPS: Final[dict[tuple[str, str | None], str]] = {
    (before.value, event.value): after.value for (before, event), after in TRANSITIONS.items()
}
FIRST_STATES: Final = frozenset({State.ACCEPTED, State.SENDING, State.HELD})
"""An operation begins in one of these."""

AWAITS_OPERATOR: Final = frozenset({State.NEEDS_ATTENTION, State.HELD})
"""Only an operator, or evidence that nobody expects any more, takes the operation further."""

OPEN_STATES: Final = AWAITS_OPERATOR | {State.ACCEPTED, State.SENDING, State.PENDING, State.UNKNOWN}
"""The operation has no outcome yet: it holds its guard, and its idempotency key has no end."""

FINAL: Final = frozenset(State) - OPEN_STATES
"""The operation has its outcome. Only ``failed`` can be reopened, where the effect shows after all."""

CLEARABLE: Final = frozenset(State) - {state for state, _ in TRANSITIONS}
"""No step leads on from these: what is stored of the operation may be cleared once it is old."""

FROZEN: Final = FINAL - {State.NOT_SENT}
"""The answer is stored under its Idempotency-Key; ``not_sent`` gives the key back."""

INQUIRED: Final = frozenset({State.UNKNOWN, State.PENDING})
"""The service makes status inquiries by its schedule."""

SEARCHED: Final = frozenset({Kind.CHARGE, Kind.REFUND, Kind.RETRY})
"""Kinds whose effect the payments of an order or a subscription can show."""

PAYMENT_KINDS: Final = frozenset({Kind.CHARGE, Kind.AUTHORIZATION, Kind.CAPTURE, Kind.RETRY})
"""Kinds that charge or reserve money: a payment belongs to each, and the gateway may notify of it."""

TAKING_KINDS: Final = PAYMENT_KINDS - {Kind.AUTHORIZATION}
"""Those of them that take money: an authorization only reserves it."""

WITHOUT_EFFECT: Final = frozenset({State.DECLINED, State.REFUSED, State.NOT_SENT, State.FAILED})
"""No payment can belong to an operation in one of these states."""

FIRST_INQUIRY_MS: Final = 1_000
"""From the loss of an outcome to the first status inquiry. With the worker's interval it is made within 2 s."""

SEND_WITHIN_S: Final = 10
"""From the commit of the intent to the last moment at which it may be sent: room for the commit (2 s), an access
token and a connection, and short enough that a client still waits."""

EVENT_OF_OUTCOME: Final[dict[OutcomeKind, Event]] = {kind: Event(kind.value) for kind in OutcomeKind}


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One effect that a client requested, with its present state.

    Attributes:
        id: ``op_`` and 32 hex digits that sort by time of creation.
        account: the configured name of the account under which it was requested.
        merchant: the merchant account at the gateway, equal for all its names; guards are unique within it.
        principal: the principal that requested it.
        kind: what it does.
        state: its state.
        version: starts at 1, one more with every change; a writer names the version that it read.
        subject: what it acts on, free of secrets: ``order/…``, ``authorization/<hash>``, ``payment/…``,
            ``subscription/…``.
        guard: the lock that it holds, unique for each merchant: its subject while the operation is open;
            ``captured/<subject>`` for good once an authorization is captured; else None.
        claim: what makes a repeat find it, unique for each principal: ``key/…`` or ``fingerprint/…``; None when given
            back.
        claim_ends_at_ms: when the claim lapses; None while it has no end.
        idempotency_key: as the client gave it, unquoted; None where it gave none.
        fingerprint: of the request, 64 hex digits.
        request_id: of the request that began it.
        order_id, payment_id, subscription_id: its known ids, from the request or a reply.
        amount_minor, currency: as requested, where the request names them.
        result_ref: hash of the authorization token that it yielded; None otherwise.
        created_at_ms, updated_at_ms: milliseconds since 1970, UTC.
        send_by_ms: it is not sent after this time.
        inquire_at_ms: when the next status inquiry is due; None where none is.
        chain: the hash of its newest journal entry, 64 hex digits; the store fills it in.
        customer_id: the stored customer whose handle the request names; None where it names none.
    """

    id: str
    account: str
    merchant: str
    principal: str
    kind: Kind
    state: State
    version: int
    subject: str
    guard: str | None
    claim: str | None
    claim_ends_at_ms: int | None
    idempotency_key: str | None
    fingerprint: str
    request_id: str
    order_id: str | None
    payment_id: str | None
    subscription_id: str | None
    amount_minor: int | None
    currency: str | None
    result_ref: str | None
    created_at_ms: int
    updated_at_ms: int
    send_by_ms: int
    inquire_at_ms: int | None = None
    chain: str = ""
    customer_id: str | None = None

    @property
    def is_final(self) -> bool:
        """True when the operation has its outcome."""
        return self.state in FINAL


class OperationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the operations to list: those that are equal in every field that is given."""

    principal: str | None = None
    account: str | None = None
    state: State | None = None
    kind: Kind | None = None
    order_id: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None
    customer_id: str | None = None


class OpenCount(msgspec.Struct, frozen=True):
    """How many operations are in a state, and when the oldest of them was created; None where there is none."""

    total: int = 0
    oldest_ms: int | None = None


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One journal entry of an operation; never changed, never removed.

    ``version`` is the operation's version after this entry. ``event`` is None in the first entry.
    """

    version: int
    at_ms: int
    event: Event | None
    state: State
    evidence: Evidence


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long a repeat of its request finds a final operation; milliseconds."""

    keyed_ms: int
    """With an Idempotency-Key, from the final state on."""
    unkeyed_ms: int
    """Without one, from the success on; 0 turns it off."""
    are_keys_free_again: bool = True
    """Whether an Idempotency-Key can be used anew after that. Else it stays taken, so that no repeat acts again."""


def advance(
    operation: Operation,
    event: Event,
    *,
    at_ms: int,
    retention: Retention,
    evidence: Evidence,
    inquire_at_ms: int | msgspec.UnsetType | None = msgspec.UNSET,
) -> tuple[Operation, JournalEntry]:
    """Decides what an event changes in an operation: gives the changed operation and its journal entry.

    ``inquire_at_ms`` is when the next status inquiry is due, None for never. Where it is unset, the new state decides.
    An unknown or pending operation has its inquiry after FIRST_INQUIRY_MS. A failed operation whose effect the gateway
    could still show has it on the next day; every other one has none. An unknown or pending operation ignores None.
    An event that leaves the state as it is leaves the claim as it is, with its end.
    Raises IllegalTransition, naming state and event, where the table knows no such step.
    """
    try:
        state = TRANSITIONS[operation.state, event]
    except KeyError:
        raise IllegalTransition(f"an operation that is {operation.state} can't take the event {event}") from None
    claim, claim_ends_at_ms = _claim_after(operation, state, at_ms, retention)
    changed = msgspec.structs.replace(
        operation,
        state=state,
        version=operation.version + 1,
        guard=_guard_after(operation, state),
        claim=claim,
        claim_ends_at_ms=claim_ends_at_ms,
        updated_at_ms=at_ms,
        inquire_at_ms=_inquiry_after(operation, state, at_ms, inquire_at_ms),
    )
    return changed, JournalEntry(version=changed.version, at_ms=at_ms, event=event, state=state, evidence=evidence)


def is_step(before: str | None, event: str | None, after: str) -> bool:
    """Tells whether a stored event leads from one stored state to another; an operation begins without either."""
    if before is None:
        return event is None and after in FIRST_STATES
    return _STORED_STEPS.get((before, event)) == after


def _guard_after(operation: Operation, state: State) -> str | None:
    """Gives the lock that an operation holds in a state; a captured or voided authorization stays locked for good."""
    if state in OPEN_STATES:
        return operation.guard
    if state is State.SUCCEEDED and _uses_up_authorization(operation):
        return captured_guard(operation.subject)
    return None


def _uses_up_authorization(operation: Operation) -> bool:
    """Tells whether nothing is left of an authorization after this; what the void of a part leaves isn't documented."""
    return operation.kind is Kind.CAPTURE or (operation.kind is Kind.VOID and operation.amount_minor is None)


def _inquiry_after(
    operation: Operation, state: State, at_ms: int, named_ms: int | msgspec.UnsetType | None
) -> int | None:
    """Gives when the next status inquiry is due for an operation in a new state: as named, or by the state."""
    if state in INQUIRED:  # an operation that awaits evidence always has a next inquiry
        return named_ms if isinstance(named_ms, int) else at_ms + FIRST_INQUIRY_MS
    if named_ms is not msgspec.UNSET:
        return named_ms
    # The gateway does not show a partial refund.
    can_show = operation.kind in SEARCHED and not (operation.kind is Kind.REFUND and operation.amount_minor is not None)
    return at_ms + DAY_MS if state is State.FAILED and can_show else None


def sending_ms(timeout_s: float) -> int:
    """Gives the longest time from the commit of an intent to the end of its call, in milliseconds."""
    return int((SEND_WITHIN_S + timeout_s) * 1000)


def claim_of_key(idempotency_key: str) -> str:
    """Names the claim of a request with an Idempotency-Key."""
    return f"key/{idempotency_key}"


def captured_guard(subject: str) -> str:
    """Names the lock that a successful capture, or a void of the whole, holds for good; the word is a stored one."""
    return f"captured/{subject}"


def _claim_after(operation: Operation, state: State, at_ms: int, retention: Retention) -> tuple[str | None, int | None]:
    """Gives the claim and when it ends.

    With a key, every frozen answer keeps its claim; it has no end where keys stay taken. Without a key, only a success
    does: a client may try again after a failure. The time runs from the beginning of the state. So an inquiry that
    resolves nothing does not prolong it.
    """
    if state is operation.state:
        return operation.claim, operation.claim_ends_at_ms
    if state in OPEN_STATES:
        return operation.claim, None
    is_keyed = operation.idempotency_key is not None
    is_kept = state in FROZEN if is_keyed else state is State.SUCCEEDED
    if not is_kept or operation.claim is None:
        return None, None
    if is_keyed and not retention.are_keys_free_again:
        return operation.claim, None
    return operation.claim, at_ms + (retention.keyed_ms if is_keyed else retention.unkeyed_ms)
