"""Decides what the reply to an effect means. A mistake here would be a false answer. Pure.

Rules:

1. *Succeeded* needs a reply that says so twice (``status`` and ``status_code``), about the order, amount and currency
   of the call. A success about others is *differed*.
2. *Declined* and *refused* need a reply that is listed here, about the order of the call. They tell the client that no
   money moved, and that it may try again.
3. Every other reply is *unknown*. A reply is added here when the gateway documents it, not when it would be handy.

To be changed together: the tables below and the table of replies in the tests.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from payrelay.core.calls import (
    CancelSubscription,
    Capture,
    Charge,
    Effect,
    Refund,
    RetrySubscription,
    Void,
)
from payrelay.core.money import decimal_text
from payrelay.core.outcomes import Evidence, Facts, Outcome, OutcomeKind
from payrelay.errors import Code, FieldError
from payrelay.gateways.gateway import ExpectedReply
from payrelay.gateways.payhere.wire.reply_shapes import (
    GATEWAY_MSG_MAX,
    NO_AMOUNT,
    Cause,
    Envelope,
    InvalidToken,
    RejectedCall,
    UnreadableReply,
    WrongShape,
    amount_in,
    evidence_of,
    id_in,
    id_text,
    members_of,
    redacted,
    text_in,
    understand,
    whole_in,
)

UNKNOWN_SENTENCE: Final = "the service sent it, or may have sent it, and doesn't know the outcome yet"
NOT_SENT_SENTENCE: Final = "the service could not send it to the gateway; nothing was executed"
PENDING_SENTENCE: Final = "the gateway says that it is pending"
DIFFERED_SENTENCE: Final = "the gateway's reply does not fit what was asked; an operator must decide"
DECLINED_SENTENCE: Final = "the gateway declined it"
_CLAIMS_SUCCESS: Final = "success"

OK: Final = 1
FAILED: Final = -1
FAILED_OTHERWISE: Final = -2
COMPLETED: Final = 2
AUTHORIZED: Final = 3
UNDER_WAY: Final = 0
CANCELLED_OR_FAILED: Final = frozenset({-1, -2})


class _Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A reply by which the gateway says no: its numbers and text, and their meaning."""

    numbers: frozenset[int]
    text: re.Pattern[str]
    kind: OutcomeKind = OutcomeKind.REFUSED
    code: Code
    field: str | None = None
    cause: Cause | None = None


def _refusal(
    text: str,
    code: Code,
    *,
    field: str | None = None,
    numbers: tuple[int, ...] = (FAILED,),
    cause: Cause | None = None,
) -> _Refusal:
    kind = OutcomeKind.DECLINED if code is Code.DECLINED else OutcomeKind.REFUSED
    pattern = re.compile(text, re.DOTALL)
    return _Refusal(numbers=frozenset(numbers), text=pattern, kind=kind, code=code, field=field, cause=cause)


# PayHere doesn't document its reply about an unknown subscription. These texts can say nothing else. Any other text of
# a failure stays unknown, because a retry charges money.
_NO_SUBSCRIPTION: Final = (
    r"(?:\w+: )?(?:(?:unknown|invalid|no such) subscription(?:[ _]id)?|no subscriptions? found"
    r"|subscription(?:[ _]id)? (?:was |is )?(?:not found|unknown|invalid)|subscription does(?: not|n't) exist)"
)

_OF_SUBSCRIPTION: Final = (
    _refusal(r".*\bnot eligible\b.*", Code.CONFLICT),
    _refusal(r".*\balready (?:cancelled|canceled)\b.*", Code.CONFLICT, cause=Cause.ALREADY_CANCELLED),
    _refusal(r".*\balready completed\b.*", Code.CONFLICT),
    _refusal(_NO_SUBSCRIPTION, Code.NOT_FOUND, field="id"),
)
_OF_REFUND: Final = (_refusal(r".*", Code.INVALID_REQUEST),)

