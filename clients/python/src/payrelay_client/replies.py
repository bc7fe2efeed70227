"""Reads what came back for one request: an answer of the service's, or no answer that can be relied on."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final, Literal
from urllib.parse import parse_qs, urlsplit

from payrelay_client import exact_json
from payrelay_client.errors import (
    Busy,
    Conflict,
    Declined,
    FieldProblem,
    Forbidden,
    InvalidRequest,
    KeyReused,
    NoAnswer,
    NotFound,
    PayrelayError,
    PositionLost,
    ServiceFault,
    Unauthenticated,
)
from payrelay_client.models import OperationDetail

NO_ANSWER: Final = "no_answer"
TIME_OUT: Final = "time_out"
UNREADABLE: Final = "unreadable_answer"
NO_CREDENTIAL: Final = "no_credential"

_BY_CODE: Final[Mapping[str, type[PayrelayError]]] = {
    "declined": Declined,
    "in_progress": Busy,
    "idempotency_mismatch": KeyReused,
    "position_lost": PositionLost,
}
_BY_STATUS: Final[Mapping[int, type[PayrelayError]]] = {
    400: InvalidRequest,
    401: Unauthenticated,
    402: Declined,
    403: Forbidden,
    404: NotFound,
    405: InvalidRequest,
    409: Conflict,
    410: PositionLost,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: Busy,
    503: Busy,
}

_DATE_LENGTH_MAX: Final = 64
"""A date has 29 characters; a year of thousands of digits takes time with the square of them."""

Advice = Literal["never", "same_key", "after"]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer of the service's.

    Attributes:
        http_status: 200 for done, 202 for an outcome that is open, else an error.
        msg: for people.
        data: the payload, with exact numbers.
        error: the member ``error``; empty for a success.
        headers: the header fields, by their names in small letters.
    """

    http_status: int
    msg: str
    data: object
    error: Mapping[str, object]
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        """The service's word for an error; empty for a success."""
        return str(self.error.get("code", ""))

    @property
    def is_final(self) -> bool:
        """Whether the same request would get the same answer again."""
        if self.http_status == HTTPStatus.ACCEPTED:
            return False
        return self.http_status == HTTPStatus.OK or self.error.get("retry") == "never"

    @property
    def request_id(self) -> str | None:
        """Finds the request in the service's log."""
        named = self.error.get("request_id", self.headers.get("x-request-id"))
        return named if isinstance(named, str) else None

    @property
    def operation_id(self) -> str | None:
        """The operation that the answer is about, where it is one's own."""
        named = self.headers.get("payrelay-operation", self.error.get("operation_id"))
        return named if isinstance(named, str) else None

    @property
    def checkout_id(self) -> str | None:
        """The checkout that an error is about, where it is one's own."""
        named = self.error.get("checkout_id")
        return named if isinstance(named, str) else None

    @property
    def missing(self) -> tuple[str, ...]:
        """The ids of payments that took money, and that the gateway's record doesn't show yet."""
        return tuple(filter(None, self.headers.get("payrelay-missing", "").split(",")))

    @property
    def is_replay(self) -> bool:
        """Whether this is the finished answer of an earlier request."""
        return self.headers.get("idempotent-replayed") == "true"

    @property
    def retry_after_s(self) -> float | None:
        """The seconds to wait at least, where the service says so."""
        return seconds_of(self.headers.get("retry-after"))

    @property
    def reason(self) -> str:
        """Why the client asks again after this."""
        return self.code


@dataclass(frozen=True, kw_only=True)
class NoReply:
    """There was no answer that can be relied on. The request may have been carried out.

    Attributes:
        reason: NO_ANSWER, TIME_OUT, UNREADABLE or NO_CREDENTIAL.
        message: for people.
        retry_after_s: the seconds to wait at least, where a proxy said so.
    """

    reason: str
    message: str
    retry_after_s: float | None = None

    is_final: Literal[False] = False
    request_id: None = None
    operation_id: None = None


