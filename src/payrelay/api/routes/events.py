"""Events: the feed, in pages or as a stream."""

from typing import Final

from payrelay.api.http.streams import StreamedAnswer
from payrelay.api.requests.parameters import ID_EXAMPLE, Parameter, cursor, limit, matches
from payrelay.api.requests.route import ParsedRequest, Route, only_own, refused
from payrelay.core.access.credential import Scope
from payrelay.core.answers import Answer
from payrelay.core.events.delivery import PATTERNS, PatternError, pattern_of
from payrelay.errors import Code, FieldError, wrong_fields
from payrelay.flows.events.read_events import EventFilter, follow_events, list_events
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
    sentence="The position to continue after; `next` of a page has it. 0 is the beginning of the feed.",
    schema={"type": "integer", "minimum": 0, "maximum": POSITION_MAX, "default": 0},
    validator=matches(POSITION, "must be a position, as next of a page has it"),
    example=0,
)
EVENT_CURSOR: Final = cursor(
    "the last event that you have (a position)",
    POSITION,
    "0",
    words="must be a position, as next_cursor of a page has it",
)
TYPE: Final = Parameter(
    name="type",
    sentence="Only events of this type, such as `operation.succeeded`, or of these types, such as `operation.*`.",
    schema={"type": "string", "enum": [*PATTERNS]},
    validator=_is_pattern,
    example="operation.*",
)
SUBJECT: Final = Parameter(
    name="subject",
    sentence="Only events about this subject, such as `operation:op_…`.",
    schema={"type": "string", "pattern": f"^{_SUBJECT}$"},
    validator=matches(_SUBJECT, "must be a subject such as operation:op_… or customer:cus_…"),
    example=f"operation:op_{ID_EXAMPLE}",
)
FOLLOWED: Final = Parameter(
    name="subject",
    sentence="The operation or the checkout to follow: `operation:op_…` or `checkout:chk_…`. Required.",
    schema={"type": "string", "pattern": f"^({_FOLLOWED})$"},
    validator=matches(_FOLLOWED, "must be operation:op_… or checkout:chk_…"),
    example=f"operation:op_{ID_EXAMPLE}",
    is_required=True,
)
EVENT_LIMIT: Final = limit("Events", EVENTS_USUAL, EVENTS_MAX)


async def _list_events(relay: Relay, parsed: ParsedRequest) -> Answer:
    """Reads one page of the feed."""
    query = parsed.query
    event_filter = EventFilter(
        after=int(query.get("cursor", query.get("after", "0"))),
        limit=int(query.get("limit", EVENTS_USUAL)),
        subject=query.get("subject"),
        pattern=pattern_of(query["type"]) if "type" in query else None,
    )
    return await list_events(relay, parsed.request, event_filter, parsed.wait_preference)


async def _follow_events(relay: Relay, parsed: ParsedRequest) -> Answer:
    """Follows one operation or checkout; a browser that reconnects names the last event that it received."""
    subject = parsed.query.get(FOLLOWED.name)
    if subject is None:
        raise wrong_fields([FieldError(FOLLOWED.name, "is required")])
    after = parsed.query.get("after", "0")
    if parsed.last_event_id is not None and AFTER.validator(parsed.last_event_id) is None:
        after = parsed.last_event_id
    return StreamedAnswer(stream=await follow_events(relay, parsed.request, subject, after=int(after)))


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="listEvents",
        path="/events",
        sentence="Read the feed of events, oldest first",
        scope=Scope.EVENTS_READ,
        handler=_list_events,
        answer="events",
        own_codes=(Code.POSITION_LOST,),
        bound=refused,
        query=(AFTER, TYPE, SUBJECT, EVENT_CURSOR, EVENT_LIMIT),
        can_wait=True,
    ),
    Route(
        name="followEvents",
        path="/events/stream",
        sentence="Follow one operation or checkout by server-sent events",
        scope=Scope.EVENTS_READ,
        handler=_follow_events,
        answer="event stream",
        own_codes=(Code.POSITION_LOST,),
        bound=only_own,
        query=(FOLLOWED, AFTER),
        is_stream=True,
    ),
)
