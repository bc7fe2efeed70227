"""The schemas of bodies and answers, each under one short name."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from payrelay.api.openapi.failures import FAILURES
from payrelay.api.openapi.gateway_records import GATEWAY_RECORDS
from payrelay.api.openapi.shapes import CARD_EXPIRY, NOTHING, REF, Schema, always, nullable, or_empty, plain, reference
from payrelay.api.requests.amounts import Amount, StartupFee, UnitAmount
from payrelay.api.requests.body import Body, CheckedValue, empty_is_absent, given
from payrelay.api.routes.checkouts import MEMBERS_OF_KINDS, MembersOfKind
from payrelay.api.routes.client_tokens import CLIENT_TOKEN_RULES, OPEN
from payrelay.core.events.delivery import PATTERNS
from payrelay.core.events.event import TYPES
from payrelay.flows.access.client_token_views import ClientTokenView, IssuedClientToken
from payrelay.flows.checkouts.show_checkout import CheckoutView, OpenedCheckout
from payrelay.flows.customers.show_customer import CustomerView, ErasedCustomerView
from payrelay.flows.events.event_views import EventPage, EventView
from payrelay.flows.events.manage_endpoints import DeliveryView, EndpointView, IssuedEndpoint, ReplayResult
from payrelay.flows.orders.order_views import OrderView
from payrelay.flows.payments.operation_views import OperationDetail, OperationView
from payrelay.flows.subscriptions.show_subscription_states import SubscriptionStateView
from payrelay.recovery.flows.acknowledge import RecoveryView

PAGED: Final = frozenset({"operations", "customers", "client_tokens", "subscription states", "events", "deliveries"})
"""The answers that are pages of a list; ``next_cursor`` leads from each to the next."""

_NAMES: Final[Mapping[str, str]] = {
    "State": "OperationState",
    "Kind": "OperationKind",
    "SubscriptionStateView": "SubscriptionSummary",
    "PayerBody": "Payer",
    "DeliveryBody": "DeliveryAddress",
    "ItemEntry": "ChargeItem",
    "ReplayResult": "Replay",
    "CustomerBody": "ImportCustomerRequest",
    "CustomerNamesBody": "ChangeCustomerRequest",
    "NewEndpointBody": "CreateEndpointRequest",
}
"""The names of schemas that don't follow from those of our types by dropping View, and saying Request for Body."""


def _list_of(name: str) -> Schema:
    return {"type": "array", "items": reference(name)}


_AMOUNTS: Final = (
    *("amount", "amount_max", "startup_fee"),
    *("paid", "held", "given_back", "charged_back", "left"),
)
_SHARED: Final[Mapping[type[CheckedValue], str]] = {
    Amount: "Amount",
    UnitAmount: "UnitAmount",
    StartupFee: "StartupFee",
}
"""Our own types that stand under a name: a generator makes a type of the two forms of an amount, and only one."""

_OBJECTS: Final[Mapping[str, Schema]] = {
    **GATEWAY_RECORDS,
    **{name: kind.SCHEMA for kind, name in _SHARED.items()},
    "TestEvent": {
        "type": "object",
        "required": ["event_id"],
        "properties": {"event_id": {"type": "string", "description": "The id of the event that is sent."}},
    },
    "Revoked": {
        "type": "object",
        "required": ["revoked"],
        "properties": {
            "revoked": {"type": "integer", "minimum": 0, "description": "How many client tokens were revoked."}
        },
    },
}
_GATEWAY_DATA: Final[Mapping[str, Schema]] = {
    "payments": _list_of("Payment"),
    "charge": reference("ChargeData"),
    "capture": reference("CaptureData"),
    "refund": {"type": ["integer", "null"], "description": "The gateway's number of the refund; null for a void."},
    "subscriptions": _list_of("Subscription"),
    "subscription": reference("Subscription"),
    "nothing": NOTHING,
    "test event": reference("TestEvent"),
    "revoked": reference("Revoked"),
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
    "order": OrderView,
    "closed checkout": CheckoutView,
    "customers": list[CustomerView],
    "customer": CustomerView,
    "erased customer": ErasedCustomerView,
    "client_tokens": list[ClientTokenView],
    "client_token": IssuedClientToken,
}
"""The types of data that Payrelay itself answers with."""


