"""Writes every call to PayHere's merchant API as it goes over the wire. Pure.

Amounts are written digit by digit from integer hundredths. The charge and the capture have them as JSON numbers, the
refund as a string. Subscription calls have ids as numbers, refunds as strings. PayHere's documents say so, and no call
tries out what else it accepts.
"""

import base64
from typing import Final, assert_never
from urllib.parse import quote

import msgspec

from payrelay.core.calls import (
    AllSubscriptions,
    CancelSubscription,
    Capture,
    Charge,
    Effect,
    Item,
    OneSubscription,
    PaymentsOfOrder,
    PaymentsOfSubscription,
    Read,
    Refund,
    RetrySubscription,
    Void,
)
from payrelay.core.money import decimal_text
from payrelay.gateways.http.exchange import CallHeaders

JSON_TYPE: Final = "application/json"
FORM_TYPE: Final = "application/x-www-form-urlencoded"

_ROOT: Final = "/merchant/v1"
_encode = msgspec.json.Encoder().encode


class WireRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it goes over the wire, without its authorization; ``body`` is None for a GET."""

    method: str
    path: str
    body: bytes | None = None


def headers_of(authorization: str | None) -> CallHeaders:
    """Makes the headers of calls with one token, once for all of them; None for a call without an authorization."""
    return CallHeaders(authorization, JSON_TYPE)


def form_headers_of(authorization: str) -> CallHeaders:
    """Makes the headers of the token request."""
    return CallHeaders(authorization, FORM_TYPE)


def token_request() -> WireRequest:
    """Asks for an access token; a form, with the OAuth pair in the header."""
    return WireRequest(method="POST", path=f"{_ROOT}/oauth/token", body=b"grant_type=client_credentials")


def basic_authorization(app_id: str, app_secret: str) -> str:
    """Writes the header of the token request. Raises UnicodeEncodeError for text that is not Unicode."""
    return "Basic " + base64.b64encode(f"{app_id}:{app_secret}".encode()).decode()


def build(call: Effect | Read, *, notify_url: str | None = None) -> WireRequest:
    """Writes a call. ``notify_url`` goes into a charge that names none itself.

    Raises UnicodeEncodeError for a text with a lone surrogate, which no JSON that came in can hold.
    """
    match call:
        case Charge():
            return _post("payment/charge", _charge_body(call, notify_url))
        case Capture():
            return _post("payment/capture", _capture_body(call))
        case Refund() | Void():
            return _post("payment/refund", _refund_body(call))
        case RetrySubscription():
            return _post("subscription/retry", {"subscription_id": call.subscription_id})
        case CancelSubscription():
            return _post("subscription/cancel", {"subscription_id": call.subscription_id})
        case PaymentsOfOrder():
            # No character is safe: an order id is one value, and never another parameter.
            return _get(f"payment/search?order_id={quote(call.order_id, safe='')}")
        case AllSubscriptions():
            return _get("subscription")
        case OneSubscription():
            return _get(f"subscription/{call.subscription_id}")
        case PaymentsOfSubscription():
            return _get(f"subscription/{call.subscription_id}/payments")
        case _:
            assert_never(call)


def _post(path: str, members: dict[str, object]) -> WireRequest:
    return WireRequest(method="POST", path=f"{_ROOT}/{path}", body=_encode(members))


def _get(path: str) -> WireRequest:
    return WireRequest(method="GET", path=f"{_ROOT}/{path}")


def _charge_body(call: Charge, notify_url: str | None) -> dict[str, object]:
    members: dict[str, object] = {
        "type": "AUTHORIZE" if call.authorize else "PAYMENT",
        "order_id": call.order_id,
        "items": call.items,
        "currency": call.currency,
        "amount": _number(call.amount_minor),
        "customer_token": call.customer_token,
    }
    optional = {
        "custom_1": call.custom_1,
        "custom_2": call.custom_2,
        "notify_url": call.notify_url or notify_url,
        "itemList": None if call.item_list is None else [_item(item) for item in call.item_list],
    }
    members.update((name, value) for name, value in optional.items() if value is not None)
    return members


def _item(item: Item) -> dict[str, object]:
    return {
        "name": item.name,
        "number": item.number,
        "quantity": item.quantity,
        "unit_amount": _number(item.unit_amount_minor),
    }


def _capture_body(call: Capture) -> dict[str, object]:
    return {
        "authorization_token": call.authorization_token,
        "amount": _number(call.amount_minor),
        "deduction_details": call.description,
    }


def _refund_body(call: Refund | Void) -> dict[str, object]:
    """Names exactly one of payment and authorization; PayHere doesn't document what both would do."""
    subject: dict[str, object] = (
        {"payment_id": call.payment_id}
        if isinstance(call, Refund)
        else {"authorization_token": call.authorization_token}
    )
    part: dict[str, object] = {} if call.amount_minor is None else {"amount": decimal_text(call.amount_minor)}
    return {**subject, "description": call.description, **part}


def _number(amount_minor: int) -> msgspec.Raw:
    """Writes an amount as a JSON number with two decimals, without a float on the way."""
    return msgspec.Raw(decimal_text(amount_minor).encode())
