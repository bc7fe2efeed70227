"""Gets a place for a call to PayHere, and ends it by what the call came to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from payrelay.errors import Code, StoreError
from payrelay.gateways.pacing.rate_limiter import CircuitOpen, Permit, Priority, RateLimiter
from payrelay.gateways.payhere.connections import Loss, Reply
from payrelay.gateways.payhere.endings import ending_of
from payrelay.gateways.payhere.wire.replies import Cause, RejectedCall

NO_PERMIT: Final = RejectedCall(
    code=Code.GATEWAY_BUSY, cause=Cause.NO_PERMIT, msg="the gateway's budget of calls is used up; nothing was executed"
)
NO_STORE: Final = RejectedCall(
    code=Code.UNAVAILABLE,
    cause=Cause.STORE_DOWN,
    msg="the budget of calls can't be looked up, because the store is down; nothing was executed",
)
FAILING_SENTENCE: Final = "the gateway is failing, and is left alone for a while; nothing was executed"


async def take_permit(rate_limiter: RateLimiter, until_s: float, priority: Priority) -> Permit | RejectedCall:
    """Gives a place, or why there is none; waits for one until then (by ``clock.boot_s``)."""
    try:
        permit = await rate_limiter.take(until_s, priority=priority)
    except StoreError:
        return NO_STORE
    if permit is not None:
        return permit
    circuit_open = rate_limiter.refusal(priority)
    return NO_PERMIT if circuit_open is None else failing(circuit_open)


def failing(circuit_open: CircuitOpen) -> RejectedCall:
    """Says that the gateway is left alone."""
    return RejectedCall(
        code=Code.UNAVAILABLE,
        cause=Cause.GATEWAY_FAILING,
        msg=FAILING_SENTENCE,
        retry_after_s=circuit_open.retry_after_s,
    )


@contextmanager
def used(permit: Permit) -> Iterator[None]:
    """Ends a place that nobody has ended by then: a call that was cancelled may be on its way still."""
    try:
        yield
    finally:
        permit.leave()


def end_permit(permit: Permit, reply: Reply | Loss, cause: str | None) -> None:
    """Ends a place after its call; ``cause`` says what was read in the reply."""
    permit.report(ending_of(cause), cause or "")
    if isinstance(reply, Loss) and not reply.is_sent:
        permit.release_unused()
    else:
        permit.done()