REFUSALS: Final[Mapping[type, tuple[_Refusal, ...]]] = MappingProxyType(
    {
        Charge: (
            _refusal(r"invalid token", Code.INVALID_REQUEST, field="customer_token"),
            _refusal(r"invalid currency", Code.INVALID_REQUEST, field="currency"),
            _refusal(r"invalid amount", Code.INVALID_REQUEST, field="amount"),
            _refusal(r".*", Code.DECLINED),
        ),
        Capture: (
            _refusal(
                r"invalid token", Code.INVALID_REQUEST, field="authorization_token", cause=Cause.NO_SUCH_AUTHORIZATION
            ),
            _refusal(r".*\bmust be less than\b.*", Code.INVALID_REQUEST, field="amount"),
            _refusal(
                r".*\balready captured",
                Code.CONFLICT,
                numbers=(FAILED, FAILED_OTHERWISE),
                cause=Cause.ALREADY_CAPTURED,
            ),
            _refusal(
                r".*\balready refunded",
                Code.CONFLICT,
                numbers=(FAILED, FAILED_OTHERWISE),
                cause=Cause.ALREADY_VOIDED,
            ),
        ),
        Refund: _OF_REFUND,
        Void: _OF_REFUND,
        RetrySubscription: _OF_SUBSCRIPTION,
        CancelSubscription: _OF_SUBSCRIPTION,
    }
)
"""For each call, the replies without data that say no. The first that fits counts."""


