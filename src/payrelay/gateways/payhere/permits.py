"""Gets a permit for a call to PayHere, and ends it by what the call's result says of the gateway."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from payrelay.errors import Code, StoreError
from payrelay.gateways.http.exchange import Loss, LossCause, Reply
from payrelay.gateways.pacing.rate_limiter import (
    PAYRELAY,
    CircuitOpen,
    Ending,
    Permit,
    Priority,
    RateLimiter,
    Requester,
)
from payrelay.gateways.payhere.wire.reply_shapes import Cause, RejectedCall

NO_PERMIT: Final = RejectedCall(
    code=Code.GATEWAY_BUSY, cause=Cause.NO_PERMIT, msg="the gateway's budget of calls is used up; nothing was executed"
)
NO_STORE: Final = RejectedCall(
    code=Code.UNAVAILABLE,
    cause=Cause.STORE_DOWN,
    msg="the budget of calls can't be looked up, because the store is down; nothing was executed",
)
FAILING_SENTENCE: Final = "the gateway is failing, and is not called for a while; nothing was executed"

_OURS: Final = frozenset({LossCause.TOO_LATE, LossCause.CLOSED, LossCause.STALE_CONNECTION})
"""Causes of calls that Payrelay itself did not make."""

_FAILED: Final = frozenset(LossCause) - _OURS | {
    Cause.SERVER_ERROR,
    Cause.UNEXPECTED_STATUS,
    Cause.REDIRECTED,
    Cause.NOT_UTF8,
    Cause.NOT_JSON,
    Cause.DOUBLED_MEMBER,
    Cause.OTHER_SHAPE,
    Cause.TOKEN_ECHOED,
}
"""No reply, or an unreadable one. A decline, a refusal, a rejection and an expired token are replies."""


async def take_permit(
    rate_limiter: RateLimiter, until_s: float, priority: Priority, requester: Requester = PAYRELAY
) -> Permit | RejectedCall:
    """Gives a permit, or the reason why there is none; waits for one until ``until_s`` (by ``clock.boot_s``)."""
    try:
        permit = await rate_limiter.take(until_s, priority=priority, requester=requester)
    except StoreError:
        return NO_STORE
    if permit is not None:
        return permit
    circuit_open = rate_limiter.open_circuit(priority)
    return NO_PERMIT if circuit_open is None else failing(circuit_open)


def failing(circuit_open: CircuitOpen) -> RejectedCall:
    """Gives the rejection of a call while the circuit breaker is open."""
    return RejectedCall(
        code=Code.UNAVAILABLE,
        cause=Cause.GATEWAY_FAILING,
        msg=FAILING_SENTENCE,
        retry_after_s=circuit_open.retry_after_s,
    )


@contextmanager
def used(permit: Permit) -> Iterator[None]:
    """Ends a permit that is still open at the end of its call: a call that was cancelled may still be on its way."""
    try:
        yield
    finally:
        permit.leave()


def end_permit(permit: Permit, reply: Reply | Loss, cause: str | None) -> None:
    """Ends a permit after its call; ``cause`` is the cause that was read in the reply."""
    permit.report(ending_of(cause), cause or "")
    if isinstance(reply, Loss) and not reply.is_sent:
        permit.release_unused()
    else:
        permit.done()


def ending_of(cause: str | None) -> Ending:
    """Says what a call with this cause tells of the gateway; None is an answer without a cause."""
    if cause == Cause.RATE_LIMITED:
        return Ending.BLOCKED
    if cause in _FAILED:
        return Ending.FAILED
    return Ending.NOTHING if cause in _OURS else Ending.ANSWERED
