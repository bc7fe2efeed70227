"""Everything that can go wrong, as one table of codes and one small tree of exceptions.

    PayrelayError
    ├── Refusal              an answer to the client: a code of the table below, a text, what to do next
    │   └── StillRunning     an equal request is being carried out now; the caller may wait for it
    ├── SettingsError        the program can't start as it is configured; one line that names the setting
    ├── StoreError
    │   ├── StoreUnavailable busy, full, locked or gone for now; nothing of the unit of work was committed
    │   │   └── StoreDoubtful  lost in the middle of a unit of work, which may be committed all the same
    │   ├── StoreUnusable    can't be opened: missing, read-only, newer than the program, another key
    │   ├── Outdated         the row was changed since it was read; read it again and decide anew
    │   └── RowForged        a row was written by somebody who lacks the key; a person must look
    │       └── OperationForged  the row or the history of an operation
    └── IllegalTransition    an error in the program: an event that the table of states lacks
        └── OverruledError   a report that loses against an operation's state (``flows.apply_change``)

A decline is an answer of the gateway's, not an exception (see ``core.outcomes``).
"""

from enum import StrEnum
from typing import Final

import msgspec

FIELD_ERRORS_MAX: Final = 50
"""The most fields that an answer names, so that it is not much larger than its request."""


class Retry(StrEnum):
    """What a client should do next, for machines."""

    NEVER = "never"
    """Don't repeat the request: a repeat gets an equal answer."""
    SAME_KEY = "same_key"
    """Send an equal request again, with its Idempotency-Key."""
    AFTER = "after"
    """Send an equal request again, with its Idempotency-Key, not before ``Retry-After``."""


class Code(StrEnum):
    """The error codes of the interface; ``MEANINGS`` says what each one is for."""

    OUTCOME_UNKNOWN = "outcome_unknown"
    NEEDS_ATTENTION = "needs_attention"
    PENDING = "pending"
    MALFORMED_REQUEST = "malformed_request"
    UNAUTHENTICATED = "unauthenticated"
    DECLINED = "declined"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    IN_PROGRESS = "in_progress"
    CONFLICT = "conflict"
    POSITION_LOST = "position_lost"
    TOO_LARGE = "too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    INVALID_REQUEST = "invalid_request"
    IDEMPOTENCY_MISMATCH = "idempotency_mismatch"
    RATE_LIMITED = "rate_limited"
    INTERNAL = "internal"
    NOT_CONFIGURED = "not_configured"
    GATEWAY_REFUSED_US = "gateway_refused_us"
    GATEWAY_BAD_REPLY = "gateway_bad_reply"
    GATEWAY_BUSY = "gateway_busy"
    GATEWAY_UNREACHABLE = "gateway_unreachable"
    UNAVAILABLE = "unavailable"


class Meaning(msgspec.Struct, frozen=True):
    """What a code stands for: its HTTP status, what the client should do, and a sentence for the docs."""

    http_status: int
    retry: Retry
    sentence: str
    retry_after_s: int | None = None


