"""Answers with a code, as ``payrelay demo`` gives them; a test provokes each, and compares."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from payrelay.api.openapi.shapes import Schema
from payrelay.core.answers import STATUS_OF_HTTP, STATUS_OTHERWISE
from payrelay.core.payments.payment import missing_sentence
from payrelay.errors import MEANINGS, Code, Retry

REQUEST_ID: Final = "req_5af22480a16661292670ceae"
OPERATION_ID: Final = "op_019c8b2f5a7e4d10b6f3a92c7e08d154"
CHECKOUT_ID: Final = "chk_019c8b2f5a7e4d10b6f3a92c7e08d154"

_CHARGE: Final = frozenset({"charge"})
_EFFECTS: Final = frozenset({"charge", "capture", "refund", "retrySubscription", "cancelSubscription"})
_ENDPOINTS: Final = frozenset(
    {
        *("showEndpoint", "changeEndpoint", "removeEndpoint", "rotateEndpoint", "sendTestEvent", "listDeliveries"),
        "replayEvents",
    }
)
_CUSTOMERS: Final = frozenset({"showCustomer", "changeCustomer", "removeCustomer", "eraseCustomer"})


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureExample:
    """One answer.

    Attributes:
        code: its code.
        msg: its message.
        routes: the names of the routes that give it; None for all that have the code.
        data: the gateway's data.
        error: further members of its error.
    """

    code: Code
    msg: str
    routes: Collection[str] | None = None
    data: object = None
    error: dict[str, object] = field(default_factory=dict)

    @property
    def body(self) -> Schema:
        """The body of the answer."""
        meaning = MEANINGS[self.code]
        return {
            "status": STATUS_OF_HTTP.get(meaning.http_status, STATUS_OTHERWISE),
            "msg": self.msg,
            "data": self.data,
            "error": {"code": self.code, "retry": meaning.retry, "request_id": REQUEST_ID, **self.error},
        }


_OF_OPERATION: Final[dict[str, object]] = {"operation_id": OPERATION_ID}


def _wrong(path: str, words: str, route: str) -> FailureExample:
    error: dict[str, object] = {"fields": [{"path": path, "msg": words}]}
    return FailureExample(code=Code.INVALID_REQUEST, msg=f"{path} {words}", routes={route}, error=error)


def _missing(noun: str, routes: Collection[str]) -> FailureExample:
    return FailureExample(code=Code.NOT_FOUND, msg=f"there is no such {noun}", routes=routes)


EXAMPLES: Final[dict[str, FailureExample]] = {
    "pending": FailureExample(
        code=Code.PENDING, msg="the gateway says that it is pending", routes=_CHARGE, error=_OF_OPERATION
    ),
    "outcome_unknown": FailureExample(
        code=Code.OUTCOME_UNKNOWN,
        msg="the service sent it, or may have sent it, and doesn't know the outcome yet",
        routes=_EFFECTS,
        error=_OF_OPERATION,
    ),
    "malformed_request": FailureExample(
        code=Code.MALFORMED_REQUEST,
        msg="the body is not JSON: Expecting ',' delimiter at character 18",
        routes=_CHARGE,
    ),
    "bad_key": FailureExample(
        code=Code.MALFORMED_REQUEST, msg="Idempotency-Key must be visible ASCII characters", routes=_EFFECTS
    ),
    "unauthenticated": FailureExample(
        code=Code.UNAUTHENTICATED, msg="an Authorization header with a bearer key is required"
    ),
    "declined": FailureExample(
        code=Code.DECLINED,
        msg="Simulator: the charge was declined",
        routes=_CHARGE,
        data={
            "order_id": "DemoOrder4",
            "items": "Taxi Hire 124",
            "currency": "LKR",
            "amount": 345.67,
            "custom_1": None,
            "custom_2": None,
            "payment_id": 320025000012,
            "status_code": -2,
            "status_message": "Simulator: insufficient funds",
            "md5sig": "C4B0C1232D0465E2E3FBBB81AB70BA30",
            "authorization_token": None,
        },
        error=_OF_OPERATION,
    ),
    "forbidden": FailureExample(
        code=Code.FORBIDDEN, msg="the credential lacks the scope payments:capture", routes={"capture"}
    ),
    "not_shown_yet": FailureExample(
        code=Code.NOT_FOUND,
        msg=missing_sentence(["320025000001"]),
        routes={"retrievePayments"},
        data=[],
        error={"retry": Retry.AFTER},
    ),
    "no_payments": FailureExample(code=Code.NOT_FOUND, msg="No payments found", routes={"retrievePayments"}, data=[]),
    "no_order": _missing("order", {"showOrder"}),
    "no_operation": _missing("operation", {"showOperation"}),
    "no_customer": _missing("customer", _CUSTOMERS),
    "no_checkout": _missing("checkout", {"showCheckout", "closeCheckout"}),
    "no_endpoint": _missing("endpoint", _ENDPOINTS),
    "no_client_token": _missing("client token", {"revokeClientToken"}),
    "method_not_allowed": FailureExample(
        code=Code.METHOD_NOT_ALLOWED, msg="this address accepts GET only", routes={"listOperations", "showOperation"}
    ),
    "in_progress": FailureExample(
        code=Code.IN_PROGRESS,
        msg="an operation on the same order is not final yet",
        routes=_CHARGE,
        error=_OF_OPERATION,
    ),
    "open_page": FailureExample(
        code=Code.IN_PROGRESS,
        msg=f"the order has the checkout {CHECKOUT_ID} already, which is open: wait until it has ended, or close its"
        f" page with DELETE checkouts/{CHECKOUT_ID}",
        routes={"openCheckout"},
        error={"checkout_id": CHECKOUT_ID},
    ),
    "not_eligible": FailureExample(
        code=Code.CONFLICT,
        msg="Subscription is not eligible for retrying",
        routes={"retrySubscription"},
        error=_OF_OPERATION,
    ),
    "no_recovery": FailureExample(
        code=Code.CONFLICT, msg="no recovery of incarnation 1 is under way", routes={"acknowledgeRecovery"}
    ),
    "position_lost": FailureExample(
        code=Code.POSITION_LOST,
        msg="the database has lost the events up to this position, or never gave it; read anew from after=0, or without"
        " Last-Event-ID: an event that you know has the same id, and an operation that you don't find may be lost",
        routes={"listEvents"},
    ),
    "too_large": FailureExample(code=Code.TOO_LARGE, msg="the body is over 65536 bytes"),
    "unsupported_media_type": FailureExample(
        code=Code.UNSUPPORTED_MEDIA_TYPE, msg="the Content-Type must be application/json"
    ),
    "inexact_amount": _wrong("amount", "must have at most 2 decimals; probably 10.10 was meant", "charge"),
    "wrong_address": _wrong("url", "must be an https address", "createEndpoint"),
    "idempotency_mismatch": FailureExample(
        code=Code.IDEMPOTENCY_MISMATCH, msg="this Idempotency-Key was used with another request"
    ),
    "gateway_unreachable": FailureExample(
        code=Code.GATEWAY_UNREACHABLE,
        msg="the service could not send it to the gateway; nothing was executed",
        routes=_EFFECTS,
        error=_OF_OPERATION,
    ),
}
"""By name."""

FAILURE_EXAMPLES: Final[dict[str, Schema]] = {
    name: {"summary": example.msg, "value": example.body} for name, example in EXAMPLES.items()
}
"""As components of the description, by name."""


def failure_examples_of(route: str, codes: list[Code]) -> list[str]:
    """Gives the names of the examples of these codes on a route."""
    return [
        name
        for name, example in EXAMPLES.items()
        if example.code in codes and (example.routes is None or route in example.routes)
    ]
