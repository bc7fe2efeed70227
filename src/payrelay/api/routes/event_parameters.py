"""The parameters of the routes for events and endpoints."""

from typing import Final

from payrelay.api.http.text_checks import anything, matches, up_to
from payrelay.api.routes.parameters import Parameter
from payrelay.core.events.delivery import PATTERNS, DeliveryState, PatternError, pattern_of

EVENTS_USUAL: Final = 100
EVENTS_MAX: Final = 1_000
"""Events on one page; each is under 1 KiB."""
DELIVERIES_USUAL: Final = 20
DELIVERIES_MAX: Final = 100
_POSITION: Final = r"[0-9]{1,18}"
_ENDPOINT_ID: Final = r"end_[0-9a-f]{32}"
_SUBJECT: Final = r"[a-z]{1,20}:[a-zA-Z0-9_-]{1,64}"
_FOLLOWED: Final = r"operation:op_[0-9a-f]{32}|checkout:chk_[0-9a-f]{32}"


def _is_pattern(text: str) -> str | None:
    try:
        pattern_of(text)
    except PatternError as error:
        return str(error)
    return None


ENDPOINT: Final = Parameter(
    name="id",
    sentence="Identifier of the endpoint.",
    schema={"type": "string", "pattern": f"^{_ENDPOINT_ID}$"},
    # A wrong one is no such endpoint.
    complaint=anything,
    example="end_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
AFTER: Final = Parameter(
    name="after",
    sentence="Goes on behind this position; `next` of a page has it. 0 is the beginning.",
    schema={"type": "integer", "minimum": 0, "maximum": 10**18 - 1, "default": 0},
    complaint=matches(_POSITION, "must be a position, as next of a page has it"),
    example=0,
)
TYPE: Final = Parameter(
    name="type",
    sentence="Only events of this type, such as `operation.succeeded`, or of these, such as `operation.*`.",
    schema={"type": "string", "enum": PATTERNS},
    complaint=_is_pattern,
    example="operation.*",
)
SUBJECT: Final = Parameter(
    name="subject",
    sentence="Only events about this, such as `operation:op_…`.",
    schema={"type": "string", "pattern": f"^{_SUBJECT}$"},
    complaint=matches(_SUBJECT, "must be a subject such as operation:op_… or customer:cus_…"),
    example="operation:op_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
FOLLOWED: Final = Parameter(
    name="subject",
    sentence="The operation or the checkout to follow: `operation:op_…` or `checkout:chk_…`. Required.",
    schema={"type": "string", "pattern": f"^({_FOLLOWED})$"},
    complaint=matches(_FOLLOWED, "must be operation:op_… or checkout:chk_…"),
    example="operation:op_019c8b2f5a7e4d10b6f3a92c7e08d154",
    is_required=True,
)
EVENT_LIMIT: Final = Parameter(
    name="limit",
    sentence="Events on the page.",
    schema={"type": "integer", "minimum": 1, "maximum": EVENTS_MAX, "default": EVENTS_USUAL},
    complaint=up_to(EVENTS_MAX),
    example=EVENTS_USUAL,
)
DELIVERY_LIMIT: Final = Parameter(
    name="limit",
    sentence="Deliveries on the page.",
    schema={"type": "integer", "minimum": 1, "maximum": DELIVERIES_MAX, "default": DELIVERIES_USUAL},
    complaint=up_to(DELIVERIES_MAX),
    example=DELIVERIES_USUAL,
)
DELIVERY_STATE: Final = Parameter(
    name="state",
    sentence="Only deliveries in this state.",
    schema={"type": "string", "enum": [*DeliveryState]},
    complaint=lambda text: None if text in set(DeliveryState) else f"must be one of {', '.join(DeliveryState)}",
    example=DeliveryState.WAITING,
)
BEFORE: Final = Parameter(
    name="before",
    sentence="Only deliveries of events below this position, for the next page.",
    schema={"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
    complaint=matches(_POSITION, "must be a position, as a delivery has it"),
    example=1_000,
)