MEANINGS: Final[dict[Code, Meaning]] = {
    Code.OUTCOME_UNKNOWN: Meaning(
        202, Retry.AFTER, "The service sent it, or may have sent it, and doesn't know the outcome yet.", 2
    ),
    Code.NEEDS_ATTENTION: Meaning(
        202,
        Retry.AFTER,
        "The service can't establish the outcome, or that of an earlier try that its database lost; an operator must"
        " decide.",
        3_600,
    ),
    Code.PENDING: Meaning(202, Retry.AFTER, "The gateway says that it is pending.", 10),
    Code.MALFORMED_REQUEST: Meaning(
        400,
        Retry.NEVER,
        "The body is not a JSON object in UTF-8, or has a doubled member; or the Idempotency-Key is bad.",
    ),
    Code.UNAUTHENTICATED: Meaning(
        401, Retry.NEVER, "The request has no credential, or one that is unknown, expired or revoked."
    ),
    Code.DECLINED: Meaning(
        402,
        Retry.NEVER,
        "The gateway declined the charge, and the service passes on its msg and data; or evidence or an operator"
        " established later that the charge failed.",
    ),
    Code.FORBIDDEN: Meaning(
        403,
        Retry.NEVER,
        "The credential lacks the scope or the account for this, its limit is too low, or it is for another payment.",
    ),
    Code.NOT_FOUND: Meaning(
        404,
        Retry.NEVER,
        "There is no such route, or nothing of that name or id that the caller may see. With `after` in `retry`, a"
        " payment is known that the gateway's record does not show yet.",
    ),
    Code.METHOD_NOT_ALLOWED: Meaning(405, Retry.NEVER, "The route exists, but not with this method; see Allow."),
    Code.IN_PROGRESS: Meaning(
        409,
        Retry.AFTER,
        "The same request is under way, or an operation on the same subject is not final yet, or the order has an open"
        " page.",
        1,
    ),
    Code.CONFLICT: Meaning(
        409,
        Retry.NEVER,
        "It is already paid, captured, refunded, charged back, cancelled or completed, or not eligible for what was"
        " asked; or more is to be refunded than is left; or the order id is taken; or evidence or an operator"
        " established later that it failed.",
    ),
    Code.POSITION_LOST: Meaning(
        410,
        Retry.NEVER,
        "The position in the feed is of events that the database has lost, or behind all events: read the feed anew.",
    ),
    Code.TOO_LARGE: Meaning(413, Retry.NEVER, "The body is over 64 KiB."),
    Code.UNSUPPORTED_MEDIA_TYPE: Meaning(415, Retry.NEVER, "The body is not application/json in UTF-8."),
    Code.INVALID_REQUEST: Meaning(
        422, Retry.NEVER, "A field is wrong, by the rules of the service or of the gateway; see fields."
    ),
    Code.IDEMPOTENCY_MISMATCH: Meaning(422, Retry.NEVER, "The Idempotency-Key was used with another request."),
    Code.RATE_LIMITED: Meaning(
        429,
        Retry.AFTER,
        "The caller has used up its own quota or one that it shares, or follows events in as many requests as it may;"
        " or too many wrong keys came from its address.",
        1,
    ),
    Code.INTERNAL: Meaning(500, Retry.SAME_KEY, "The service made a mistake; the log has it under the request id."),
    Code.NOT_CONFIGURED: Meaning(
        501, Retry.NEVER, "A setting that this needs is missing in the service; an operator must set it."
    ),
    Code.GATEWAY_REFUSED_US: Meaning(
        502,
        Retry.SAME_KEY,
        "The gateway does not accept the service's credentials, domain or address; nothing was executed.",
    ),
    Code.GATEWAY_BAD_REPLY: Meaning(502, Retry.SAME_KEY, "The service could not read the gateway's answer to a read."),
    Code.GATEWAY_BUSY: Meaning(503, Retry.AFTER, "The gateway's budget had no room in time; nothing was executed.", 5),
    Code.GATEWAY_UNREACHABLE: Meaning(
        503, Retry.AFTER, "The service could not connect to the gateway; nothing was sent.", 5
    ),
    Code.UNAVAILABLE: Meaning(
        503,
        Retry.AFTER,
        "The service can't do it now, and this attempt changed nothing at the gateway: the account is paused, the"
        " service is about to stop or has stopped calling a gateway that fails, the gateway gave no access token in"
        " time, or the database is down. What became of an earlier attempt can't be told here and now.",
        5,
    ),
}


class FieldError(msgspec.Struct, frozen=True):
    """One field of a request that is wrong: where (``itemList[0].name``) and why, in words."""

    path: str
    msg: str


class PayrelayError(Exception):
    """The base of all exceptions that Payrelay raises on purpose."""