def read_reply(http_status: int, headers: Mapping[str, str], body: bytes) -> Reply | NoReply:
    """Reads an answer; what isn't the service's envelope, such as a proxy's page, is no reply."""
    unreadable = NoReply(
        reason=UNREADABLE,
        message=f"the answer of status {http_status} isn't the service's",
        retry_after_s=seconds_of(headers.get("retry-after")),
    )
    try:
        envelope = exact_json.decode(body)
    except ValueError:
        return unreadable
    return reply_of_envelope(http_status, headers, envelope) or unreadable


def reply_of_envelope(http_status: int, headers: Mapping[str, str], envelope: object) -> Reply | None:
    """Gives the answer that an envelope has; None for what is none."""
    if not isinstance(envelope, dict) or "data" not in envelope or not isinstance(envelope.get("msg"), str):
        return None
    status, error = envelope.get("status"), envelope.get("error", {})
    if isinstance(status, bool) or not isinstance(status, int) or not isinstance(error, dict):
        return None
    if (status == 1) != (http_status == HTTPStatus.OK):
        return None
    if not _is_success(http_status) and not (
        isinstance(error.get("code"), str) and isinstance(error.get("retry"), str)
    ):
        return None
    return Reply(http_status=http_status, msg=envelope["msg"], data=envelope["data"], error=error, headers=headers)


def replay_of(operation: OperationDetail) -> Reply:
    """Gives the answer that a request would have got whose operation is final.

    Where that answer isn't shown or kept any more, it is made of what the operation tells.
    """
    headers = {"payrelay-operation": operation.id, "idempotent-replayed": "true"}
    if operation.answer is not None:
        reply = reply_of_envelope(operation.answer.http_status, headers, operation.answer.body)
        if reply is not None:
            return reply
    if operation.state == "succeeded":
        data = {name: operation.raw.get(name) for name in ("order_id", "payment_id", "amount", "currency")}
        return Reply(http_status=200, msg=operation.explanation, data=data, error={}, headers=headers)
    http_status, code = (402, "declined") if operation.state == "declined" else (409, "conflict")
    error = {"code": code, "retry": "never", "operation_id": operation.id}
    return Reply(http_status=http_status, msg=operation.explanation, data=None, error=error, headers=headers)


def error_of(reply: Reply | NoReply) -> PayrelayError:
    """Gives the error that tells what to do about an answer that is no success."""
    if isinstance(reply, NoReply):
        return NoAnswer(reply.message, code=reply.reason, retry_after_s=reply.retry_after_s)
    fallback = ServiceFault if reply.http_status >= HTTPStatus.INTERNAL_SERVER_ERROR else InvalidRequest
    kind = _BY_CODE.get(reply.code) or _BY_STATUS.get(reply.http_status, fallback)
    if kind is NotFound and reply.error.get("retry") == "after":
        kind = Busy  # it is there, and not shown yet
    return kind(
        reply.msg,
        code=reply.code,
        http_status=reply.http_status,
        request_id=reply.request_id,
        operation_id=reply.operation_id,
        checkout_id=reply.checkout_id,
        fields=_fields_of(reply.error.get("fields")),
        retry_after_s=reply.retry_after_s,
    )


def is_empty_list(reply: Reply) -> bool:
    """Tells whether a 404 says that a list of the gateway's is empty, and not that it doesn't show something yet."""
    return reply.http_status == HTTPStatus.NOT_FOUND and reply.is_final and reply.data == []


def next_cursor(link: str | None) -> str | None:
    """Gives the cursor of the next page, as a Link header names it; None where there is no next page."""
    for entry in (link or "").split(","):
        address, _, parameters = entry.partition(";")
        if 'rel="next"' in parameters:
            return next(iter(parse_qs(urlsplit(address.strip().strip("<>")).query).get("cursor", [])), None)
    return None


def seconds_of(retry_after: str | None) -> float | None:
    """Gives the seconds of a Retry-After, which is a number or a date; None where it is neither."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    if len(text) > _DATE_LENGTH_MAX:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _is_success(http_status: int) -> bool:
    return HTTPStatus.OK <= http_status < HTTPStatus.MULTIPLE_CHOICES


def _fields_of(fields: object) -> tuple[FieldProblem, ...]:
    if not isinstance(fields, list):
        return ()
    return tuple(
        FieldProblem(path=str(each.get("path", "")), msg=str(each.get("msg", "")))
        for each in fields
        if isinstance(each, dict)
    )
