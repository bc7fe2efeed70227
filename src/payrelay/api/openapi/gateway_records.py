"""The schemas of what the gateway reports.

The service passes the gateway's data on unchanged. The schemas of its records are therefore open: the members of the
interface have types, further members are allowed, and a member that the gateway doesn't know may be null or missing.
Required is only what the service has checked before it passes a record on.
"""

from collections.abc import Mapping
from typing import Final

from payrelay.api.openapi.shapes import NULL, Schema, described, reference

_TEXT: Final[Schema] = {"type": ["string", "null"]}
_NUMBER: Final[Schema] = {"type": ["number", "null"]}
_INTEGER: Final[Schema] = {"type": ["integer", "null"]}
_GIVEN_TEXT: Final[Schema] = {"type": "string"}
_GIVEN_NUMBER: Final[Schema] = {"type": "number"}
_GIVEN_INTEGER: Final[Schema] = {"type": "integer"}


def _record(sentence: str, required: tuple[str, ...] = (), /, **members: Schema) -> Schema:
    needed = {"required": [*required]} if required else {}
    return {"type": "object", "description": sentence, **needed, "properties": members}


_STATUS_CODE: Final = described(_GIVEN_INTEGER, "2 is success; 3 is an authorization.")
_SIGNATURE: Final = described(_TEXT, "The gateway's signature. No client token gets it.")
_CHARGED: Final[dict[str, Schema]] = {
    "order_id": _TEXT,
    "items": _TEXT,
    "currency": _TEXT,
    "amount": _NUMBER,
    "custom_1": _TEXT,
    "custom_2": _TEXT,
    "payment_id": _INTEGER,
    "status_code": _STATUS_CODE,
    "status_message": _TEXT,
    "md5sig": _SIGNATURE,
}
_RECORD: Final[dict[str, Schema]] = {
    "order_id": _TEXT,
    "date": described(_TEXT, "`YYYY-MM-DD HH:MM:SS`, in the gateway's time zone."),
    "description": _TEXT,
    "currency": _TEXT,
    "amount": _NUMBER,
    "customer": reference("PaymentCustomer"),
    "amount_detail": reference("AmountDetail"),
    "payment_method": reference("PaymentMethod"),
}
_ITEMS: Final[Schema] = {"type": ["array", "null"], "items": reference("LineItem")}

GATEWAY_RECORDS: Final[Mapping[str, Schema]] = {
    "ChargeData": _record(
        "A charge as the gateway reports it.",
        ("order_id", "currency", "amount", "status_code"),
        **{**_CHARGED, "order_id": _GIVEN_TEXT, "currency": _GIVEN_TEXT, "amount": _GIVEN_NUMBER},
        authorization_token=described(
            _TEXT, "For a later capture; only an authorization has one, and no client token gets it."
        ),
    ),
    "CaptureData": _record(
        "A capture as the gateway reports it; `amount` was authorized, `captured_amount` was captured.",
        ("status_code", "captured_amount"),
        **_CHARGED,
        captured_amount=_GIVEN_NUMBER,
    ),
    "PaymentCustomer": _record(
        "The customer who paid; `fist_name` is the interface's spelling.",
        fist_name=_TEXT,
        last_name=_TEXT,
        email=_TEXT,
        phone=_TEXT,
        delivery_details={"anyOf": [reference("DeliveryDetails"), NULL]},
    ),
    "DeliveryDetails": _record("Where the purchase goes.", address=_TEXT, city=_TEXT, country=_TEXT),
    "AmountDetail": _record(
        "The gateway's fee and the net amount.",
        currency=_TEXT,
        gross=_NUMBER,
        fee=_NUMBER,
        net=_NUMBER,
        exchange_rate=_NUMBER,
        exchange_from=_TEXT,
        exchange_to=_TEXT,
    ),
    "PaymentMethod": _record(
        "The card; all digits but the last four are asterisks.",
        method=_TEXT,
        card_customer_name=_TEXT,
        card_no=_TEXT,
    ),
    "LineItem": _record(
        "One item of the purchase.",
        name=_TEXT,
        quantity=_INTEGER,
        currency=_TEXT,
        unit_price=_NUMBER,
        total_price=_NUMBER,
    ),
    "Payment": _record(
        "A payment as the gateway records it.",
        payment_id=_INTEGER,
        **_RECORD,
        status=described(_TEXT, "`RECEIVED`, `REFUND REQUESTED`, `REFUND PROCESSING`, `REFUNDED`, `CHARGEBACKED`."),
        items=_ITEMS,
        request={"anyOf": [reference("PaymentTags"), NULL]},
    ),
    "PaymentTags": _record("What you gave the charge as `custom_1` and `custom_2`.", custom1=_TEXT, custom2=_TEXT),
    "Subscription": _record(
        "A subscription as the gateway records it.",
        ("subscription_id",),
        subscription_id=_GIVEN_INTEGER,
        **_RECORD,
        recurring=described(_TEXT, "How often and for how long, in words."),
        status=described(_TEXT, "`ACTIVE`, `COMPLETED`, `FAILED`, …"),
        items=_ITEMS,
        payments={"type": "array", "items": reference("Payment"), "description": "Only with `expand=payments`."},
    ),
}
"""By name."""
