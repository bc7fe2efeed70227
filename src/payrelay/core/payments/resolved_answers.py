"""The answers of operations that proof or an operator's decision resolved, in place of their own reply.

An answer is composed of the request and the record that was found, and of nothing else. It has every member of the
interface; what isn't known is null.
"""

from typing import Final

import msgspec

from payrelay.core.answers import Answer, Trace, failed, succeeded
from payrelay.core.calls import Capture, Charge, Effect
from payrelay.core.money import amount_json
from payrelay.core.payments.operation import Kind, Operation
from payrelay.core.payments.payment import Payment, plain_number
from payrelay.errors import Code

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
