"""An event as a client sees it."""

import msgspec

from payrelay.core.events.event import Plain, PublishedEvent
from payrelay.core.moments import rfc3339


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
