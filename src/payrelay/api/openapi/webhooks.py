"""The webhooks: for every type of event the message that is sent to an endpoint, with its data."""

from collections.abc import Mapping
from typing import Final

from payrelay.api.openapi.shapes import CARD_EXPIRY, Schema, described, reference
from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.customers.customer import CustomerState
from payrelay.core.events.event import PUBLISHED_STATES, TYPES
from payrelay.core.payments.operation import Kind
from payrelay.core.subscriptions.subscription import SubscriptionState

TAG: Final = "webhooks"
"""Theirs alone: some generators let the webhooks of a tag replace its calls."""

_TEXT: Final[Schema] = {"type": "string"}
_TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_VERSION: Final[Schema] = {
    "type": "integer",
    "minimum": 1,
    "description": "Counts the changes: of two messages, the one with the larger version is newer.",
}
_AMOUNT: Final = described(_TEXT_OR_NULL, "A text with two decimals, such as `345.67`.")
_GATEWAY_ID: Final = described(_TEXT_OR_NULL, "The gateway's number, as text.")


def _one_of(values: object) -> Schema:
    return {"type": "string", "enum": sorted(map(str, values))}  # type: ignore[call-overload]


_PAID_FOR: Final[Mapping[str, Schema]] = {"order_id": _TEXT_OR_NULL, "amount": _AMOUNT, "currency": _TEXT_OR_NULL}
_DATA: Final[Mapping[str, tuple[str, Mapping[str, Schema]]]] = {
    "operation": (
        "An operation is in another state, which its type names.",
        {
            "operation_id": _TEXT,
            "kind": _one_of(Kind),
            "state": _one_of(PUBLISHED_STATES),
            "version": _VERSION,
            **_PAID_FOR,
            "payment_id": _GATEWAY_ID,
            "subscription_id": _GATEWAY_ID,
            "customer_id": _TEXT_OR_NULL,
            "request_id": _TEXT,
        },
    ),
    "payment": (
        "The bank took a payment back.",
        {"payment_id": _TEXT, "operation_id": _TEXT_OR_NULL, **_PAID_FOR},
    ),
    "order": (
        "An order that was paid got a further payment. What is another principal's is null.",
        {
            "order_id": _TEXT,
            "payment_id": described(_GATEWAY_ID, "Of the further payment."),
            "operation_id": _TEXT_OR_NULL,
            "checkout_id": _TEXT_OR_NULL,
            "subscription_id": described(_GATEWAY_ID, "Of the plan whose payment it is, which goes on."),
            "amount": _AMOUNT,
            "currency": _TEXT_OR_NULL,
            "earlier_payment_id": described(_GATEWAY_ID, "Of a payment that the order had before."),
            "earlier_operation_id": _TEXT_OR_NULL,
            "earlier_checkout_id": _TEXT_OR_NULL,
            "earlier_subscription_id": _TEXT_OR_NULL,
            "earlier_amount": _AMOUNT,
            "earlier_currency": _TEXT_OR_NULL,
        },
    ),
    "subscription": (
        "A subscription has changed, or an installment was charged or failed.",
        {
            "subscription_id": _TEXT,
            "state": _one_of(SubscriptionState),
            "installments_paid": {"type": "integer", "minimum": 0},
            "next_on": {"type": ["string", "null"], "format": "date", "description": "When the next one is due."},
            **_PAID_FOR,
            "payment_id": described(_TEXT_OR_NULL, "Of the installment; only where the event is about one."),
            "payment_amount": described(_TEXT_OR_NULL, "Of the installment; only where the event is about one."),
        },
    ),
    "customer": (
        "A stored customer has changed.",
        {
            "customer_id": _TEXT,
            "state": _one_of(CustomerState),
            "version": _VERSION,
            "method": _TEXT_OR_NULL,
            "card_no_masked": _TEXT_OR_NULL,
            "card_expiry": CARD_EXPIRY,
            "order_id": _TEXT_OR_NULL,
            "payment_id": _GATEWAY_ID,
        },
    ),
    "checkout": (
        "A checkout is in another state, which its type names.",
        {
            "checkout_id": _TEXT,
            "kind": _one_of(CheckoutKind),
            "state": _one_of(CheckoutState),
            "reason": described(_TEXT_OR_NULL, "Why, where the state doesn't say it: `closed` of a cancelled one."),
            "version": _VERSION,
            **_PAID_FOR,
            "payment_id": _GATEWAY_ID,
            "subscription_id": _GATEWAY_ID,
            "customer_id": _TEXT_OR_NULL,
        },
    ),
    "endpoint": (
        "A test of an endpoint, or the service sends no more events to it.",
        {"endpoint_id": _TEXT, "reason": described(_TEXT_OR_NULL, "Why it was stopped.")},
    ),
}
"""By the noun of the types: a sentence, and the members of ``data``."""
_SUBJECTS: Final[Mapping[str, str]] = {"order": "payment"}
"""The nouns of the subjects that aren't those of the types: an order's name may have any characters."""
_OPTIONAL: Final = frozenset(
    {("subscription", "payment_id"), ("subscription", "payment_amount"), ("endpoint", "reason")}
)
_HEADERS: Final[Mapping[str, str]] = {
    "webhook-id": "The id of the event, equal for each attempt: keep it, and do your work once.",
    "webhook-timestamp": "When this attempt was signed, in seconds since 1970.",
    "webhook-signature": "Signatures by Standard Webhooks, one for each valid secret.",
}


def webhook_schemas() -> dict[str, Schema]:
    """Gives the schemas of the messages and of their data, by name."""
    schemas: dict[str, Schema] = {}
    for noun, (sentence, members) in _DATA.items():
        data = f"{noun.capitalize()}EventData"
        schemas[data] = {
            "type": "object",
            "description": f"What an event of this noun is about: {noun}.",
            "required": [name for name in members if (noun, name) not in _OPTIONAL],
            "properties": dict(members),
        }
        schemas[f"{noun.capitalize()}Event"] = {
            "type": "object",
            "description": sentence,
            "required": ["id", "type", "timestamp", "account", "subject", "data"],
            "properties": {
                "id": described(_TEXT, "Equal for each attempt to send the event."),
                "type": _one_of(each for each in TYPES if each.startswith(f"{noun}.")),
                "timestamp": described(_TEXT, "When it happened."),
                "account": described(_TEXT, "The gateway account."),
                "subject": described(_TEXT, f"What it is about, such as `{_SUBJECTS.get(noun, noun)}:…`."),
                "data": reference(data),
                "traceparent": described(_TEXT, "The W3C trace context, where tracing was on."),
            },
        }
    return schemas


def webhooks() -> dict[str, Schema]:
    """Gives the webhook of every type of event, by the type."""
    parameters = [
        {"name": name, "in": "header", "required": True, "description": sentence, "schema": _TEXT}
        for name, sentence in _HEADERS.items()
    ]
    described_webhooks: dict[str, Schema] = {}
    for type_ in sorted(TYPES):
        noun, _, what = type_.partition(".")
        schema = reference(f"{noun.capitalize()}Event")
        described_webhooks[type_] = {
            "post": {
                "operationId": "on" + "".join(word.capitalize() for word in (noun, *what.split("_"))),
                "summary": f"Get the event `{type_}`",
                "description": _DATA[noun][0],
                "tags": [TAG],
                "security": [],
                "parameters": parameters,
                "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
                "responses": {
                    "204": {"description": "Any status 2xx: the event is delivered."},
                    "4XX": {"description": "Any other status: the service tries again, for three days."},
                },
            }
        }
    return described_webhooks
