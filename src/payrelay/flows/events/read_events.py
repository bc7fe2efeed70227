"""Reads the feed of events: page by page, and as they are published.

Rules:

1. A reader that continues after its last position misses no event, and sees none twice.
2. A bound credential, such as a client token, reads no feed. It follows an operation or a checkout that it may see.
"""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.events.delivery import Pattern
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.show_checkout import show_checkout
from payrelay.flows.events.event_views import EventView, answer_events, view
from payrelay.flows.events.lost_positions import require_kept
from payrelay.flows.payments.await_outcome import WaitPreference
from payrelay.flows.payments.find_operations import show_operation
from payrelay.flows.relay import Relay, Request
from payrelay.runtime.event_delivery import Dispatch
from payrelay.runtime.followers import FOLLOWERS_MAX, Follower, Holder, wait_for
from payrelay.store.events.feed import FeedPage, Reader

HEARTBEAT_S: Final = 15.0
"""Between two heartbeats of a stream without events: proxies close a connection that is silent for a minute."""
STREAM_S_MAX: Final = 600.0
"""A stream ends after that. The client resumes it, and its credential is then checked again."""
FOLLOWERS_OF_KEY_MAX: Final = FOLLOWERS_MAX // 2
"""Slots that one key may have at once, so that no key takes them all."""
FOLLOWERS_OF_CLIENT_TOKEN_MAX: Final = 10
"""Slots that one client token may have at once: an app shows one payment at a time, and may leave some streams open."""
_CATCH_UP_MAX: Final = 100
"""Events about one subject that one statement reads."""


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The events that are read: after a position, and about a subject or of a type pattern where these are set."""

    after: int
    limit: int
    subject: str | None = None
    pattern: Pattern | None = None


async def list_events(
    relay: Relay, request: Request, event_filter: EventFilter, wait_preference: WaitPreference | None
) -> Answer:
    """Answers with one page of the caller's events; waits for an event as long as the caller prefers.

    Answers at once where all slots are taken. Raises Refusal: forbidden for a bound credential, rate_limited where too
    many of the caller's requests wait, position_lost for a position that the database has lost, or never gave.
    """
    if request.credential.bound is not None:
        raise Refusal(Code.FORBIDDEN, "this credential may follow what it is bound to, and not read the feed")
    dispatch = relay.dispatch
    reader = Reader(request.gateway.merchant, request.principal)
    after = event_filter.after
    await require_kept(relay, after)
    page = await _read(dispatch, reader, event_filter)
    if page.events or wait_preference is None:
        return _answer(request, page, event_filter, after)
    follower = await dispatch.followers.slot(reader, event_filter.subject, holder=_holder(request))
    if follower is None:
        return _answer(request, page, event_filter, after)
    try:
        while not page.events and not follower.is_over:
            event_filter = msgspec.structs.replace(event_filter, after=page.next)
            page = await _read(dispatch, reader, event_filter)
            left_s = wait_preference.until_s - relay.clock.boot_s()
            if page.events or left_s <= 0 or not await wait_for(follower, left_s, wait_preference.gone):
                break
    finally:
        dispatch.followers.leave(follower)
    answer = _answer(request, page, event_filter, after)
    return msgspec.structs.replace(answer, headers=(*answer.headers, wait_preference.header))


class EventStream:
    """The events about one subject after a position, as they are published; made by ``follow``.

    The caller iterates over ``events`` once, and calls ``close`` at the end.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        follower: Follower,
        reader: Reader,
        subject: str,
        after: int,
        *,
        heartbeat_s: float,
        until_s: float,
    ) -> None:
        self._dispatch = dispatch
        self._follower = follower
        self._reader = reader
        self._subject = subject
        self._after = after
        self._heartbeat_s = heartbeat_s
        self._until_s = until_s

    @property
    def is_over(self) -> bool:
        """True when the stream gives no more events."""
        return self._follower.is_over or self._dispatch.clock.boot_s() >= self._until_s

    async def events(self) -> AsyncIterator[EventView | None]:
        """Gives each event, and None as a heartbeat; ends when the stream is over."""
        clock = self._dispatch.clock
        position = self._after
        while True:
            page = await self._dispatch.feed.read_about(
                self._reader, self._subject, after=position, limit=_CATCH_UP_MAX
            )
            for event in page.events:
                yield view(event)
            position = page.next
            if len(page.events) < _CATCH_UP_MAX:
                break
        while not self._follower.is_over and (left_s := self._until_s - clock.boot_s()) > 0:
            published = await self._follower.next(min(self._heartbeat_s, left_s))
            if published is None:
                yield None
            elif published.position > position:
                position = published.position
                yield view(published)

    def close(self) -> None:
        """Gives the slot back; may be called twice."""
        self._dispatch.followers.leave(self._follower)


async def follow_events(
    relay: Relay, request: Request, subject: str, *, after: int, heartbeat_s: float = HEARTBEAT_S
) -> EventStream:
    """Begins to follow an operation or a checkout that the caller may see.

    Raises Refusal: not_found for any other subject; position_lost as ``list_events`` does; rate_limited where the
    caller has all its slots; unavailable where all slots are taken, or the process is about to end.
    """
    dispatch = relay.dispatch
    noun, _, id_ = subject.partition(":")
    await (show_checkout if noun == "checkout" else show_operation)(relay, request, id_)
    await require_kept(relay, after)
    reader = Reader(request.gateway.merchant, request.principal)
    follower = await dispatch.followers.slot(reader, subject, holder=_holder(request))
    if follower is None:
        raise Refusal(Code.UNAVAILABLE, "too many follow events now, or the program is about to end")
    until_s = relay.clock.boot_s() + _allowed_s(relay, request)
    return EventStream(dispatch, follower, reader, subject, after, heartbeat_s=heartbeat_s, until_s=until_s)


def _holder(request: Request) -> Holder:
    credential = request.credential
    slots_max = FOLLOWERS_OF_KEY_MAX if credential.bound is None else FOLLOWERS_OF_CLIENT_TOKEN_MAX
    return Holder(credential.counted_as, slots_max)


def _allowed_s(relay: Relay, request: Request) -> float:
    """Returns how long a stream may last, in seconds: no longer than its credential."""
    ends_at_ms = request.credential.expires_at_ms
    left_s = STREAM_S_MAX if ends_at_ms is None else (ends_at_ms - relay.clock.now_ms()) / 1000
    return min(STREAM_S_MAX, left_s)


async def _read(dispatch: Dispatch, reader: Reader, event_filter: EventFilter) -> FeedPage:
    feed, pattern, after, limit = dispatch.feed, event_filter.pattern, event_filter.after, event_filter.limit
    if event_filter.subject is not None:
        page = await feed.read_about(reader, event_filter.subject, after=after, limit=limit)
        return FeedPage([event for event in page.events if pattern is None or pattern.fits(event.type)], page.next)
    if pattern is not None:
        return await feed.read_types(reader, pattern, after=after, limit=limit)
    return await feed.read(reader, after=after, limit=limit)


def _answer(request: Request, page: FeedPage, event_filter: EventFilter, after: int) -> Answer:
    query = {
        "subject": event_filter.subject,
        "type": None if event_filter.pattern is None else event_filter.pattern.text,
    }
    return answer_events(request, page.events, page.next, after=after, limit=event_filter.limit, query=query)
