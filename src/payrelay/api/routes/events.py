"""Events: the feed of what happened, page by page or as it happens."""

from typing import Final

from payrelay.api.http.streams import StreamedAnswer
from payrelay.api.requests.parameters import Parameter, matches, up_to
from payrelay.api.requests.route import ParsedRequest, Route, only_own, refused
from payrelay.core.access.credential import Scope
from payrelay.core.answers import Answer
from payrelay.core.events.delivery import PATTERNS, PatternError, pattern_of
from payrelay.errors import FieldError, wrong_fields
from payrelay.flows.events.read_events import EventFilter, follow, read_events
from payrelay.flows.relay import Relay

EVENTS_USUAL: Final = 100
EVENTS_MAX: Final = 1_000
"""Events on one page; each is under 1 KiB."""
POSITION: Final = r"[0-9]{1,18}"
POSITION_MAX: Final = 10**18 - 1
_SUBJECT: Final = r"[a-z]{1,20}:[a-zA-Z0-9_-]{1,64}"
_FOLLOWED: Final = r"operation:op_[0-9a-f]{32}|checkout:chk_[0-9a-f]{32}"


def _is_pattern(text: str) -> str | None:
    try:
        pattern_of(text)
    except PatternError as error:
        return str(error)
    return None


AFTER: Final = Parameter(
    name="after",
    sentence="Goes on behind this position; `next` of a page has it. 0 is the beginning.",
    schema={"type": "integer", "minimum": 0, "maximum": POSITION_MAX, "default": 0},
    validator=matches(POSITION, "must be a position, as next of a page has it"),
    example=0,
)
TYPE: Final = Parameter(
    name="type",
    sentence="Only events of this type, such as `operation.succeeded`, or of these, such as `operation.*`.",
    schema={"type": "string", "enum": PATTERNS},
    validator=_is_pattern,
    example="operation.*",
)
SUBJECT: Final = Parameter(
    name="subject",
    sentence="Only events about this, such as `operation:op_…`.",
    schema={"type": "string", "pattern": f"^{_SUBJECT}$"},
    validator=matches(_SUBJECT, "must be a subject such as operation:op_… or customer:cus_…"),
    example="operation:op_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
FOLLOWED: Final = Parameter(
    name="subject",
    sentence="The operation or the checkout to follow: `operation:op_…` or `checkout:chk_…`. Required.",
    schema={"type": "string", "pattern": f"^({_FOLLOWED})$"},
    validator=matches(_FOLLOWED, "must be operation:op_… or checkout:chk_…"),
    example="operation:op_019c8b2f5a7e4d10b6f3a92c7e08d154",
    is_required=True,
)
EVENT_LIMIT: Final = Parameter(
    name="limit",
    sentence="Events on the page.",
    schema={"type": "integer", "minimum": 1, "maximum": EVENTS_MAX, "default": EVENTS_USUAL},
    validator=up_to(EVENTS_MAX),
    example=EVENTS_USUAL,
)


async def some_events(relay: Relay, asked: ParsedRequest) -> Answer:
    """Reads one page of the feed."""
    query = asked.query
    wanted = EventFilter(
        after=int(query.get("after", "0")),
        limit=int(query.get("limit", EVENTS_USUAL)),
        subject=query.get("subject"),
        pattern=pattern_of(query["type"]) if "type" in query else None,
    )
    return await read_events(relay, asked.request, wanted, asked.wait_preference)


async def event_stream(relay: Relay, asked: ParsedRequest) -> Answer:
    """Follows one operation or checkout; a browser that comes again says behind which event it goes on."""
    subject = asked.query.get(FOLLOWED.name)
    if subject is None:
        raise wrong_fields([FieldError(FOLLOWED.name, "is required")])
    after = asked.query.get("after", "0")
    if asked.last_event_id is not None and AFTER.validator(asked.last_event_id) is None:
        after = asked.last_event_id
    return StreamedAnswer(stream=await follow(relay, asked.request, subject, after=int(after)))


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="listEvents",
        method="GET",
        path="/events",
        sentence="Read the feed of events, oldest first",
        scope=Scope.EVENTS_READ,
        handler=some_events,
        answer="events",
        bound=refused,
        query=(AFTER, TYPE, SUBJECT, EVENT_LIMIT),
        can_wait=True,
    ),
    Route(
        name="followEvents",
        method="GET",
        path="/events/stream",
        sentence="Follow one operation or checkout by server-sent events",
        scope=Scope.EVENTS_READ,
        handler=event_stream,
        answer="event stream",
        bound=only_own,
        query=(FOLLOWED, AFTER),
        is_stream=True,
    ),
)
