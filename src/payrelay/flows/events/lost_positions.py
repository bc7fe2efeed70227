"""Refuses a position in the feed whose events the database has lost, or that it never gave."""

from typing import Final

from payrelay.core.events.positions import incarnation_of, lost_after
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay

LOST_SENTENCE: Final = (
    "the database has lost the events up to this position, or never gave it; read anew from after=0, or without"
    " Last-Event-ID: an event that you know has the same id, and an operation that you don't find may be lost"
)


async def require_kept(relay: Relay, after: int) -> None:
    """Raises Refusal (position_lost) for a position of events that the database has lost, or behind all events.

    A reader who went on from there would keep what is lost, or miss what got positions anew.
    """
    if after == 0:
        return
    feed, lost = relay.dispatch.feed, lost_after(after, await relay.database.lost_commits.identity())
    if lost is None:
        last = await feed.last_position()
    else:
        last = await feed.last_kept(incarnation_of(after), lost.since_ms)
    if after > last:
        raise Refusal(Code.POSITION_LOST, LOST_SENTENCE)
