"""Outcomes of calls to a gateway, in Payrelay's own terms.

An adapter returns one of these values for every call, and raises nothing: a decline, a refusal and a lost reply are all
outcomes. Texts and evidence never have a token or a secret.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.secret import MaskedRepr
from payrelay.errors import Code, FieldError


class OutcomeKind(StrEnum):
    """The outcome of an effect."""

    SUCCEEDED = "succeeded"
    """The gateway reports success, and the reply fits the request."""
    DECLINED = "declined"
    """The gateway or the bank declined the charge."""
    REFUSED = "refused"
    """The gateway refused the request (a wrong field, already captured, not eligible)."""
    PENDING = "pending"
    """The gateway says that the effect is pending."""
    UNKNOWN = "unknown"
    """The call was sent, or may have been, and no reliable answer came."""
    DIFFERED = "differed"
    """The gateway reports success, but for another order, amount or currency than was requested."""
    NOT_EXECUTED = "not_executed"
    """The call was sent, and the gateway rejected it before execution."""
    NOT_SENT = "not_sent"
    """No byte of the call was sent."""


_NOT_EXECUTED: Final = frozenset(
    {Code.GATEWAY_REFUSED_US, Code.GATEWAY_BUSY, Code.GATEWAY_UNREACHABLE, Code.UNAVAILABLE}
)

CODES_OF_KIND: Final[dict[OutcomeKind, frozenset[Code | None]]] = {
    OutcomeKind.SUCCEEDED: frozenset({None}),
    OutcomeKind.DECLINED: frozenset({Code.DECLINED}),
    OutcomeKind.REFUSED: frozenset({Code.INVALID_REQUEST, Code.CONFLICT, Code.NOT_FOUND}),
    OutcomeKind.PENDING: frozenset({Code.PENDING}),
    OutcomeKind.UNKNOWN: frozenset({Code.OUTCOME_UNKNOWN}),
    OutcomeKind.DIFFERED: frozenset({Code.NEEDS_ATTENTION}),
    OutcomeKind.NOT_EXECUTED: _NOT_EXECUTED,
    OutcomeKind.NOT_SENT: _NOT_EXECUTED | {Code.INTERNAL},
}
"""The error codes that each outcome may have; None is a success. An effect that may have happened never reads as
failed."""


class Facts(MaskedRepr, frozen=True, kw_only=True):
    """The fields of the reply to an effect, under Payrelay's names; ids are text."""

    order_id: str | None = None
    payment_id: str | None = None
    refund_id: str | None = None
    authorization_token: str | None = None
    currency: str | None = None
    amount_minor: int | None = None


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one call, inquiry, notification or decision showed, for the history; free of secrets, fit to be read out."""

    http_status: int | None = None
    cause: str | None = None
    """A fixed short word: ``timeout``, ``connection_lost``, ``not_json``, ``other_amount``, …"""
    gateway_msg: str | None = None
    gateway_status: int | None = None
    status_code: int | None = None
    answered: str | None = None
    """What the reply was for, where it differed from the request: ``500.00 LKR for order A-1``."""
    elapsed_ms: int | None = None
    seen: str | None = None
    """The result of a status inquiry: one of ``core.payments.proof.MatchResult``."""
    control: str | None = None
    """The result of the control query beside it: one of ``core.payments.proof.Control``."""
    payment_ids: tuple[str, ...] = ()
    """The payments that were compared; before a retry, all payments of the subscription."""
    order_id: str | None = None
    """Before a retry, the order that all payments of the subscription name."""
    notification_id: str | None = None
    """The notification that proved the effect."""
    authorized_minor: int | None = None
    """The authorized amount that the reply to a capture named, in hundredths."""
    operator: str | None = None
    """The operator who decided."""
    reason: str | None = None
    """The operator's own reason."""
    insisted: str | None = None
    """The refusal against which the operator insisted, and what the gateway's record showed."""
    traceparent: str | None = None
    """The W3C trace context of what stored the entry, where tracing was on."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an effect, and what the reply had.

    Attributes:
        kind: the outcome.
        code: the error code for the client; None exactly when the kind is SUCCEEDED.
        msg: one sentence for people: the gateway's own where it answered.
        raw_msg: the gateway's ``msg`` as JSON text, byte for byte, or None where there was none.
        raw_data: the gateway's ``data`` as JSON text, byte for byte, or None.
        fields: the field of the interface that the gateway rejected, where it is known.
        facts: the fields of the reply.
        evidence: what the call showed, for the history.
        retry_after_s: seconds, where there is a reason for another wait than the usual one.
    """

    kind: OutcomeKind
    code: Code | None
    msg: str
    raw_msg: bytes | None = None
    raw_data: bytes | None = None
    fields: tuple[FieldError, ...] = ()
    facts: Facts = Facts()
    evidence: Evidence = Evidence()
    retry_after_s: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError where the code would contradict the outcome that is stored."""
        if self.code not in CODES_OF_KIND[self.kind]:
            raise ValueError(f"an effect that is {self.kind} can't be answered with {self.code}")


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a read.

    Attributes:
        code: None for a success; NOT_FOUND when the gateway answered that there is none; else why the read failed.
        msg: one sentence for people: the gateway's own where it answered.
        raw_msg: the gateway's ``msg`` as JSON text, byte for byte; None where there was no answer.
        raw_data: the gateway's ``data`` as JSON text, byte for byte; None where there was none.
        evidence: what the call showed.
        retry_after_s: seconds, where there is a reason for another wait than the usual one.
    """

    code: Code | None
    msg: str
    raw_msg: bytes | None = None
    raw_data: bytes | None = None
    evidence: Evidence = Evidence()
    retry_after_s: int | None = None
