"""Gets a place for a call to PayHere, and ends it by what the call came to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from payrelay.errors import Code, StoreError
from payrelay.gateways.pacing.rate_limiter import Governor, Permit, Priority, Shut
from payrelay.gateways.payhere.connections import Loss, Reply
from payrelay.gateways.payhere.endings import ending_of
from payrelay.gateways.payhere.wire.replies import Cause, TurnedAway

NO_PLACE: Final = TurnedAway(
    code=Code.GATEWAY_BUSY, cause=Cause.NO_PLACE, msg="the gateway's budget of calls is used up; nothing was executed"
)
NO_STORE: Final = TurnedAway(
    code=Code.UNAVAILABLE,
    cause=Cause.STORE_DOWN,
    msg="the budget of calls can't be looked up, because the store is down; nothing was executed",
)
FAILING_SENTENCE: Final = "the gateway is failing, and is left alone for a while; nothing was executed"


async def take_place(governor: Governor, until_s: float, priority: Priority) -> Permit | TurnedAway:
    """Gives a place, or why there is none; waits for one until then (by ``clock.boot_s``)."""
    try:
        place = await governor.take(until_s, priority=priority)
    except StoreError:
        return NO_STORE
    if place is not None:
        return place
    shut = governor.refusal(priority)
    return NO_PLACE if shut is None else failing(shut)


def failing(shut: Shut) -> TurnedAway:
    """Says that the gateway is left alone."""
    return TurnedAway(
        code=Code.UNAVAILABLE, cause=Cause.GATEWAY_FAILING, msg=FAILING_SENTENCE, retry_after_s=shut.retry_after_s
    )


@contextmanager
def used(place: Permit) -> Iterator[None]:
    """Ends a place that nobody has ended by then: a call that was cancelled may be on its way still."""
    try:
        yield
    finally:
        place.leave()


def end_place(place: Permit, reply: Reply | Loss, cause: str | None) -> None:
    """Ends a place after its call; ``cause`` says what was read in the reply."""
    place.came_to(ending_of(cause), cause or "")
    if isinstance(reply, Loss) and not reply.is_sent:
        place.release_unused()
    else:
        place.done()
