"""The envelope: how every answer to a client is written, byte for byte.

The gateway's ``msg`` and ``data`` are spliced in as the gateway's own JSON text. So 1000.0 stays 1000.0, and a member
that Payrelay doesn't know stays where it was.
"""

from typing import Final

import msgspec

from payrelay.core.outcomes import Outcome, Reading
from payrelay.errors import MEANINGS, Code, FieldError, Refusal, Retry

STATUS_OF_HTTP: Final = {200: 1, 202: 0, 401: -2, 403: -2}
"""The envelope's ``status``; for every other HTTP status it is STATUS_OTHERWISE, whatever number the gateway used."""
STATUS_OTHERWISE: Final = -1
OPERATION_HEADER: Final = "Payrelay-Operation"
"""Names the operation that an answer is about."""
MISSING_HEADER: Final = "Payrelay-Missing"
"""Names the payments that took money, and that the gateway's record doesn't show yet."""
REPLAYED: Final = ("Idempotent-Replayed", "true")
"""The header of an answer that is replayed."""

HIDDEN_FROM_APPS: Final = frozenset({"md5sig", "authorization_token"})
"""Members of the gateway's answers that no app gets. The signature is made with the merchant's secret, and equals the
one that proves a notification; the token lets its holder capture."""
HIDING_LEVELS_MAX: Final = 32
"""The levels of an answer that are searched for these members. A stored answer in an operation has some ten, and each
level is read again inside of each around it."""

_HINTS: Final = (*(name.encode() for name in HIDDEN_FROM_APPS), b"\\u")
"""An answer without any of these texts has no such member, and isn't read: some lists have megabytes."""

_RAW_LIST: Final = list[msgspec.Raw]
_JSON_NULL: Final = b"null"
_encode = msgspec.json.Encoder().encode


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A finished answer: HTTP status, the body as it goes out, and the code that it carries (None for a success)."""

    http_status: int
    body: bytes
    code: Code | None = None
    retry_after_s: int | None = None
    headers: tuple[tuple[str, str], ...] = ()


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The ids that an error names, so that it can be found again."""

    request_id: str
    operation_id: str | None = None
    checkout_id: str | None = None


class _ErrorMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    code: Code
    retry: str
    request_id: str
    operation_id: str | None = None
    checkout_id: str | None = None
    fields: tuple[FieldError, ...] = ()


def succeeded(raw_msg: bytes, raw_data: bytes) -> Answer:
    """Answers 200 with the gateway's own msg and data."""
    return Answer(http_status=200, body=_envelope(1, raw_msg, raw_data))


def found(data: object, msg: str = "OK") -> Answer:
    """Answers 200 with Payrelay's own data, such as an operation."""
    return succeeded(_encode(msg), _encode(data))


def found_page(data: object, next_cursor: str | None) -> Answer:
    """Answers 200 with one page of a list, and the ``cursor`` of the next page; None where there is none."""
    return Answer(http_status=200, body=_envelope(1, _encode("OK"), _encode(data), next_cursor=_encode(next_cursor)))


def of_reading(reading: Reading, trace: Trace, *, data_when_missing: bytes = _JSON_NULL) -> Answer:
    """Answers a read with its result, or with why it failed."""
    if reading.code is None:
        return succeeded(reading.raw_msg or _encode(reading.msg), reading.raw_data or _JSON_NULL)
    raw_data = data_when_missing if reading.code is Code.NOT_FOUND else None
    return failed(
        reading.code,
        reading.msg,
        trace,
        raw_msg=reading.raw_msg if reading.code is Code.NOT_FOUND else None,
        raw_data=raw_data,
        retry_after_s=reading.retry_after_s,
    )


def of_outcome(outcome: Outcome, trace: Trace) -> Answer:
    """Answers an effect by its outcome. A 202 has no data, since the outcome isn't known."""
    if outcome.code is None:
        return succeeded(outcome.raw_msg or _encode(outcome.msg), outcome.raw_data or _JSON_NULL)
    passes_on = outcome.code in {Code.DECLINED, Code.CONFLICT, Code.INVALID_REQUEST, Code.NOT_FOUND}
    return failed(
        outcome.code,
        outcome.msg,
        trace,
        raw_msg=outcome.raw_msg if passes_on else None,
        raw_data=outcome.raw_data if passes_on else None,
        fields=outcome.fields,
        retry_after_s=outcome.retry_after_s,
    )


