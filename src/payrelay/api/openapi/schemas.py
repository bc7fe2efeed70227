"""The JSON Schemas of answers.

The service passes the gateway's data on unchanged. The schemas of its records are therefore open: the members of the
interface have types, further members are allowed, and a member that the gateway doesn't know may be null or missing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from payrelay.api.requests.body import Body, CheckedValue
from payrelay.api.routes.checkouts import MEMBERS_OF_KINDS, MembersOfKind
from payrelay.api.routes.client_tokens import CLIENT_TOKEN_RULES, OPEN
from payrelay.errors import Code, Retry
from payrelay.flows.access.client_token_views import ClientTokenView, IssuedClientToken
from payrelay.flows.checkouts.show_checkout import CheckoutView, OpenedCheckout
from payrelay.flows.customers.show_customer import CustomerView, ErasedCustomerView
from payrelay.flows.events.event_views import EventView
from payrelay.flows.events.manage_endpoints import DeliveryView, EndpointView, IssuedEndpoint, ReplayResult
from payrelay.flows.events.read_events import EventPage
from payrelay.flows.payments.operation_views import OperationDetail, OperationView
from payrelay.flows.recovery.acknowledge import RecoveryView
from payrelay.flows.subscriptions.show_subscription_states import SubscriptionStateView

Schema = dict[str, object]

REF: Final = "#/components/schemas/"

_TEXT: Final[Schema] = {"type": ["string", "null"]}
_NUMBER: Final[Schema] = {"type": ["number", "null"]}
_INTEGER: Final[Schema] = {"type": ["integer", "null"]}


def reference(name: str) -> Schema:
    """Gives a reference to a schema of this document."""
    return {"$ref": REF + name}


def _record(sentence: str, /, **members: Schema) -> Schema:
    return {"type": "object", "description": sentence, "properties": members}


def _named(schema: Schema, sentence: str) -> Schema:
    return {**schema, "description": sentence}


def _list_of(name: str) -> Schema:
    return {"type": "array", "items": reference(name)}


_CHARGED: Final[dict[str, Schema]] = {
    "order_id": _TEXT,
    "items": _TEXT,
    "currency": _TEXT,
    "amount": _NUMBER,
    "custom_1": _TEXT,
    "custom_2": _TEXT,
    "payment_id": _INTEGER,
    "status_code": _named(_INTEGER, "2 is success; 3 is an authorization."),
    "status_message": _TEXT,
    "md5sig": _named(_TEXT, "The gateway's signature."),
}
_RECORD: Final[dict[str, Schema]] = {
    "order_id": _TEXT,
    "date": _named(_TEXT, "`YYYY-MM-DD HH:MM:SS`, in the gateway's time zone."),
    "description": _TEXT,
    "currency": _TEXT,
    "amount": _NUMBER,
    "customer": reference("Customer"),
    "amount_detail": reference("AmountDetail"),
    "payment_method": reference("PaymentMethod"),
}

_GATEWAY: Final[dict[str, Schema]] = {
    "ChargeData": _record(
        "A charge as the gateway reports it.",
        **_CHARGED,
        authorization_token=_named(_TEXT, "For a later capture; only an authorization has one."),
    ),
    "CaptureData": _record(
        "A capture as the gateway reports it; `amount` was authorized, `captured_amount` was captured.",
        **_CHARGED,
        captured_amount=_NUMBER,
    ),
    "Customer": _record(
        "The customer who paid; `fist_name` is the interface's spelling.",
        fist_name=_TEXT,
        last_name=_TEXT,
        email=_TEXT,
        phone=_TEXT,
        delivery_details={
            "type": ["object", "null"],
            "properties": {"address": _TEXT, "city": _TEXT, "country": _TEXT},
        },
    ),
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
        status=_named(_TEXT, "`RECEIVED`, `REFUND REQUESTED`, `REFUND PROCESSING`, `REFUNDED`, `CHARGEBACKED`."),
        items={"type": ["array", "null"], "items": reference("LineItem")},
    ),
    "Subscription": _record(
        "A subscription as the gateway records it.",
        subscription_id=_INTEGER,
        **_RECORD,
        recurring=_named(_TEXT, "How often and for how long, in words."),
        status=_named(_TEXT, "`ACTIVE`, `COMPLETED`, `FAILED`, …"),
        items={"type": ["array", "null"], "items": reference("LineItem")},
        payments={"type": "array", "items": reference("Payment"), "description": "Only with `expand=payments`."},
    ),
}

_GATEWAY_DATA: Final[Mapping[str, Schema]] = {
    "payments": _list_of("Payment"),
    "charge": reference("ChargeData"),
    "capture": reference("CaptureData"),
    "refund": {"type": ["integer", "null"], "description": "The gateway's number of the refund; null for a void."},
    "subscriptions": _list_of("Subscription"),
    "subscription": reference("Subscription"),
    "nothing": {"type": "null"},
    "test event": {"type": "object", "properties": {"event_id": {"type": "string"}}},
    "revoked": {"type": "object", "properties": {"revoked": {"type": "integer", "minimum": 0}}},
}
_OWN_DATA: Final[Mapping[str, Any]] = {
    "operations": list[OperationView],
    "operation": OperationDetail,
    "recovery": RecoveryView,
    "subscription states": list[SubscriptionStateView],
    "subscription state": SubscriptionStateView,
    "events": EventPage,
    "event stream": EventView,
    "endpoints": list[EndpointView],
    "endpoint": EndpointView,
    "issued endpoint": IssuedEndpoint,
    "replayed": ReplayResult,
    "deliveries": list[DeliveryView],
    "opened checkout": OpenedCheckout,
    "checkout": CheckoutView,
    "customers": list[CustomerView],
    "customer": CustomerView,
    "erased customer": ErasedCustomerView,
    "client_tokens": list[ClientTokenView],
    "client_token": IssuedClientToken,
}
"""The types of data that Payrelay itself answers with."""


def _described(types: Iterable[Any]) -> tuple[tuple[Schema, ...], dict[str, Schema]]:
    """Gives the schemas of types, and those of the objects in them by name."""
    return msgspec.json.schema_components(types, schema_hook=_own_type, ref_template=REF + "{name}")


def _own_type(kind: type) -> Schema:
    assert issubclass(kind, CheckedValue)  # noqa: S101 - tells mypy what every type of our own is
    return kind.SCHEMA


DATA: Final[Mapping[str, Schema]] = {
    **_GATEWAY_DATA,
    **dict(zip(_OWN_DATA, _described(_OWN_DATA.values())[0], strict=True)),
}
"""The schema of ``data`` by what a route answers."""


def success(answer: str) -> Schema:
    """Gives the envelope of a success."""
    return {
        "type": "object",
        "required": ["status", "msg", "data"],
        "properties": {
            "status": {"const": 1},
            "msg": {"type": "string", "description": "A message for people; the gateway's own where it answered."},
            "data": DATA[answer],
        },
    }


def failure(codes: list[Code]) -> Schema:
    """Gives the envelope of an error that carries one of these codes."""
    restriction = {"properties": {"error": {"properties": {"code": {"enum": [code.value for code in codes]}}}}}
    return {"allOf": [reference("Failure"), restriction]}


def components(bodies: list[type[Body]]) -> dict[str, Schema]:
    """Gives every schema that the document refers to, by name."""
    _, made = _described([*bodies, *_OWN_DATA.values()])
    schemas: dict[str, Schema] = {**made, **_GATEWAY, "Failure": _failure_envelope(), "Error": _error_member()}
    _add_rules_between_fields(schemas)
    for name, schema in made.items():
        properties = schema.get("properties", {})
        assert isinstance(properties, dict)  # noqa: S101 - tells mypy what msgspec always gives
        # What a view has as JSON text is an amount, which its type does not say.
        amounts = [each for each in ("amount", "amount_max", "startup_fee") if properties.get(each) == {}]
        properties.update(dict.fromkeys(amounts, _NUMBER))
        if name in {ClientTokenView.__name__, IssuedClientToken.__name__}:
            properties["amount"] = {"anyOf": [_NUMBER, {"const": OPEN}]}
    return schemas


def _add_rules_between_fields(schemas: dict[str, Schema]) -> None:
    """Adds the rules between fields, which ``Body.together_errors`` checks."""
    if "CaptureBody" in schemas:
        schemas["CaptureBody"]["anyOf"] = [{"required": ["description"]}, {"required": ["deduction_details"]}]
    if "CustomerNamesBody" in schemas:
        schemas["CustomerNamesBody"]["minProperties"] = 1
    if "ClientTokenBody" in schemas:
        schemas["ClientTokenBody"].update(CLIENT_TOKEN_RULES)
    if "ReplayBody" in schemas:
        schemas["ReplayBody"]["anyOf"] = [
            {"required": ["ids"], "not": {"anyOf": [{"required": ["since"]}, {"required": ["until"]}]}},
            {"required": ["since"], "not": {"required": ["ids"]}},
        ]
    if "RefundBody" in schemas:
        schemas["RefundBody"]["oneOf"] = [{"required": ["payment_id"]}, {"required": ["authorization_token"]}]
    if "CheckoutBody" in schemas:
        schemas["CheckoutBody"]["allOf"] = [_of_kind(kind, members) for kind, members in MEMBERS_OF_KINDS.items()]


def _of_kind(kind: str, members: MembersOfKind) -> Schema:
    """Gives the rule for the members that a checkout of a kind must have, and must not have."""
    forbidden = [{"required": [name]} for name in members.forbidden]
    return {
        "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
        "then": {"required": [*members.required], **({"not": {"anyOf": forbidden}} if forbidden else {})},
    }


def _failure_envelope() -> Schema:
    return {
        "type": "object",
        "required": ["status", "msg", "data", "error"],
        "properties": {
            "status": {"enum": [0, -1, -2], "description": "0 with 202, -2 with 401 and 403, else -1."},
            "msg": {"type": "string", "description": "A message for people."},
            "data": {
                "description": "The gateway's data if it gave any, `[]` for an order without payments, else null."
            },
            "error": reference("Error"),
        },
    }


def _error_member() -> Schema:
    return {
        "type": "object",
        "required": ["code", "retry", "request_id"],
        "properties": {
            "code": {
                "type": "string",
                "enum": [*Code],
                "description": "Codes may be added. Where you don't know one, go by the HTTP status and `retry`.",
            },
            "retry": {
                "type": "string",
                "enum": [*Retry],
                "description": "What to do next. `never`: don't repeat the request. `same_key`: repeat it unchanged, "
                "with its Idempotency-Key. `after`: repeat it unchanged, but not before Retry-After.",
            },
            "request_id": {"type": "string"},
            "operation_id": {"type": "string", "description": "The operation, where it is yours."},
            "fields": {
                "type": "array",
                "description": "Every wrong field.",
                "items": {
                    "type": "object",
                    "required": ["path", "msg"],
                    "properties": {"path": {"type": "string"}, "msg": {"type": "string"}},
                },
            },
        },
    }
