"""Everything that a call may raise: one type for each thing that a program does differently.

An error of a call that moves money says that this request took no effect. What may have moved money isn't an error, but
an ``Open`` outcome.
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class FieldProblem:
    """One wrong field of a request: its ``path``, such as ``itemList[0].name``, and what is wrong with it."""

    path: str
    msg: str


class PayrelayError(Exception):
    """The base of all errors of this package.

    Attributes:
        message: what happened, for people: the service's ``msg`` where it answered.
        code: the service's word for it; None where the service said nothing.
        http_status: of the answer; None where there was none.
        request_id: finds the request in the service's log.
        operation_id: the operation that the error is about, where it is yours.
        checkout_id: the checkout that the error is about, where it is yours.
        fields: the wrong fields.
        retry_after_s: the seconds after which the same call may do better; None where waiting doesn't help.
    """

    advice: ClassVar[str] = "Look at the message."
    """One sentence on what to do."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        http_status: int | None = None,
        request_id: str | None = None,
        operation_id: str | None = None,
        checkout_id: str | None = None,
        fields: tuple[FieldProblem, ...] = (),
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.http_status = http_status
        self.request_id = request_id
        self.operation_id = operation_id
        self.checkout_id = checkout_id
        self.fields = fields
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        wrong = "; ".join(f"{each.path} {each.msg}" for each in self.fields)
        parts = [self.message, wrong and f"({wrong})", self.code and f"[{self.code}]", f"{self.advice}"]
        return " ".join(part for part in parts if part)


class Declined(PayrelayError):
    """The charge was declined, and nothing was taken (402)."""

    advice = "Tell the customer; another attempt is allowed: the same call with again=True."


class InvalidRequest(PayrelayError):
    """The request is wrong, and nothing was done (400, 405, 413, 415, 422)."""

    advice = "Correct the fields that it names."


class Conflict(PayrelayError):
    """It is paid, captured, refunded or cancelled already, or not eligible (409)."""

    advice = "Look at the order before you do anything."


class Busy(PayrelayError):
    """Something else is under way, or there is no room now (409, 429, 503)."""

    advice = "Call again after retry_after_s."


class Unauthenticated(PayrelayError):
    """The credential is unknown, expired or revoked (401)."""

    advice = "Get another credential; this says nothing of what an earlier send of the same payment did."


class Forbidden(PayrelayError):
    """The credential may not do this (403)."""

    advice = "Get a credential that may do this; this says nothing of what an earlier send of the same payment did."


class NotFound(PayrelayError):
    """There is nothing of that name or id that the caller may see (404)."""

    advice = "Check the id, the account in the address, and whose it is."


class PositionLost(PayrelayError):
    """The position in the feed is of events that the service has lost (410)."""

    advice = "Read the feed anew from 0, and skip each id that you know."


class KeyReused(PayrelayError):
    """The payment was asked for with other values before (422 ``idempotency_mismatch``)."""

    advice = "Send the values of the first request, or look at its operation."


class ServiceFault(PayrelayError):
    """The service can't do it until an operator has acted (500, 501, 502)."""

    advice = "An operator of the service must act; the request_id finds it in the log."


class NoAnswer(PayrelayError):
    """No answer came, or none that can be read, to a call that moves no money."""

    advice = "Call again."


class StoreFailed(PayrelayError):
    """The key could not be stored, and so nothing was sent."""

    advice = "Mend the store, and call again."


class NameNeeded(PayrelayError):
    """A key needs a name that is the same after a crash; nothing was sent."""

    advice = "Give a name, such as the order's or the return's number."


class AttemptOpen(PayrelayError):
    """Another attempt was asked for while the last one isn't known to have taken nothing; nothing was sent."""

    advice = "Make the same call without again: it follows the last attempt."


class InvalidAmount(PayrelayError, ValueError):
    """An amount is no exact decimal; nothing was sent."""

    advice = 'Give a Decimal or a text, such as "345.67".'


class WebhookRefused(PayrelayError):
    """The signature, the time or the form of a webhook is wrong."""

    advice = "Answer 400, and do nothing."


class Stopped(PayrelayError):
    """The caller ended the call, by raising this from ``on_wait``.

    Where ``is_open`` is true, a payment may have been sent and its outcome isn't known.
    """

    advice = "Where is_open is true, make the same call later: it follows the payment."

    def __init__(self, message: str = "the caller ended the call") -> None:
        super().__init__(message)
        self.is_open = False
