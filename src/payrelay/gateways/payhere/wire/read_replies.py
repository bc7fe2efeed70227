"""Decides what the reply to a read means. Pure.

A reading is only passed on when it is about the call's subject. A reply to another call would show one customer's
payments to another.
"""

from typing import Final, assert_never

import msgspec

from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.outcomes import Evidence, Reading
from payrelay.errors import Code
from payrelay.gateways.payhere.wire.reply_shapes import (
    Cause,
    Envelope,
    InvalidToken,
    RejectedCall,
    UnreadableReply,
    evidence_of,
    redacted,
    understand,
)

BAD_REPLY_SENTENCE: Final = "the gateway's answer could not be understood"
FOUND: Final = 1
NOT_THERE: Final = -1
PENDING_OR_DECLINED: Final = frozenset({0, -2})
"""Of an order: it has a payment, but none that succeeded. The data of such a reply is not documented."""


class _PaymentRecord(msgspec.Struct, frozen=True):
    order_id: str


class _SubscriptionRecord(msgspec.Struct, frozen=True):
    subscription_id: int


class _AnyRecord(msgspec.Struct, frozen=True):
    payment_id: int


_payments_of_order = msgspec.json.Decoder(list[_PaymentRecord])
_payments = msgspec.json.Decoder(list[_AnyRecord])
_subscriptions = msgspec.json.Decoder(list[_SubscriptionRecord])
_subscription = msgspec.json.Decoder(_SubscriptionRecord)


def classify_read(call: Read, http_status: int, body: bytes, presented_token: str) -> Reading | InvalidToken:
    """Decides what the reply to a read means. Never raises."""
    understood = understand(http_status, body, presented_token)
    if isinstance(understood, InvalidToken):
        return understood
    if isinstance(understood, RejectedCall):
        return rejected(understood, http_status)
    if isinstance(understood, UnreadableReply):
        return bad_reply(Evidence(http_status=http_status, cause=understood.cause))
    return _answered(call, http_status, understood)


def rejected(reason: RejectedCall, http_status: int | None) -> Reading:
    """Gives the reading of a call that the gateway rejected."""
    evidence = Evidence(http_status=http_status, cause=reason.cause)
    return Reading(code=reason.code, msg=reason.msg, evidence=evidence, retry_after_s=reason.retry_after_s)


def bad_reply(evidence: Evidence) -> Reading:
    """Gives the reading of a reply that can't be passed on."""
    return Reading(code=Code.GATEWAY_BAD_REPLY, msg=BAD_REPLY_SENTENCE, evidence=evidence)


def lost(cause: str, *, is_sent: bool) -> Reading:
    """Gives the reading of a call without a complete reply."""
    evidence = Evidence(cause=cause)
    if is_sent:
        return Reading(code=Code.GATEWAY_BAD_REPLY, msg="no whole answer came from the gateway", evidence=evidence)
    return Reading(code=Code.GATEWAY_UNREACHABLE, msg="there is no connection to the gateway", evidence=evidence)


def _answered(call: Read, http_status: int, envelope: Envelope) -> Reading:
    if envelope.status == FOUND:
        cause = _fault_of_data(call, envelope.raw_data)
        is_empty_order = isinstance(call, PaymentsOfOrder) and cause is None and _is_empty(envelope.raw_data)
        code = Code.NOT_FOUND if is_empty_order else None
    else:
        cause = None if _is_missing(call, envelope) else Cause.UNEXPECTED_REPLY
        code = Code.NOT_FOUND
    evidence = evidence_of(http_status, envelope, call, cause=cause)
    if cause is not None:
        return bad_reply(evidence)
    return Reading(
        code=code,
        msg=redacted(envelope.msg, call),
        raw_msg=envelope.raw_msg,
        raw_data=envelope.raw_data,
        evidence=evidence,
    )


def _is_missing(call: Read, envelope: Envelope) -> bool:
    """True for a reply that says that there is nothing to show."""
    if envelope.status == NOT_THERE:
        return not envelope.has_data or _is_empty(envelope.raw_data)
    return isinstance(call, PaymentsOfOrder) and envelope.status in PENDING_OR_DECLINED


def _is_empty(raw_data: bytes) -> bool:
    return raw_data.startswith(b"[") and raw_data[1:-1].strip() == b""


def _fault_of_data(call: Read, raw_data: bytes) -> Cause | None:
    """Names the fault in the data of a positive reply; None where its shape and its subject are right."""
    try:
        match call:
            case PaymentsOfOrder():
                payments = _payments_of_order.decode(raw_data)
                is_about_call = all(payment.order_id == call.order_id for payment in payments)
                return None if is_about_call else Cause.OTHER_ORDER
            case AllSubscriptions():
                _subscriptions.decode(raw_data)
            case OneSubscription():
                is_about_call = _subscription.decode(raw_data).subscription_id == call.subscription_id
                return None if is_about_call else Cause.OTHER_SUBSCRIPTION
            case PaymentsOfSubscription():
                _payments.decode(raw_data)
            case _:
                assert_never(call)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Cause.OTHER_SHAPE
    return None
