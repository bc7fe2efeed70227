"""The answers that are given for an operation in place of the gateway's own reply, and what a repeat is answered.

Where proof or an operator's decision resolved an operation, its answer is composed of the request and the record that
was found, and of nothing else. It has every member of the interface; what isn't known is null.
"""

from http import HTTPStatus
from typing import Final

import msgspec

from payrelay.core.answers import OPERATION_HEADER, REPLAYED, Answer, Trace, failed, succeeded
from payrelay.core.calls import Capture, Charge, Effect
from payrelay.core.money import amount_json
from payrelay.core.payments.idempotency import Repeat, decide_repeat
from payrelay.core.payments.operation import CLEARABLE, INQUIRED, Kind, Operation, State
from payrelay.core.payments.payment import Payment, plain_number
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.errors import Code, Refusal, StillRunning

BY_PROOF: Final = "Resolved by proof"
BY_DECISION: Final = "Resolved by decision"
FAILED_SENTENCE: Final = (
    "evidence or an operator established that it did not happen; to try again, use another Idempotency-Key"
)

COMPLETED: Final = 2
"""The gateway's ``status_code`` of a completed operation."""
CODES_OF_FAILED: Final = {
    Kind.CHARGE: Code.DECLINED,
    Kind.AUTHORIZATION: Code.DECLINED,
    Kind.RETRY: Code.DECLINED,
    Kind.CAPTURE: Code.CONFLICT,
    Kind.REFUND: Code.CONFLICT,
    Kind.VOID: Code.CONFLICT,
    Kind.CANCEL: Code.CONFLICT,
}
"""The error code of a failed operation: a charge that failed reads as declined, every other operation as a conflict."""

CODES_OF_OPEN: Final = {
    State.PENDING: Code.PENDING,
    State.NEEDS_ATTENTION: Code.NEEDS_ATTENTION,
    State.HELD: Code.NEEDS_ATTENTION,
}
"""The code of an operation that has no outcome yet, beside the unknown one."""
RETRY_AFTER_S: Final = {State.PENDING: 10, State.UNKNOWN: 10, State.NEEDS_ATTENTION: 3_600, State.HELD: 3_600}
"""Retry-After for a repeat of an open operation, and for another request that its guard blocks. While the operation is
under way it is the usual second."""
RETRY_AFTER_S_MAX: Final = 3_600
"""However late the next look at the gateway is: a notification or a person may be earlier."""

_NULL: Final = b"null"
_encode = msgspec.json.Encoder().encode


class _ChargeData(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a charge's answer, in the interface's order."""

    order_id: str
    items: str
    currency: str
    amount: msgspec.Raw
    custom_1: str | None
    custom_2: str | None
    payment_id: msgspec.Raw
    status_code: int = COMPLETED
    status_message: None = None
    md5sig: None = None
    authorization_token: str | None = None


class _CaptureData(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a capture's answer, in the interface's order."""

    status_code: int = COMPLETED
    status_message: None = None
    payment_id: msgspec.Raw
    currency: str | None
    amount: msgspec.Raw
    captured_amount: msgspec.Raw
    items: str | None
    order_id: str | None
    md5sig: None = None
    custom_1: str | None
    custom_2: str | None


def resolved_answer(
    operation: Operation,
    call: Effect,
    *,
    payment: Payment | None,
    msg: str,
    authorization: Charge | None = None,
    authorization_token: str | None = None,
) -> Answer:
    """Answers 200 for an operation that took effect.

    ``payment`` is the record that proves it. ``authorization`` is the call of a capture's authorization, where Payrelay
    made it. ``authorization_token`` is the token of an authorization, where it is known. ``msg`` is BY_PROOF or
    BY_DECISION.
    """
    payment_id = operation.payment_id if payment is None else payment.payment_id
    raw_data = _NULL
    if isinstance(call, Charge):
        raw_data = _encode(
            _ChargeData(
                order_id=call.order_id,
                items=call.items,
                currency=call.currency,
                amount=amount_json(call.amount_minor),
                custom_1=call.custom_1,
                custom_2=call.custom_2,
                payment_id=_number(payment_id),
                authorization_token=authorization_token,
            )
        )
    elif isinstance(call, Capture):
        raw_data = _encode(
            _CaptureData(
                payment_id=_number(payment_id),
                currency=operation.currency,
                amount=amount_json(None if authorization is None else authorization.amount_minor),
                captured_amount=amount_json(call.amount_minor),
                items=None if authorization is None else authorization.items,
                order_id=operation.order_id,
                custom_1=None if authorization is None else authorization.custom_1,
                custom_2=None if authorization is None else authorization.custom_2,
            )
        )
    return succeeded(_encode(msg), raw_data)


def failed_answer(operation: Operation) -> Answer:
    """Answers for an operation that is established to have had no effect."""
    trace = Trace(request_id=operation.request_id, operation_id=operation.id)
    return failed(CODES_OF_FAILED[operation.kind], FAILED_SENTENCE, trace)


def _number(text: str | None) -> msgspec.Raw:
    """Writes an id as a JSON number, without leading zeros."""
    return msgspec.Raw(_NULL if text is None else plain_number(text).encode())


def stored_answer(operation: Operation, answer: Answer | None, fingerprint: str, request_id: str) -> Answer:
    """Answers a repeat of an operation's request with the stored answer (a replay), or with the present state.

    ``answer`` is the stored one; None where none is. Raises StillRunning while the first request is under way. Raises
    Refusal where the key came with another request, and where the answer is no longer kept: what the repeat asks for is
    not done again.
    """
    repeat = decide_repeat(operation, fingerprint)
    if repeat is Repeat.IN_PROGRESS:
        raise StillRunning(operation.id)
    if answer is None and operation.state in CLEARABLE:
        sentence = STATE_SENTENCES[operation.state]
        msg = f"this request was made before, and its answer is no longer kept. {sentence}"
        raise Refusal(Code.CONFLICT, msg, operation_id=operation.id)
    if repeat is Repeat.STATE or answer is None:
        return answer_of_state(operation, request_id, state=operation.state)
    return msgspec.structs.replace(answer, headers=((OPERATION_HEADER, operation.id), REPLAYED))


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
