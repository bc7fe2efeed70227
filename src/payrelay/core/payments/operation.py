"""The life of an operation: states, events, and the one table that joins them.

Rules:

1. Whatever brings news of an operation (the reply, a crash found at start, settling, a notification, an operator)
   becomes an ``Event`` and goes through ``advance``. Nobody else changes a state. What else follows from it is decided
   in ``core.payments.changes``, which alone calls ``advance``.
2. What the table ``TRANSITIONS`` lacks is an error that names state and event. Nothing falls through.
3. ``unknown`` is a state. It is left by evidence, never by time alone.
4. Only a final state has an answer that freezes; ``not_sent`` has none: the same request begins anew.

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
        """The word for this kind in rows and hashes. It never changes: rows of every version stay readable."""
        return _STORED_KINDS.get(self, self.value)


_STORED_KINDS: Final = {Kind.VOID: "release"}
"""Kinds whose stored word differs from the public one: the first version called a void a release."""


class State(StrEnum):
    """Where an operation stands."""

    ACCEPTED = "accepted"
    """On disk, waiting for a place in the gateway's budget; nothing was sent."""
    SENDING = "sending"
    """On disk with its ``send_by``; it may have been sent."""
    SUCCEEDED = "succeeded"
    """It took effect, exactly as asked."""
    DECLINED = "declined"
    """The gateway or the bank refused the money."""
    REFUSED = "refused"
    """The gateway won't do what was asked."""
    NOT_SENT = "not_sent"
    """It took no effect: it never left, or was turned away before anything was done."""
    PENDING = "pending"
    """The gateway says that it is pending."""
    UNKNOWN = "unknown"
    """It may have taken effect; evidence is awaited."""
    NEEDS_ATTENTION = "needs_attention"
    """Evidence can't settle it; a person must."""
    FAILED = "failed"
    """Proved, or decided by a person, not to have taken effect."""


class Event(StrEnum):
    """What can become known of an operation."""

    GRANTED = "granted"
    """A place in the gateway's budget was given, and the intent to send committed."""
    GAVE_UP = "gave_up"
    """No place came in time, or the process died while waiting."""
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
    """The process that was sending it is gone, or its time is over."""
    RETRIED = "resent"
    """Turned away for its access token alone, and about to be sent once more with a new one."""
    INQUIRED_ABOUT = "looked"
    """The gateway was asked what became of it; that alone settles nothing."""
    RESENT_TO_RESOLVE = "probing"
    """About to be sent once more because that can't do it twice: a capture, a cancellation."""
    PROVED = "proved"
    """Evidence at the gateway shows that it took effect."""
    DISPROVED = "disproved"
    """Evidence at the gateway shows that it took no effect."""
    UNCLEAR = "unclear"
    """No evidence can settle it, or what there is contradicts itself."""
    REAPPEARED = "reappeared"
    """Shown after all, when it had been taken for proved that it took no effect."""
    DECIDED_SUCCEEDED = "decided_succeeded"
    """A person decided, for a reason, that it took effect."""
    DECIDED_FAILED = "decided_failed"
    """A person decided, for a reason, that it took no effect."""


TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    (State.ACCEPTED, Event.GRANTED): State.SENDING,
    (State.ACCEPTED, Event.GAVE_UP): State.NOT_SENT,
    (State.SENDING, Event.RETRIED): State.SENDING,
    (State.SENDING, Event.SUCCEEDED): State.SUCCEEDED,
    (State.SENDING, Event.DECLINED): State.DECLINED,
    (State.SENDING, Event.REFUSED): State.REFUSED,
    (State.SENDING, Event.PENDING): State.PENDING,
    (State.SENDING, Event.UNKNOWN): State.UNKNOWN,
    (State.SENDING, Event.DIFFERED): State.NEEDS_ATTENTION,
    (State.SENDING, Event.NOT_EXECUTED): State.NOT_SENT,
    (State.SENDING, Event.NOT_SENT): State.NOT_SENT,
    (State.SENDING, Event.LOST): State.UNKNOWN,
    # The reply may come after its own process was given up for lost: it is still the best evidence there is.
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
    # A reply that comes so late is still about this very call, and nobody has decided yet.
    (State.NEEDS_ATTENTION, Event.SUCCEEDED): State.SUCCEEDED,
    (State.NEEDS_ATTENTION, Event.DECLINED): State.DECLINED,
    (State.NEEDS_ATTENTION, Event.REFUSED): State.REFUSED,
    (State.NEEDS_ATTENTION, Event.NOT_EXECUTED): State.NOT_SENT,
    (State.NEEDS_ATTENTION, Event.NOT_SENT): State.NOT_SENT,
    (State.NEEDS_ATTENTION, Event.PENDING): State.NEEDS_ATTENTION,
    (State.NEEDS_ATTENTION, Event.UNKNOWN): State.NEEDS_ATTENTION,
    (State.NEEDS_ATTENTION, Event.DIFFERED): State.NEEDS_ATTENTION,
    # What was taken for failed, and shows itself after all, was told to somebody: that is for a person.
    (State.FAILED, Event.INQUIRED_ABOUT): State.FAILED,
    (State.FAILED, Event.REAPPEARED): State.NEEDS_ATTENTION,
    (State.FAILED, Event.SUCCEEDED): State.NEEDS_ATTENTION,
    (State.FAILED, Event.DIFFERED): State.NEEDS_ATTENTION,
}

OPEN_STATES: Final = frozenset({State.ACCEPTED, State.SENDING, State.PENDING, State.UNKNOWN, State.NEEDS_ATTENTION})
"""What became of it is open: the guard is held, and the idempotency key has no end."""

FINAL: Final = frozenset(State) - OPEN_STATES
"""Nothing more is awaited."""

FROZEN: Final = FINAL - {State.NOT_SENT}
"""The answer is kept under its Idempotency-Key; ``not_sent`` gives the key back."""

INQUIRED: Final = frozenset({State.UNKNOWN, State.PENDING})
"""The gateway is asked again and again what became of it."""

SEARCHED: Final = frozenset({Kind.CHARGE, Kind.REFUND, Kind.RETRY})
"""What shows itself, or doesn't, among the payments of an order or a subscription."""

TAKING: Final = frozenset({Kind.CHARGE, Kind.AUTHORIZATION, Kind.CAPTURE, Kind.RETRY})
"""They take or hold money: a payment belongs to them, and the gateway may notify of it."""

WITHOUT_EFFECT: Final = frozenset({State.DECLINED, State.REFUSED, State.NOT_SENT, State.FAILED})
"""No payment can belong to what stands there."""

FIRST_INQUIRY_MS: Final = 1_000
"""After an outcome was lost; with the pace of the worker it is asked for within 2 s."""

EVENT_OF_OUTCOME: Final[dict[OutcomeKind, Event]] = {kind: Event(kind.value) for kind in OutcomeKind}


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One effect that a client asked for, as it stands now.

    Attributes:
        id: ``op_`` and 32 hex digits that sort by time of creation.
        account: the configured name under which it was asked for.
        merchant: the merchant account at the gateway, the same under every name; what the guard is about.
        principal: the named key that asked.
        kind: what it does.
        state: where it stands.
        version: starts at 1, one more with every change; a writer names the one that it read.
        subject: what it acts on, free of secrets: ``order/…``, ``authorization/<hash>``, ``payment/…``,
            ``subscription/…``.
        guard: the lock that it holds per merchant: its subject while unsettled, ``captured/<subject>`` for good once
            a hold is captured, else None.
        claim: what makes a repeat find it, per principal: ``key/…`` or ``fingerprint/…``; None when given back.
        claim_ends_at_ms: when the claim lapses; None while it has no end.
        idempotency_key: as the client gave it, unquoted; None where it gave none.
        fingerprint: of the request, 64 hex digits.
        request_id: of the request that began it.
        order_id, payment_id, subscription_id: ids that are known of it, asked or answered.
        amount_minor, currency: asked, where it names them.
        result_ref: hash of the authorization token that it yielded; None otherwise.
        created_at_ms, updated_at_ms: milliseconds since 1970, UTC.
        send_by_ms: nothing of it is sent after this time.
        inquire_at_ms: when the gateway is asked next what became of it; None where that is not to be asked.
        chain: the hash of its newest line of history, 64 hex digits; the store fills it in.
        customer_id: the stored customer that it was asked for by handle; None where it names none.
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
        """True when nothing more is awaited."""
        return self.state in FINAL


class OperationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which operations are listed: those that are equal in every field that is given."""

    principal: str | None = None
    account: str | None = None
    state: State | None = None
    kind: Kind | None = None
    order_id: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None
    customer_id: str | None = None


class OpenCount(msgspec.Struct, frozen=True):
    """How many operations are in a state, and when the oldest of them was made; None where there is none."""

    total: int = 0
    oldest_ms: int | None = None


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an operation's history; never changed, never removed.

    ``version`` is the operation's version that this line brought about. ``event`` is None on the first line.
    """

    version: int
    at_ms: int
    event: Event | None
    state: State
    evidence: Evidence


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long a settled operation is found by a repeat of its request; milliseconds."""

    keyed_ms: int
    """With an Idempotency-Key, from the final state on."""
    unkeyed_ms: int
    """Without one, from the success on; 0 turns it off."""


def advance(
    operation: Operation,
    event: Event,
    *,
    at_ms: int,
    retention: Retention,
    evidence: Evidence,
    inquire_at_ms: int | msgspec.UnsetType | None = msgspec.UNSET,
) -> tuple[Operation, JournalEntry]:
    """Decides what an event makes of an operation: the changed operation and the line for its history.

    ``inquire_at_ms`` is when the next status inquiry is due, None for never. Where it is unset, one is due after
    FIRST_INQUIRY_MS for an operation that becomes unknown or pending, on the next day for one that failed and could
    still appear at the gateway, and never for any other. None is ignored for an operation that is unknown or pending.
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


def _guard_after(operation: Operation, state: State) -> str | None:
    """Gives the lock that an operation holds in a state; a hold that was captured stays captured."""
    if state in OPEN_STATES:
        return operation.guard
    if operation.kind is Kind.CAPTURE and state is State.SUCCEEDED:
        return captured_guard(operation.subject)
    return None


def _inquiry_after(
    operation: Operation, state: State, at_ms: int, named_ms: int | msgspec.UnsetType | None
) -> int | None:
    """Gives when an operation that has just come to a state is asked for: as it was named, or by the state."""
    if state in INQUIRED:  # what is open is never forgotten
        return named_ms if isinstance(named_ms, int) else at_ms + FIRST_INQUIRY_MS
    if named_ms is not msgspec.UNSET:
        return named_ms
    # Nothing shows a refund of a part.
    can_show = operation.kind in SEARCHED and not (operation.kind is Kind.REFUND and operation.amount_minor is not None)
    return at_ms + DAY_MS if state is State.FAILED and can_show else None


def captured_guard(subject: str) -> str:
    """Names the lock that a successful capture of this authorization holds for good."""
    return f"captured/{subject}"


def _claim_after(operation: Operation, state: State, at_ms: int, retention: Retention) -> tuple[str | None, int | None]:
    """Gives the claim and when it ends.

    With a key every frozen answer is kept. Without one only a success is: what failed may be tried anew. The time runs
    from the state's beginning, so that a look that settles nothing prolongs nothing.
    """
    if state is operation.state:
        return operation.claim, operation.claim_ends_at_ms
    if state in OPEN_STATES:
        return operation.claim, None
    is_keyed = operation.idempotency_key is not None
    is_kept = state in FROZEN if is_keyed else state is State.SUCCEEDED
    if not is_kept or operation.claim is None:
        return None, None
    return operation.claim, at_ms + (retention.keyed_ms if is_keyed else retention.unkeyed_ms)
