from collections.abc import Sequence

import pytest
from tests.gateways.pacing.hand_clock import HandClock

from payrelay.core.gateways.fair_shares import Consumer
from payrelay.core.gateways.permit_grants import PermitsGranted
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.errors import Code, StoreUnavailable
from payrelay.gateways.http.exchange import Loss, LossCause, Reply
from payrelay.gateways.pacing.circuit_breaker import ENDED_MIN, PAUSE_S, Ending
from payrelay.gateways.pacing.rate_limiter import Permit, Priority, RateLimiter
from payrelay.gateways.pacing.shared_budget import MemoryBudget
from payrelay.gateways.payhere.permits import end_permit, ending_of, take_permit, used
from payrelay.gateways.payhere.wire.reply_shapes import Cause, RejectedCall


class LostBudget(MemoryBudget):
    """A budget in a store that is down."""

    async def take(self, wanted: Sequence[Consumer], permit_s: float) -> PermitsGranted:  # noqa: ARG002, the interface of a budget
        """Can't say."""
        raise StoreUnavailable("down")


async def permit_of(rate_limiter: RateLimiter) -> Permit:
    """Takes a permit that must be there."""
    permit = await take_permit(rate_limiter, 0.0, Priority.READ)
    assert isinstance(permit, Permit)
    return permit


async def refusal_of(rate_limiter: RateLimiter) -> RejectedCall:
    """Gives the rejection."""
    refusal = await take_permit(rate_limiter, 0.0, Priority.READ)
    assert isinstance(refusal, RejectedCall)
    return refusal


async def test_the_reason_why_there_is_no_permit() -> None:
    """The client hears whether we are busy, the gateway is failing or our store is down, and when to come again."""
    clock, limit = HandClock(), RateLimit(ENDED_MIN + 2, 60.0)
    rate_limiter = RateLimiter(limit, clock)
    for _ in range(ENDED_MIN - 1):
        end_permit(await permit_of(rate_limiter), Loss(is_sent=True, cause=LossCause.TIMEOUT), "timeout")
    last = await permit_of(rate_limiter)
    assert (await refusal_of(rate_limiter)).code is Code.GATEWAY_BUSY
    end_permit(last, Loss(is_sent=True, cause=LossCause.TIMEOUT), "timeout")
    failing = await refusal_of(rate_limiter)
    assert (failing.code, failing.cause, failing.retry_after_s) == (Code.UNAVAILABLE, Cause.GATEWAY_FAILING, PAUSE_S)
    down = await refusal_of(RateLimiter(limit, clock, budget=LostBudget(limit, clock)))
    assert (down.code, down.cause) == (Code.UNAVAILABLE, Cause.STORE_DOWN)


async def test_only_what_was_sent_uses_a_permit() -> None:
    """A connection that never came leaves it free."""
    rate_limiter = RateLimiter(RateLimit(1, 10.0), HandClock())
    end_permit(await permit_of(rate_limiter), Loss(is_sent=False, cause=LossCause.NO_CONNECTION), "no_connection")
    end_permit(await permit_of(rate_limiter), Reply(http_status=200, body=b"{}"), None)
    assert isinstance(await take_permit(rate_limiter, 0.0, Priority.READ), RejectedCall)


async def test_whatever_happens_a_permit_is_ended() -> None:
    """A call that was cancelled may be on its way still: its permit comes back when no call can last that long."""
    rate_limiter = RateLimiter(RateLimit(1, 10.0), clock := HandClock(), timeout_s=30.0)
    with used(await permit_of(rate_limiter)):
        pass
    assert rate_limiter.snapshot().used == 1
    clock.move(10.0)
    assert isinstance(await take_permit(rate_limiter, clock.now_s, Priority.READ), RejectedCall)
    clock.move(60.0)
    assert rate_limiter.snapshot().used == 0
    assert isinstance(await take_permit(rate_limiter, clock.now_s, Priority.READ), Permit)


@pytest.mark.parametrize("cause", [None, Cause.DOMAIN_DENIED, Cause.INVALID_TOKEN, Cause.AUTHENTICATION_ERROR])
def test_a_reply_says_that_the_gateway_works(cause: Cause | None) -> None:
    """A decline, a refusal and a rejection are answers; what is wrong then is not the gateway."""
    assert ending_of(cause) is Ending.ANSWERED


@pytest.mark.parametrize(
    "cause",
    [Cause.SERVER_ERROR, Cause.NOT_JSON, *(cause for cause in LossCause if cause not in {"too_late", "closed"})],
)
def test_no_reply_that_can_be_read_says_that_it_fails(cause: str) -> None:
    """Whether it came to no connection, to silence or to a page of HTML."""
    expected = Ending.NOTHING if cause == LossCause.STALE_CONNECTION else Ending.FAILED
    assert ending_of(cause) is expected


@pytest.mark.parametrize("cause", [LossCause.TOO_LATE, LossCause.CLOSED])
def test_what_we_did_not_try_says_nothing(cause: LossCause) -> None:
    """Our own lateness must not open the circuit breaker."""
    assert ending_of(cause) is Ending.NOTHING


def test_too_many_calls_is_a_kind_of_its_own() -> None:
    """All who share the budget stay away then."""
    assert ending_of(Cause.RATE_LIMITED) is Ending.BLOCKED
