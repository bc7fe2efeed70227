from tests.gateways.pacing.hand_clock import HandClock

from payrelay.core.gateways.permits import SlotsTaken
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.errors import Code, StoreUnavailable
from payrelay.gateways.pacing.circuit_breaker import ENDED_MIN, PAUSE_S
from payrelay.gateways.pacing.rate_limiter import Governor, Permit, Priority
from payrelay.gateways.pacing.shared_budget import MemoryBudget
from payrelay.gateways.payhere.connections import Loss, LossCause, Reply
from payrelay.gateways.payhere.permits import end_place, take_place, used
from payrelay.gateways.payhere.wire.replies import Cause, TurnedAway


class LostBudget(MemoryBudget):
    """A budget in a store that is down."""

    async def take(self, count: int, hold_s: float) -> SlotsTaken:  # noqa: ARG002, the face of a budget
        """Can't say."""
        raise StoreUnavailable("down")


async def place_of(governor: Governor) -> Permit:
    """Takes a place that must be there."""
    place = await take_place(governor, 0.0, Priority.READ)
    assert isinstance(place, Permit)
    return place


async def refusal_of(governor: Governor) -> TurnedAway:
    """Tells why there is none."""
    refusal = await take_place(governor, 0.0, Priority.READ)
    assert isinstance(refusal, TurnedAway)
    return refusal


async def test_why_there_is_no_place() -> None:
    """The client hears whether we are busy, the gateway is failing or our store is down, and when to come again."""
    clock, limit = HandClock(), RateLimit(ENDED_MIN, 60.0)
    governor = Governor(limit, clock)
    for _ in range(ENDED_MIN - 1):
        end_place(await place_of(governor), Loss(is_sent=True, cause=LossCause.TIMEOUT), "timeout")
    last = await place_of(governor)
    assert (await refusal_of(governor)).code is Code.GATEWAY_BUSY
    end_place(last, Loss(is_sent=True, cause=LossCause.TIMEOUT), "timeout")
    failing = await refusal_of(governor)
    assert (failing.code, failing.cause, failing.retry_after_s) == (Code.UNAVAILABLE, Cause.GATEWAY_FAILING, PAUSE_S)
    down = await refusal_of(Governor(limit, clock, budget=LostBudget(limit, clock)))
    assert (down.code, down.cause) == (Code.UNAVAILABLE, Cause.STORE_DOWN)


async def test_only_what_was_sent_uses_a_place() -> None:
    """A connection that never came leaves it free."""
    governor = Governor(RateLimit(1, 10.0), HandClock())
    end_place(await place_of(governor), Loss(is_sent=False, cause=LossCause.NO_CONNECTION), "no_connection")
    end_place(await place_of(governor), Reply(http_status=200, body=b"{}"), None)
    assert isinstance(await take_place(governor, 0.0, Priority.READ), TurnedAway)


async def test_whatever_happens_a_place_is_ended() -> None:
    """A call that was cancelled may be on its way still: its place comes back when no call can last that long."""
    governor = Governor(RateLimit(1, 10.0), clock := HandClock(), timeout_s=30.0)
    with used(await place_of(governor)):
        pass
    assert governor.snapshot().used == 1
    clock.move(10.0)
    assert isinstance(await take_place(governor, clock.now_s, Priority.READ), TurnedAway)
    clock.move(60.0)
    assert governor.snapshot().used == 0
    assert isinstance(await take_place(governor, clock.now_s, Priority.READ), Permit)