class _Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A readable reply, with the values that it is compared with."""

    http_status: int
    envelope: Envelope
    call: Effect
    expected: ExpectedReply

    def evidence(self, *, cause: Cause | None = None, status_code: int | None = None) -> Evidence:
        """Gives the evidence of this reply."""
        seen = evidence_of(self.http_status, self.envelope, self.call, cause=cause)
        return seen if status_code is None else msgspec.structs.replace(seen, status_code=status_code)


def classify(
    call: Effect, expected: ExpectedReply, http_status: int, body: bytes, presented_token: str
) -> Outcome | InvalidToken:
    """Decides what the reply to an effect means. Never raises."""
    understood = understand(http_status, body, presented_token)
    if isinstance(understood, InvalidToken):
        return understood
    if isinstance(understood, RejectedCall):
        return rejected(understood, http_status)
    if isinstance(understood, UnreadableReply):
        return unknown(Evidence(http_status=http_status, cause=understood.cause))
    reply = _Reply(http_status=http_status, envelope=understood, call=call, expected=expected)
    try:
        return _answered(reply)
    except WrongShape as error:
        return unknown(reply.evidence(cause=error.cause))


def rejected(reason: RejectedCall, http_status: int | None) -> Outcome:
    """Gives the outcome of an effect that reached the gateway and was not executed."""
    evidence = Evidence(http_status=http_status, cause=reason.cause)
    return Outcome(
        kind=OutcomeKind.NOT_EXECUTED,
        code=reason.code,
        msg=reason.msg,
        evidence=evidence,
        retry_after_s=reason.retry_after_s,
    )


def unknown(evidence: Evidence) -> Outcome:
    """Gives the outcome of an effect that may have been executed."""
    return Outcome(kind=OutcomeKind.UNKNOWN, code=Code.OUTCOME_UNKNOWN, msg=UNKNOWN_SENTENCE, evidence=evidence)


def not_sent(code: Code, cause: str) -> Outcome:
    """Gives the outcome of an effect of which no byte was sent."""
    return Outcome(kind=OutcomeKind.NOT_SENT, code=code, msg=NOT_SENT_SENTENCE, evidence=Evidence(cause=cause))


def _answered(reply: _Reply) -> Outcome:
    envelope = reply.envelope
    if envelope.status == OK:
        return _POSITIVE[type(reply.call)](reply)
    if isinstance(reply.call, Charge) and envelope.status == FAILED and envelope.has_data:
        return _declined_with_data(reply)
    if not envelope.has_data:
        for refusal in REFUSALS[type(reply.call)]:
            if envelope.status in refusal.numbers and refusal.text.fullmatch(envelope.text):
                return _refused(reply, refusal)
    return unknown(reply.evidence(cause=Cause.UNEXPECTED_REPLY))


def _refused(reply: _Reply, refusal: _Refusal) -> Outcome:
    msg = redacted(reply.envelope.msg, reply.call)
    return Outcome(
        kind=refusal.kind,
        code=refusal.code,
        msg=msg,
        raw_msg=reply.envelope.raw_msg,
        raw_data=reply.envelope.raw_data,
        fields=() if refusal.field is None else (FieldError(refusal.field, msg),),
        evidence=reply.evidence(cause=refusal.cause),
    )


def _of_charge(reply: _Reply) -> Outcome:
    """Reads ``status`` 1 of a charge, which alone only says that the call was well-formed."""
    call = reply.call
    assert isinstance(call, Charge)  # noqa: S101, the table below pairs them
    members = members_of(reply.envelope.raw_data)
    status_code = whole_in(members, "status_code")
    successes = {COMPLETED, AUTHORIZED} if call.authorize else {COMPLETED}
    if status_code in successes:
        return _charged(reply, call, members)
    difference = _difference(members, _charged_values(call))
    if difference is not None:
        return unknown(reply.evidence(cause=difference, status_code=status_code))
    if status_code in CANCELLED_OR_FAILED:
        return _declined(reply, members)
    if status_code == UNDER_WAY:
        return Outcome(
            kind=OutcomeKind.PENDING,
            code=Code.PENDING,
            msg=PENDING_SENTENCE,
            facts=_facts(members),
            evidence=reply.evidence(status_code=status_code),
        )
    return unknown(reply.evidence(cause=Cause.UNEXPECTED_REPLY, status_code=status_code))


def _charged(reply: _Reply, call: Charge, members: dict[str, bytes]) -> Outcome:
    facts = _facts(members)
    if call.authorize:
        # Without its token an authorization can be neither captured nor voided, so the call didn't succeed.
        token = text_in(members, "authorization_token")
        if not token:
            raise WrongShape
        facts = msgspec.structs.replace(facts, authorization_token=token)
    return _succeeded(reply, members, facts, _difference(members, _charged_values(call), is_complete=True))


def _charged_values(call: Charge) -> dict[str, str | int | None]:
    return {"order_id": call.order_id, "currency": call.currency, "amount": call.amount_minor}


def _declined_with_data(reply: _Reply) -> Outcome:
    """Reads ``status`` -1 of a charge that comes with data: declined, unless the data contradicts that."""
    call = reply.call
    assert isinstance(call, Charge)  # noqa: S101, the caller checked
    members = members_of(reply.envelope.raw_data)
    status_code = whole_in(members, "status_code")
    difference = _difference(members, _charged_values(call))
    if difference is not None or status_code not in CANCELLED_OR_FAILED | {None}:
        return unknown(reply.evidence(cause=difference or Cause.UNEXPECTED_REPLY, status_code=status_code))
    return _declined(reply, members)


def _declined(reply: _Reply, members: dict[str, bytes]) -> Outcome:
    raw_msg, msg = _reason_of_decline(reply.envelope, members)
    evidence = reply.evidence(status_code=whole_in(members, "status_code"))
    return Outcome(
        kind=OutcomeKind.DECLINED,
        code=Code.DECLINED,
        msg=redacted(msg, reply.call),
        raw_msg=raw_msg,
        raw_data=reply.envelope.raw_data,
        facts=_facts(members),
        evidence=msgspec.structs.replace(evidence, gateway_msg=redacted(msg, reply.call)[:GATEWAY_MSG_MAX]),
    )


def _reason_of_decline(envelope: Envelope, members: dict[str, bytes]) -> tuple[bytes | None, str]:
    """Chooses the text of a decline: the envelope's, unless it speaks of success; then the one inside the data.

    ``status`` 1 with ``status_code`` -2 comes with a text about the call, which a client would show as it is.
    """
    inside = text_in(members, "status_message") or ""
    for raw_msg, msg in ((envelope.raw_msg, envelope.msg), (members.get("status_message"), inside)):
        if msg.strip() and _CLAIMS_SUCCESS not in msg.casefold():
            return raw_msg, msg
    return None, DECLINED_SENTENCE


def _of_capture(reply: _Reply) -> Outcome:
    call = reply.call
    assert isinstance(call, Capture)  # noqa: S101, the table below pairs them
    expected = reply.expected
    members = members_of(reply.envelope.raw_data)
    status_code = whole_in(members, "status_code")
    expected_values = {
        "order_id": expected.order_id,
        "currency": expected.currency,
        "amount": expected.amount_minor,
        "captured_amount": call.amount_minor,
    }
    if status_code == COMPLETED:
        facts = _facts(members, amount="captured_amount")
        if facts.order_id is None or facts.currency is None:
            raise WrongShape
        captured = _succeeded(reply, members, facts, _difference(members, expected_values, is_complete=True))
        evidence = msgspec.structs.replace(captured.evidence, authorized_minor=_facts(members).amount_minor)
        return msgspec.structs.replace(captured, evidence=evidence)
    if status_code == FAILED_OTHERWISE:
        difference = _difference(members, {**expected_values, "captured_amount": None})
        if difference is None:
            return _declined(reply, members)
        return unknown(reply.evidence(cause=difference, status_code=status_code))
    return unknown(reply.evidence(cause=Cause.UNEXPECTED_REPLY, status_code=status_code))


def _of_refund(reply: _Reply) -> Outcome:
    """Reads ``status`` 1 of a refund; its data is the number of the refund."""
    facts = Facts(refund_id=id_text(reply.envelope.raw_data))
    return _done(reply, facts)


def _of_void(reply: _Reply) -> Outcome:
    """Reads ``status`` 1 of a void. It needs no refund id, and one that comes does no harm."""
    facts = Facts(refund_id=id_text(reply.envelope.raw_data)) if reply.envelope.has_data else Facts()
    return _done(reply, facts)


def _of_subscription(reply: _Reply) -> Outcome:
    if reply.envelope.has_data:
        raise WrongShape
    return _done(reply, Facts())


_POSITIVE: Final[Mapping[type, Callable[[_Reply], Outcome]]] = MappingProxyType(
    {
        Charge: _of_charge,
        Capture: _of_capture,
        Refund: _of_refund,
        Void: _of_void,
        RetrySubscription: _of_subscription,
        CancelSubscription: _of_subscription,
    }
)


def _done(reply: _Reply, facts: Facts, *, status_code: int | None = None) -> Outcome:
    return Outcome(
        kind=OutcomeKind.SUCCEEDED,
        code=None,
        msg=redacted(reply.envelope.msg, reply.call),
        raw_msg=reply.envelope.raw_msg,
        raw_data=reply.envelope.raw_data,
        facts=facts,
        evidence=reply.evidence(status_code=status_code),
    )


def _succeeded(reply: _Reply, members: dict[str, bytes], facts: Facts, difference: Cause | None) -> Outcome:
    status_code = whole_in(members, "status_code")
    if difference is None:
        return _done(reply, facts, status_code=status_code)
    return Outcome(
        kind=OutcomeKind.DIFFERED,
        code=Code.NEEDS_ATTENTION,
        msg=DIFFERED_SENTENCE,
        facts=facts,
        evidence=msgspec.structs.replace(
            reply.evidence(cause=difference, status_code=status_code), answered=_description_of(reply, facts)
        ),
    )


def _description_of(reply: _Reply, facts: Facts) -> str | None:
    """Describes the order and amount of a success, as far as the reply has them in a readable form."""
    amount = None if facts.amount_minor is None else decimal_text(facts.amount_minor)
    order = None if facts.order_id is None else f"for order {facts.order_id}"
    words = " ".join(filter(None, (amount, facts.currency, order)))
    return redacted(words, reply.call)[:GATEWAY_MSG_MAX] or None


_DIFFERENCES: Final = {
    "order_id": Cause.OTHER_ORDER,
    "currency": Cause.OTHER_CURRENCY,
    "amount": Cause.OTHER_AMOUNT,
    "captured_amount": Cause.OTHER_AMOUNT,
}


def _difference(
    members: dict[str, bytes], expected: Mapping[str, str | int | None], *, is_complete: bool = False
) -> Cause | None:
    """Names the first member that differs from the call's value; an expected None fits any value.

    With ``is_complete``, an absent member raises WrongShape, because a success must say what it is about.
    """
    for name, value in expected.items():
        if value is None:
            continue
        got = text_in(members, name) if isinstance(value, str) else amount_in(members, name)
        if got is None:
            if is_complete:
                raise WrongShape
            continue
        if got != value:
            return _DIFFERENCES[name]
    return None


def _facts(members: dict[str, bytes], *, amount: str = "amount") -> Facts:
    amount_minor = amount_in(members, amount)
    return Facts(
        order_id=text_in(members, "order_id"),
        payment_id=id_in(members, "payment_id"),
        currency=text_in(members, "currency"),
        amount_minor=None if amount_minor == NO_AMOUNT else amount_minor,
    )