def name_of(kind: type) -> str:
    """Gives the name of the schema of one of our types."""
    return _short(kind.__name__)


def _short(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    return f"{name.removesuffix('Body')}Request" if name.endswith("Body") else name.removesuffix("View")


def _described(types: Iterable[Any]) -> tuple[tuple[Schema, ...], dict[str, Schema]]:
    """Gives the schemas of types, and those of the objects in them by name."""
    made, components_ = msgspec.json.schema_components(types, schema_hook=_own_type, ref_template=REF + "{name}")
    return tuple(_renamed(schema) for schema in made), {
        _short(name): _renamed(schema) for name, schema in components_.items()
    }


def _renamed(value: Any) -> Any:  # noqa: ANN401 - any part of a schema
    if isinstance(value, dict):
        return {
            key: REF + _short(part.removeprefix(REF)) if key == "$ref" else _renamed(part)
            for key, part in value.items()
        }
    return [_renamed(part) for part in value] if isinstance(value, list) else value


def _own_type(kind: type) -> Schema:
    assert issubclass(kind, CheckedValue)  # noqa: S101 - tells mypy what every type of our own is
    return reference(_SHARED[kind]) if kind in _SHARED else kind.SCHEMA


DATA: Final[Mapping[str, Schema]] = {
    name: plain(schema)
    for name, schema in {
        **_GATEWAY_DATA,
        **dict(zip(_OWN_DATA, _described(_OWN_DATA.values())[0], strict=True)),
    }.items()
}
"""The schema of ``data`` by what a route answers."""


def success(answer: str) -> Schema:
    """Gives the reference to the envelope of a success."""
    return reference(_envelope_name(answer))


def _envelope_name(answer: str) -> str:
    words = answer.replace("_", " ").split()
    return "".join(word[0].upper() + word[1:] for word in words) + "Answer"


def _envelope(answer: str) -> Schema:
    properties: dict[str, Schema] = {
        "status": {"type": "integer", "const": 1},
        "msg": {"type": "string", "description": "A message for people; the gateway's own where it answered."},
        "data": DATA[answer],
    }
    if answer in PAGED:
        properties["next_cursor"] = {
            "type": ["string", "null"],
            "description": "The `cursor` of the next page; null on the last one.",
        }
    return {
        "type": "object",
        "description": f"The envelope of a success: {answer.replace('_', ' ')}.",
        "required": [*properties],
        "properties": properties,
    }


def components(bodies: list[type[Body]], answers: Iterable[str]) -> dict[str, Schema]:
    """Gives the schemas of these bodies and answers, of what is in them, and of failures, by name."""
    _, made = _described([*bodies, *_OWN_DATA.values()])
    for kind in _all_bodies(bodies):
        _allow_null(made[name_of(kind)])
        _allow_empty(kind, made[name_of(kind)])
    _add_rules_between_members(made)
    schemas = {**made, **_OBJECTS, **FAILURES}
    for name, schema in made.items():
        _add_what_types_leave_open(name, schema)
    envelopes = {_envelope_name(answer): _envelope(answer) for answer in answers}
    return {name: plain(schema) for name, schema in sorted({**schemas, **envelopes}.items())}


def _all_bodies(bodies: Iterable[type[Body]]) -> set[type[Body]]:
    """Gives these bodies and all that are parts of them."""
    found: set[type[Body]] = set()
    left = [*bodies]
    while left:
        kind = left.pop()
        found.add(kind)
        parts = [_body_in(field.type) for field in msgspec.inspect.type_info(kind).fields]  # type: ignore[attr-defined]
        left.extend(part for part in parts if part is not None and part not in found)
    return found


def _body_in(kind: msgspec.inspect.Type) -> type[Body] | None:
    match kind:
        case msgspec.inspect.StructType(cls=cls):
            return cls if issubclass(cls, Body) else None
        case msgspec.inspect.Metadata(type=inner) | msgspec.inspect.ListType(item_type=inner):
            return _body_in(inner)
        case msgspec.inspect.UnionType(types=types):
            return _body_in(types[0])
    return None


def _members(schema: Schema) -> dict[str, Schema]:
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)  # noqa: S101 - tells mypy what msgspec always gives
    return properties