class Refusal(PayrelayError):
    """A request that is not carried out, with what its answer says.

    Args:
        code: the error code; ``MEANINGS`` gives its HTTP status and retry advice.
        msg: one sentence for people; never holds a secret.
        fields: the fields that are wrong, for ``invalid_request``.
        retry_after_s: seconds, in place of those in ``MEANINGS``.
        operation_id: the operation that is the cause, only where the caller owns it.
        checkout_id: the checkout that is the cause, only where the caller owns it.
        headers: extra response headers, such as Allow.
    """

    def __init__(
        self,
        code: Code,
        msg: str,
        *,
        fields: tuple[FieldError, ...] = (),
        retry_after_s: int | None = None,
        operation_id: str | None = None,
        checkout_id: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(msg)
        self.code = code
        self.msg = msg
        self.fields = fields
        self.retry_after_s = MEANINGS[code].retry_after_s if retry_after_s is None else retry_after_s
        self.operation_id = operation_id
        self.checkout_id = checkout_id
        self.headers = headers


def wrong_field(path: str, words: str) -> Refusal:
    """Makes the refusal (invalid_request) that names one field; ``words`` follow its name in the message."""
    return Refusal(Code.INVALID_REQUEST, f"{path} {words}", fields=(FieldError(path, words),))


def wrong_fields(errors: list[FieldError]) -> Refusal:
    """Makes the refusal (invalid_request) that names every wrong field, or the first FIELD_ERRORS_MAX of them."""
    shown = tuple(errors[:FIELD_ERRORS_MAX])
    if len(errors) == 1:
        msg = f"{shown[0].path} {shown[0].msg}"
    else:
        msg = f"{len(errors)} fields are wrong: {', '.join(error.path for error in shown)}"
    return Refusal(Code.INVALID_REQUEST, msg, fields=shown)


class StillRunning(Refusal):
    """An equal request is being carried out now, as the operation ``running_id``."""

    def __init__(self, running_id: str) -> None:
        super().__init__(Code.IN_PROGRESS, "the same request is being worked on now", operation_id=running_id)
        self.running_id = running_id


class UndecidedError(Exception):
    """An operator's decision was not made; the text gives the reason, in one line."""


class SettingsError(PayrelayError):
    """The configuration can't be used; the text is one line and names the setting."""


class StoreFault(StrEnum):
    """What kept the store from carrying out a request, for operators: readiness and the metrics name it."""

    DISK_FULL = "disk_full"
    READ_ONLY = "read_only"
    """The server or the file takes no writes."""
    UNREACHABLE = "unreachable"
    """No server answers, or the connection was lost."""
    TIMEOUT = "timeout"
    """No answer came in time."""
    NO_CONNECTION_FREE = "no_connection_free"
    """All connections of the process, or all places in the writer's queue, are in use."""
    BUSY = "busy"
    """Another session or process holds a lock, or the server takes no more connections."""
    LOGIN_REFUSED = "login_refused"
    OTHER_SERVER = "other_server"
    """Another server takes the writes, or none that is known to take them."""
    IO_ERROR = "io_error"
    """The disk or the file is damaged, or can't be read."""
    OTHER = "other"


class StoreError(PayrelayError):
    """The store did not carry out a request.

    Args:
        text: what happened, in words for an operator.
        fault: what kept the store from it.
    """

    def __init__(self, text: str = "", *, fault: StoreFault = StoreFault.OTHER) -> None:
        super().__init__(text)
        self.fault = fault


class StoreUnavailable(StoreError):
    """The store can't be used for now. Nothing of the unit of work was committed, and it may be repeated."""


class StoreDoubtful(StoreUnavailable):
    """The store was lost during a unit of work, which was committed in whole or not at all."""


class StoreUnusable(StoreError):
    """This program can't open the store as it is; an operator must act. The text is one line."""


class DatabaseNotReady(StoreUnusable):
    """There is no database yet, or it is of an earlier version: ``payrelay db upgrade`` mends both."""


class DatabaseMissing(DatabaseNotReady):
    """There is no database yet, or nothing in it: ``payrelay serve`` makes one."""


class Outdated(StoreError):
    """The row has another version than the one that was read; nothing was written."""


class RowForged(StoreError):
    """A row has no right digest: nothing follows from it."""


class OperationForged(RowForged):
    """The row of ``operation_id``, or its history, isn't as this program stored it: nothing is concluded from it."""

    def __init__(self, operation_id: str) -> None:
        by = "something other than Payrelay; a person must look at it"
        super().__init__(f"operations/{operation_id} was changed by {by}")
        self.operation_id = operation_id


class CallCleared(StoreError):
    """The call of ``operation_id`` is no longer kept: its period of retention is over."""

    def __init__(self, operation_id: str) -> None:
        super().__init__(f"the call of {operation_id} is no longer kept")
        self.operation_id = operation_id


class IllegalTransition(PayrelayError):
    """An event came in a state in which the table of transitions does not allow it."""
