"""Bodies that are right, and how tests change them."""

import json
from typing import Any

import pytest

from payrelay.api.requests.body import Body, parse_body
from payrelay.errors import Code, Refusal

CHARGE: dict[str, Any] = {
    "type": "PAYMENT",
    "order_id": "Order12345",
    "items": "Taxi Hire 123",
    "currency": "LKR",
    "amount": 345.67,
    "customer_token": "59AFEE022CC69CA39D325E1B59130862",
}
CAPTURE: dict[str, Any] = {"authorization_token": "e34f3059", "amount": 80, "description": "out of stock"}
REFUND: dict[str, Any] = {"payment_id": "320027150501", "description": "Item is out of stock"}
LEFT_OUT = object()


def written(members: dict[str, Any], **changes: object) -> bytes:
    """Writes a body with some members changed or left out."""
    merged = {name: value for name, value in {**members, **changes}.items() if value is not LEFT_OUT}
    return json.dumps(merged).encode()


def wrong(body: bytes, kind: type[Body]) -> dict[str, str]:
    """Gives what is wrong with a body, by field."""
    with pytest.raises(Refusal) as raised:
        parse_body(body, kind)
    assert raised.value.code is Code.INVALID_REQUEST
    return {error.path: error.msg for error in raised.value.fields}
