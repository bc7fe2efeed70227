"""Answers a request from a stored operation: a repeat, or a request whose outcome is not known yet."""

from http import HTTPStatus
from typing import Final

import msgspec

from payrelay.core.access.bounds import has_operation
from payrelay.core.answers import OPERATION_HEADER, REPLAYED, Answer, Trace, failed
from payrelay.core.money import money_text
from payrelay.core.payments.idempotency import Repeat, decide_repeat
from payrelay.core.payments.operation import (
    AWAITS_OPERATOR,
    CLEARABLE,
    INQUIRED,
    OPEN_STATES,
    WITHOUT_EFFECT,
    Kind,
    Operation,
    State,
    captured_guard,
)
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.errors import Code, Refusal, StillRunning
from payrelay.flows.operations.intent import Intent
from payrelay.flows.relay import Relay, Request
from payrelay.flows.resolution.resolve import inquire_now
from payrelay.store.payments.journal import ClaimedOperation, EqualRequest, GuardedOperation

CODES_OF_OPEN: Final = {
    State.PENDING: Code.PENDING,
    State.NEEDS_ATTENTION: Code.NEEDS_ATTENTION,
    State.HELD: Code.NEEDS_ATTENTION,
}
"""The code of an operation that has no outcome yet, beside the unknown one."""
_NAMED_BY: Final = {
    Kind.CHARGE: "order_id",
    Kind.AUTHORIZATION: "order_id",
    Kind.REFUND: "payment_id",
    Kind.RETRY: "subscription_id",
    Kind.CANCEL: "subscription_id",
}
"""What an operation acts on, and is found by."""
RETRY_AFTER_S: Final = {State.PENDING: 10, State.UNKNOWN: 10, State.NEEDS_ATTENTION: 3_600, State.HELD: 3_600}
"""Retry-After for a repeat of an open operation, and for another request that its guard blocks. While the operation is
under way it is the usual second."""
OTHER_ORDER_SENTENCE: Final = "another order id is another order, and then nothing keeps the customer from paying twice"
RETRY_AFTER_S_MAX: Final = 3_600
"""However late the next look at the gateway is: a notification or a person may be earlier."""
FOREIGN_RETRY_AFTER_S: Final = 10
"""Retry-After for a request that is blocked by the guard of another caller's operation, whatever its state: the caller
learns nothing of it."""


async def find_earlier(relay: Relay, request: Request, claim: str | None) -> ClaimedOperation | None:
    """Finds the operation of an equal claim. Raises OperationForged, StoreUnavailable."""
    if claim is None:
        return None
    return await relay.journal.find_claim(request.principal, claim, now_ms=relay.clock.now_ms())


async def find_equal(
    relay: Relay,
    request: Request,
    intent: Intent,
    fingerprint: str,
    *,
    but_for: str = "",
    asked_at_ms: int | None = None,
) -> ClaimedOperation | None:
    """Finds the operation that a request without a key repeats, whatever key its first request had.

    It is the newest of the same principal that an equal request asked for within the repeat window, where that one
    succeeded or may have, and didn't fail later. None for a request with a key. ``but_for`` is the id of the request's
    own operation, and ``asked_at_ms`` the time of a request that isn't made now. Raises OperationForged,
    StoreUnavailable.
    """
    if request.idempotency_key is not None or relay.settings.retention.unkeyed_ms == 0:
        return None
    now_ms = relay.clock.now_ms() if asked_at_ms is None else asked_at_ms
    since_ms = now_ms - relay.settings.retention.unkeyed_ms + 1
    if intent.kind is Kind.CAPTURE:  # one for each authorization, whose guard it keeps
        merchant = relay.account(request.account).merchant
        guarded = await relay.journal.find_guard(merchant, captured_guard(intent.subject))
        if (
            guarded is None
            or not _is_equal(guarded, request, fingerprint)
            or guarded.operation.created_at_ms < since_ms
        ):
            return None
        return ClaimedOperation(guarded.operation, await relay.journal.answer_of(guarded.operation.id))
    column = _NAMED_BY.get(intent.kind)
    equal = EqualRequest(
        principal=request.principal,
        fingerprint=fingerprint,
        column=column or "account",
        named=request.account if column is None else getattr(intent, column),
    )
    found = await relay.journal.newest_equal(equal, since_ms=since_ms, but_for=but_for)
    if found is None or found.operation.state in WITHOUT_EFFECT:
        return None
    has_failed = intent.kind is Kind.REFUND and await relay.journal.has_failed(found.operation)
    return None if has_failed else found


def _is_equal(holder: GuardedOperation, request: Request, fingerprint: str) -> bool:
    return (holder.operation.principal, holder.operation.fingerprint) == (request.principal, fingerprint)


def answer_repeat(relay: Relay, earlier: ClaimedOperation, request: Request, fingerprint: str) -> Answer:
    """Answers a repeat, and begins a status inquiry where the outcome is open; raises as ``stored_answer`` does."""
    inquire_now(relay, earlier.operation)
    return stored_answer(earlier, request, fingerprint)