def _allow_empty(kind: type[Body], schema: Schema) -> None:
    """Lets an optional address or label be an empty text, as ``parse_body`` does."""
    fields = msgspec.inspect.type_info(kind).fields  # type: ignore[attr-defined]
    marked = {field.encode_name for field in fields if empty_is_absent(field)}
    properties = _members(schema)
    properties.update({name: or_empty(each) for name, each in properties.items() if name in marked})


def _allow_null(schema: Schema) -> None:
    """Lets every optional member of a body be null, as ``parse_body`` does."""
    required = schema.get("required", [])
    assert isinstance(required, list)  # noqa: S101 - tells mypy what msgspec always gives
    properties = _members(schema)
    properties.update({name: nullable(plain(each)) for name, each in properties.items() if name not in required})


def _add_what_types_leave_open(name: str, schema: Schema) -> None:
    properties = _members(schema)
    # What a view has as JSON text is an amount, which its type does not say.
    amounts = [each for each in _AMOUNTS if properties.get(each) == {}]
    properties.update({each: {"type": ["number", "null"]} for each in amounts})
    if name in {name_of(ClientTokenView), name_of(IssuedClientToken)}:
        properties["amount"] = {"anyOf": [{"type": ["number", "null"]}, {"type": "string", "const": OPEN}]}
    if name in {name_of(CustomerView), name_of(ErasedCustomerView)}:
        properties["card_expiry"] = CARD_EXPIRY
    if name in {name_of(EventView), name_of(DeliveryView)}:
        properties["type"] = {"type": "string", "enum": sorted(TYPES)}
    if name in {name_of(EndpointView), name_of(IssuedEndpoint)}:
        properties["types"] = {"type": "array", "items": {"type": "string", "enum": [*PATTERNS]}}
    if properties.get("body") == {}:
        properties["body"] = {"type": "object", "description": "The envelope."}


def _add_rules_between_members(schemas: dict[str, Schema]) -> None:
    """Adds the rules between members, which ``Body.together_errors`` checks."""
    rules: dict[str, tuple[Schema, ...]] = {
        "CaptureRequest": ({"anyOf": [given("description"), given("deduction_details")]},),
        "ClientTokenRequest": (CLIENT_TOKEN_RULES,),
        "ReplayRequest": (
            {
                "anyOf": [
                    {"allOf": [given("ids"), {"not": {"anyOf": [given("since"), given("until")]}}]},
                    {"allOf": [given("since"), {"not": given("ids")}]},
                ]
            },
        ),
        "RefundRequest": ({"oneOf": [given("payment_id"), given("authorization_token")]},),
        "CheckoutRequest": tuple(_of_kind(kind, members) for kind, members in MEMBERS_OF_KINDS.items()),
    }
    for name, rules_of_name in rules.items():
        if name in schemas:
            schemas[name].update(always(*rules_of_name))
    if "ChangeCustomerRequest" in schemas:
        schemas["ChangeCustomerRequest"]["minProperties"] = 1


def _of_kind(kind: str, members: MembersOfKind) -> Schema:
    """Gives the rule for the members that a checkout of a kind must have, and must not have."""
    forbidden = {"not": {"anyOf": [given(name) for name in members.forbidden]}} if members.forbidden else {}
    return {
        "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
        "then": {"allOf": [*map(given, members.required), *([forbidden] if forbidden else [])]},
    }
