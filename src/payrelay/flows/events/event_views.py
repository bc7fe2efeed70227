"""Events as a client sees them."""

from collections.abc import Mapping, Sequence

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.events.event import Plain, PublishedEvent
from payrelay.core.moments import rfc3339
from payrelay.flows.pagination import answer_with_cursor
from payrelay.flows.relay import Request


class EventView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event as a client sees it; the time is RFC 3339 in UTC.

    ``traceparent`` is the W3C trace context of the change, where tracing was on.
    """

    position: int
    id: str
    type: str
    timestamp: str
    account: str
    subject: str
    data: dict[str, Plain]
    traceparent: str | None = None


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some events in their order; ``next`` is the value of ``after`` for the events after them, present or future."""

    events: list[EventView]
    next: int


def view(event: PublishedEvent) -> EventView:
    """Returns an event as a client sees it."""
    return EventView(
        position=event.position,
        id=event.id,
        type=event.type,
        timestamp=rfc3339(event.at_ms),
        account=event.account,
        subject=event.subject,
        data=event.data,
        traceparent=event.traceparent,
    )


def answer_events(
    request: Request,
    events: Sequence[PublishedEvent],
    next_: int,
    *,
    after: int,
    limit: int,
    query: Mapping[str, str | None],
) -> Answer:
    """Answers with a page of the feed; it has a next one as long as it leads beyond the position that was asked for."""
    data = EventPage(events=[view(event) for event in events], next=next_)
    cursor = str(next_) if next_ > after else None
    return answer_with_cursor(request, "events", data, limit, cursor=cursor, query=query)
