"""The enumerations of the description, each under one name."""

from collections.abc import Mapping
from typing import Final

from payrelay.api.openapi.failures import FAILED, OPEN
from payrelay.api.openapi.shapes import Schema
from payrelay.core.access.client_token import CLIENT_SCOPES
from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.customers.customer import CustomerState
from payrelay.core.events.delivery import PATTERNS, DeliveryState, EndpointState
from payrelay.core.events.event import PUBLISHED_STATES, TYPES
from payrelay.core.orders.figures import DoubtKind, Figure, FigureSource
from payrelay.core.payments.operation import Kind, State
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.errors import Retry

_NOUNS: Final = sorted({type_.partition(".")[0] for type_ in TYPES})

_VALUES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "OperationState": ("The state of an operation.", tuple(State)),
    "OperationKind": ("What an operation does at the gateway.", tuple(Kind)),
    "PublishedState": ("The states of an operation that have events.", tuple(sorted(PUBLISHED_STATES))),
    "Figure": ("One of the figures of a payment.", tuple(Figure)),
    "FigureSource": ("What a figure of a payment comes from.", tuple(FigureSource)),
    "DoubtKind": ("Why something of a balance isn't certain. Words may be added.", tuple(DoubtKind)),
    "CheckoutKind": ("What a customer is asked for.", tuple(CheckoutKind)),
    "CheckoutState": ("The state of a checkout.", tuple(CheckoutState)),
    "CustomerState": ("The state of a stored customer.", tuple(CustomerState)),
    "SubscriptionState": ("The state of a subscription.", tuple(SubscriptionState)),
    "EndpointState": ("The state of an endpoint.", tuple(EndpointState)),
    "DeliveryState": ("The state of a delivery.", tuple(DeliveryState)),
    "ClientScope": ("What a client token may do.", tuple(sorted(CLIENT_SCOPES))),
    "ChargeType": (
        "PAYMENT charges the amount now, AUTHORIZE authorizes it for a later capture.",
        ("PAYMENT", "AUTHORIZE"),
    ),
    "CheckoutMethod": (
        "How a customer pays; an empty text says nothing of it.",
        ("VISA", "MASTER", "AMEX", "HELAPAY", "FRIMI", "QPLUS", ""),
    ),
    "EventPattern": ("Every event, the events about a noun, or those of one type.", PATTERNS),
    "EventType": ("What has happened.", tuple(sorted(TYPES))),
    "OpenCode": ("Why the outcome isn't known yet.", OPEN),
    "ErrorCode": (
        "What is wrong. Codes may be added. Where you don't know one, go by the HTTP status and `retry`.",
        FAILED,
    ),
    "Retry": (
        "`never`: don't repeat the request. `same_key`: repeat it unchanged. `after`: the same, after Retry-After.",
        tuple(Retry),
    ),
    **{
        f"{noun.capitalize()}EventType": (
            "What has happened.",
            tuple(sorted(each for each in TYPES if each.startswith(f"{noun}."))),
        )
        for noun in _NOUNS
        if sum(each.startswith(f"{noun}.") for each in TYPES) > 1
    },
}

ENUMS: Final[Mapping[str, Schema]] = {
    name: {"type": "string", "description": sentence, "enum": [*values]} for name, (sentence, values) in _VALUES.items()
}
"""By name."""
NAMES_OF_ENUMS: Final[Mapping[frozenset[object], str]] = {
    frozenset(values): name for name, (_, values) in _VALUES.items()
}
"""By values."""
