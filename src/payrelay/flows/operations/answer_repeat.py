"""Answers a request from a stored operation: a repeat, or a request whose outcome is not known yet."""

from http import HTTPStatus
from typing import Final

import msgspec

from payrelay.core.access.bounds import has_operation
from payrelay.core.answers import OPERATION_HEADER, REPLAYED, Answer, Trace, failed
from payrelay.core.payments.idempotency import Repeat, decide_repeat
from payrelay.core.payments.operation import CLEARABLE, OPEN_STATES, Kind, Operation, State, claim_of_key
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.errors import Code, Refusal, StillRunning
from payrelay.flows.operations.kept_keys import other_key
from payrelay.flows.relay import Relay, Request
from payrelay.flows.resolution.resolve import inquire_now
from payrelay.store.payments.journal import ClaimedOperation, GuardedOperation

CODES_OF_OPEN: Final = {
    State.PENDING: Code.PENDING,
    State.NEEDS_ATTENTION: Code.NEEDS_ATTENTION,
    State.HELD: Code.NEEDS_ATTENTION,
}
"""The code of an operation that has no outcome yet, beside the unknown one."""
RETRY_AFTER_S: Final = {State.PENDING: 10, State.UNKNOWN: 10, State.NEEDS_ATTENTION: 3_600, State.HELD: 3_600}
"""Retry-After for a repeat of an open operation, and for another request that its guard blocks. While the operation is
under way it is the usual second."""
FOREIGN_RETRY_AFTER_S: Final = 10
"""Retry-After for a request that is blocked by the guard of another caller's operation, whatever its state: the caller
learns nothing of it."""


async def find_earlier(relay: Relay, request: Request, claim: str | None) -> ClaimedOperation | None:
    """Finds the operation of an equal claim, or of the other claim under which it may be stored.

    Raises OperationForged, StoreUnavailable.
    """
    other = other_key(relay, request, request.idempotency_key)
    for each in (claim, None if other is None else claim_of_key(other)):
        found = None
        if each is not None:
            found = await relay.journal.find_claim(request.principal, each, now_ms=relay.clock.now_ms())
        if found is not None:
            return found
    return None


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
    if other.state not in OPEN_STATES:
        done = "voided" if other.kind is Kind.VOID else "captured"
        raise Refusal(Code.CONFLICT, f"this authorization is already {done}", operation_id=operation_id)
    raise Refusal(
        Code.IN_PROGRESS,
        f"an operation on the same {other.subject.partition('/')[0]} is not final yet",
        retry_after_s=RETRY_AFTER_S.get(other.state) if is_own else FOREIGN_RETRY_AFTER_S,
        operation_id=operation_id,
    )


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
