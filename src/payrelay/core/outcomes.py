"""What a call to a gateway came to, in words of our own.

An adapter returns one of these for every call and raises nothing: a decline, a refusal and a lost reply are all
answers. Texts and evidence never hold a token or a secret.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.secret import MaskedRepr
from payrelay.errors import Code, FieldError


class OutcomeKind(StrEnum):
    """What became of an effect."""

    SUCCEEDED = "succeeded"
    """The gateway said so, and the reply fits what was asked."""
    DECLINED = "declined"
    """The charge was refused by the gateway or the bank."""
    REFUSED = "refused"
    """The gateway answered that it won't do this (a wrong field, already captured, not eligible)."""
    PENDING = "pending"
    """The gateway says that it is pending."""
    UNKNOWN = "unknown"
    """It was, or may have been, sent, and there is no answer that can be relied on."""
    DIFFERED = "differed"
    """A success, but for another order, amount or currency than was asked."""
    NOT_EXECUTED = "not_executed"
    """It was sent, and the gateway turned it away before doing anything."""
    NOT_SENT = "not_sent"
    """Not a byte of it left."""


_NOT_EXECUTED: Final = frozenset(
    {Code.GATEWAY_REFUSED_US, Code.GATEWAY_BUSY, Code.GATEWAY_UNREACHABLE, Code.UNAVAILABLE}
)

CODES_OF_KIND: Final[dict[OutcomeKind, frozenset[Code | None]]] = {
    OutcomeKind.SUCCEEDED: frozenset({None}),
    OutcomeKind.DECLINED: frozenset({Code.DECLINED}),
    OutcomeKind.REFUSED: frozenset({Code.INVALID_REQUEST, Code.CONFLICT, Code.NOT_FOUND}),
    OutcomeKind.PENDING: frozenset({Code.PENDING}),
    OutcomeKind.UNKNOWN: frozenset({Code.OUTCOME_UNKNOWN}),
    OutcomeKind.DIFFERED: frozenset({Code.OUTCOME_UNKNOWN}),
    OutcomeKind.NOT_EXECUTED: _NOT_EXECUTED,
    OutcomeKind.NOT_SENT: _NOT_EXECUTED | {Code.INTERNAL},
}
"""What a client can be told of each verdict; None is a success. Nothing that may have taken effect reads as failed."""


class Facts(MaskedRepr, frozen=True, kw_only=True):
    """What the reply to an effect told, under our names; ids as text."""

    order_id: str | None = None
    payment_id: str | None = None
    refund_id: str | None = None
    authorization_token: str | None = None
    currency: str | None = None
    amount_minor: int | None = None


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen of one call, for the history; free of secrets, fit to be read to a customer."""

    http_status: int | None = None
    cause: str | None = None
    """A fixed short word: ``timeout``, ``connection_lost``, ``not_json``, ``other_amount``, …"""
    gateway_msg: str | None = None
    gateway_status: int | None = None
    status_code: int | None = None
    answered: str | None = None
    """What a success was for that differed from what was asked: ``500.00 LKR for order A-1``."""
    elapsed_ms: int | None = None
    seen: str | None = None
    """What was seen when the gateway was asked what became of it: one of ``core.payments.proof.MatchResult``."""
    control: str | None = None
    """What the control query beside it came to: one of ``core.payments.proof.Control``."""
    payment_ids: tuple[str, ...] = ()
    """The payments that were looked at; before a retry, all that the subscription had."""
    notification_id: str | None = None
    """The notification that proved it."""
    operator: str | None = None
    """Who decided."""
    reason: str | None = None
    """Why, in that person's words."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What an effect came to.

    Attributes:
        kind: what became of it.
        code: what the client is told; None exactly when the verdict is SUCCEEDED.
        msg: one sentence for people: the gateway's own where it answered.
        raw_msg: the gateway's ``msg`` as JSON text, byte for byte, or None where there was none.
        raw_data: the gateway's ``data`` as JSON text, byte for byte, or None.
        fields: the field of the interface that the gateway complained about, where it is known.
        facts: what the reply told.
        evidence: what was seen.
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
        """Raises ValueError where the client would be told anything else than the state that is stored."""
        if self.code not in CODES_OF_KIND[self.kind]:
            raise ValueError(f"an effect that is {self.kind} can't be answered with {self.code}")


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a read came to.

    Attributes:
        code: None when it was found; NOT_FOUND when the gateway answered that there is none; else why it failed.
        msg: one sentence for people: the gateway's own where it answered.
        raw_msg: the gateway's ``msg`` as JSON text, byte for byte; None where there was no answer.
        raw_data: the gateway's ``data`` as JSON text, byte for byte; None where there was none.
        evidence: what was seen.
        retry_after_s: seconds, where there is a reason for another wait than the usual one.
    """

    code: Code | None
    msg: str
    raw_msg: bytes | None = None
    raw_data: bytes | None = None
    evidence: Evidence = Evidence()
    retry_after_s: int | None = None