def answer_blocked(
    relay: Relay, holder: ClaimedOperation | GuardedOperation, request: Request, fingerprint: str
) -> Answer:
    """Answers a request whose claim or guard another operation holds.

    Raises Refusal where the guard is held, and as ``stored_answer`` does where the claim is.
    """
    if isinstance(holder, ClaimedOperation):
        return answer_repeat(relay, holder, request, fingerprint)
    other = holder.operation
    is_own = other.principal == request.principal and has_operation(request.credential.bound, other)
    operation_id = other.id if is_own else None
    is_unkeyed = request.idempotency_key is None and relay.settings.retention.unkeyed_ms > 0
    if is_unkeyed and other.state in OPEN_STATES and _is_equal(holder, request, fingerprint):
        return answer_repeat(relay, ClaimedOperation(other, None), request, fingerprint)
    if other.state not in OPEN_STATES:
        done = "voided" if other.kind is Kind.VOID else "captured"
        amount = money_text(other.amount_minor, other.currency) if is_own and other.kind is Kind.CAPTURE else ""
        msg = f"this authorization is already {done}{amount and f': {amount}'}"
        raise Refusal(Code.CONFLICT, msg, operation_id=operation_id)
    raise Refusal(
        Code.IN_PROGRESS,
        f"an operation on the same {other.subject.partition('/')[0]} is not final yet",
        retry_after_s=retry_after_s(other, relay.clock.now_ms()) if is_own else FOREIGN_RETRY_AFTER_S,
        operation_id=operation_id,
    )


def charge_in_the_way(relay: Relay, holder: GuardedOperation, request: Request) -> Refusal:
    """Makes the refusal of a page of an order, a charge or authorization of which is open."""
    other = holder.operation
    is_own = other.principal == request.principal and has_operation(request.credential.bound, other)
    if not is_own:
        msg = f"a payment of this order is not final yet; {OTHER_ORDER_SENTENCE}"
        return Refusal(Code.IN_PROGRESS, msg, retry_after_s=FOREIGN_RETRY_AFTER_S)
    way_out = (
        "a person decides about it"
        if other.state in AWAITS_OPERATOR
        else "send that request again, with its Idempotency-Key, to learn its outcome"
    )
    return Refusal(
        Code.IN_PROGRESS,
        f"the {other.kind} {other.id} of this order is not final yet: {way_out}; {OTHER_ORDER_SENTENCE}",
        retry_after_s=retry_after_s(other, relay.clock.now_ms()),
        operation_id=other.id,
    )


def retry_after_s(operation: Operation, now_ms: int) -> int | None:
    """Gives when to come again for what an open operation blocks: after the next look at the gateway, where one is due.

    None for the usual second of an operation that is under way.
    """
    if operation.inquire_at_ms is not None and operation.state in INQUIRED:
        return seconds_until(operation.inquire_at_ms, now_ms)
    return RETRY_AFTER_S.get(operation.state)


def seconds_until(at_ms: int, now_ms: int) -> int:
    """Gives a Retry-After that ends at a time, of 1 to RETRY_AFTER_S_MAX seconds."""
    return min(max(-(-(at_ms - now_ms) // 1000), 1), RETRY_AFTER_S_MAX)


def stored_answer(earlier: ClaimedOperation, request: Request, fingerprint: str) -> Answer:
    """Answers a repeat with the stored answer (a replay), or with the operation's present state.

    Raises StillRunning while the first request is under way. Raises Refusal where the key came with another request,
    and where the answer is no longer kept: what the repeat asks for is not done again.
    """
    operation = earlier.operation
    repeat = decide_repeat(operation, fingerprint)
    if repeat is Repeat.IN_PROGRESS:
        raise StillRunning(operation.id)
    if earlier.answer is None and operation.state in CLEARABLE:
        sentence = STATE_SENTENCES[operation.state]
        msg = f"this request was made before, and its answer is no longer kept. {sentence}"
        raise Refusal(Code.CONFLICT, msg, operation_id=operation.id)
    if repeat is Repeat.STATE or earlier.answer is None:
        return answer_of_state(operation, request.request_id, state=operation.state)
    return msgspec.structs.replace(earlier.answer, headers=((OPERATION_HEADER, operation.id), REPLAYED))


def answer_of_state(operation: Operation, request_id: str, *, state: State) -> Answer:
    """Answers 202 with what is known of an operation whose outcome is open."""
    code = CODES_OF_OPEN.get(state, Code.OUTCOME_UNKNOWN)
    trace = Trace(request_id=request_id, operation_id=operation.id)
    answer = failed(code, STATE_SENTENCES[state], trace, retry_after_s=RETRY_AFTER_S.get(state))
    return with_operation_headers(answer, operation)


def with_operation_headers(answer: Answer, operation: Operation) -> Answer:
    """Adds the header that names the operation; to a 202 also a Location, where a client can follow it."""
    headers: tuple[tuple[str, str], ...] = ((OPERATION_HEADER, operation.id),)
    if answer.http_status == HTTPStatus.ACCEPTED:
        headers = (*headers, ("Location", f"/{operation.account}/api/operations/{operation.id}"))
    return msgspec.structs.replace(answer, headers=headers)