def of_refusal(refusal: Refusal, request_id: str) -> Answer:
    """Answers a request that is not carried out."""
    answer = failed(
        refusal.code,
        refusal.msg,
        Trace(request_id=request_id, operation_id=refusal.operation_id, checkout_id=refusal.checkout_id),
        fields=refusal.fields,
        retry_after_s=refusal.retry_after_s,
    )
    return msgspec.structs.replace(answer, headers=refusal.headers)


def failed(
    code: Code,
    msg: str,
    trace: Trace,
    *,
    raw_msg: bytes | None = None,
    raw_data: bytes | None = None,
    fields: tuple[FieldError, ...] = (),
    retry_after_s: int | None = None,
) -> Answer:
    """Answers with an error code, its HTTP status, its advice on retrying, and the ids that identify it."""
    meaning = MEANINGS[code]
    member = _ErrorMember(
        code=code,
        retry=meaning.retry,
        request_id=trace.request_id,
        operation_id=trace.operation_id,
        checkout_id=trace.checkout_id,
        fields=fields,
    )
    status = STATUS_OF_HTTP.get(meaning.http_status, STATUS_OTHERWISE)
    body = _envelope(status, raw_msg or _encode(msg), raw_data or _JSON_NULL, _encode(member))
    return Answer(
        http_status=meaning.http_status,
        body=body,
        code=code,
        retry_after_s=meaning.retry_after_s if retry_after_s is None else retry_after_s,
    )


def not_shown_yet(msg: str, trace: Trace, *, retry_after_s: int) -> Answer:
    """Answers 404 with an empty list, where the gateway shows nothing, and payments are known all the same.

    It advises to ask again, so that nobody reads *not paid*.
    """
    member = _ErrorMember(code=Code.NOT_FOUND, retry=Retry.AFTER, request_id=trace.request_id)
    return Answer(
        http_status=MEANINGS[Code.NOT_FOUND].http_status,
        body=_envelope(STATUS_OTHERWISE, _encode(msg), b"[]", _encode(member)),
        code=Code.NOT_FOUND,
        retry_after_s=retry_after_s,
    )


def lacking(answer: Answer, payment_ids: tuple[str, ...]) -> Answer:
    """Adds the header that names payments which the gateway's record doesn't show; nothing where there are none."""
    if not payment_ids:
        return answer
    return msgspec.structs.replace(answer, headers=(*answer.headers, (MISSING_HEADER, ",".join(payment_ids))))


def with_member(raw_object: bytes, name: str, raw_value: bytes) -> bytes:
    """Adds a member to an object in JSON text, or replaces it; every other value stays byte for byte."""
    members = msgspec.json.decode(raw_object, type=dict[str, msgspec.Raw])
    members[name] = msgspec.Raw(raw_value)
    return _encode(members)


def without_signatures(answer: Answer) -> Answer:
    """Gives an answer as an app may have it: the members HIDDEN_FROM_APPS are null in it, wherever they stand.

    Every other value stays byte for byte, so that a replay equals the first answer here too. Only where there may be
    one of them, what is nested more than HIDING_LEVELS_MAX levels deep is null as a whole, because nobody looks there.
    """
    if not any(text in answer.body for text in _HINTS):
        return answer
    return msgspec.structs.replace(answer, body=_hidden(answer.body, HIDING_LEVELS_MAX))


def _hidden(raw_value: bytes, levels: int) -> bytes:
    begin = raw_value.lstrip()[:1]
    if levels == 0 and begin in {b"{", b"["}:
        return _JSON_NULL
    if begin == b"{":
        members = msgspec.json.decode(raw_value, type=dict[str, msgspec.Raw])
        return _encode(
            {
                name: msgspec.Raw(_JSON_NULL if name in HIDDEN_FROM_APPS else _hidden(bytes(member), levels - 1))
                for name, member in members.items()
            }
        )
    if begin == b"[":
        entries = msgspec.json.decode(raw_value, type=_RAW_LIST)
        return _encode([msgspec.Raw(_hidden(bytes(entry), levels - 1)) for entry in entries])
    return raw_value


def _envelope(
    status: int, raw_msg: bytes, raw_data: bytes, raw_error: bytes | None = None, *, next_cursor: bytes | None = None
) -> bytes:
    error = b"" if raw_error is None else b',"error":' + raw_error
    cursor = b"" if next_cursor is None else b',"next_cursor":' + next_cursor
    return b'{"status":%d,"msg":%b,"data":%b%b%b}' % (status, raw_msg, raw_data, error, cursor)
