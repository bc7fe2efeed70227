"""The budget of calls to one gateway account: never more than so many in any window, by the gateway's own clock.

Rules:

1. A *place* is the right to make one call, before ``send_by_s``. There are as many as the limit says, for all who share
   the budget.
2. A place that was used is free again one window after the reply or time-out. The gateway counts a call somewhere
   between the grant and that moment, so two calls on the same place are at least a window apart there, however long
   either was under way.
3. A place on which nothing was sent goes back at once.
4. Whoever waits is served by worth (``queue.py``), and in the order of arrival within one. Nobody overtakes a waiter.
5. While the gateway fails (``circuit_breaker.py``) nobody gets a place but one probe at a time.
"""

import asyncio
import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final, Protocol

from payrelay.clock import Clock
from payrelay.core.gateways.permits import BudgetSnapshot, PermitGrant, PermitsTaken
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.errors import StoreError, StoreUnavailable
from payrelay.gateways.pacing.circuit_breaker import Admission, CircuitBreaker, CircuitOpen, Ending
from payrelay.gateways.pacing.queue import PermitQueue, Priority, Waiter, priority_of
from payrelay.gateways.pacing.shared_budget import Budget, MemoryBudget, Rest

__all__ = ["CircuitOpen", "Ending", "Permit", "Priority", "RateLimiter", "priority_of"]

SEND_WITHIN_S: Final = 10.0
"""How long a place may be held before the call is sent: room for a commit, an access token and a connection."""
SLACK_S: Final = 5.0
"""Between the latest end of a call by our clock and by the gateway's: what was written may arrive that much later."""
TIMEOUT_S: Final = 30.0
WAITERS_MAX: Final = 10_000
"""Whoever comes beyond these is told at once that there is no room; each of them holds a request's memory."""
TAKEN_AT_ONCE_MAX: Final = 32
"""Places in one look, so that a burst doesn't look for each by itself."""
POLL_S: Final = 0.25
"""How late a place is noticed that another process gave back unused; all other times are known exactly."""
ALARM_S_MIN: Final = 0.001
"""The store tells times in milliseconds."""
POLL_BACKOFF_S: Final = 0.004
"""How much later a process looks for each step that its first waiter is worth less, and the later it
was served last: all who wait know when the next place is free, and no line goes through several processes."""
BLOCK_S_MAX: Final = 60.0
"""The longest that a gateway that says 429 again and again is left alone."""
REPEAT_SHARE: Final = 1 / 12
"""Calls that we make a second time by ourselves, as a share of all calls: with them a failing gateway gets less than
1.1 times the calls that it would get without."""


class TimerHandle(Protocol):
    """What a timer gives back."""

    def cancel(self) -> None:
        """Makes it not ring."""


Timer = Callable[[float, Callable[[], None]], TimerHandle]
"""Calls a function after so many seconds."""


def loop_timer(delay_s: float, ring: Callable[[], None]) -> TimerHandle:
    """Rings on the running event loop."""
    return asyncio.get_running_loop().call_later(delay_s, ring)


class Permit:
    """The right to make one call. Whoever holds it ends it, once, with ``done``, ``release_unused`` or ``leave``.

    Attributes:
        send_by_s: nothing is sent on it after this time (by ``clock.boot_s``): it may be somebody else's by then.
        priority: what it was asked for.
        is_trial: whether it is the one call that tries whether a gateway that failed works again.
    """

    __slots__ = ("_rate_limiter", "grant", "is_trial", "priority", "send_by_s")

    def __init__(
        self,
        rate_limiter: "RateLimiter",
        grant: PermitGrant | None,
        send_by_s: float,
        priority: Priority,
        *,
        is_trial: bool,
    ) -> None:
        self._rate_limiter: RateLimiter | None = rate_limiter
        self.grant = grant
        self.send_by_s = send_by_s
        self.priority = priority
        self.is_trial = is_trial

    def report(self, ending: Ending, cause: str = "") -> None:
        """Tells what the call says of the gateway; before the place is ended."""
        if self._rate_limiter is not None:
            self._rate_limiter._report(self, ending, cause)  # noqa: SLF001, a place is a part of its governor

    def done(self) -> None:
        """The call has been answered or timed out: its window begins now. May be repeated; the first word counts."""
        rate_limiter, self._rate_limiter = self._rate_limiter, None
        if rate_limiter is not None:
            rate_limiter._end(self, is_used=True)  # noqa: SLF001, a place is a part of its governor

    def leave(self) -> None:
        """Nobody waits for the call any more, and it may still be on its way.

        Its place comes back by itself, when no call can last that long. May be repeated; the first word counts.
        """
        rate_limiter, self._rate_limiter = self._rate_limiter, None
        if rate_limiter is not None:
            rate_limiter._leave(self)  # noqa: SLF001, a place is a part of its governor

    def release_unused(self) -> None:
        """Nothing was sent: it is free at once. May be repeated; the first word counts."""
        rate_limiter, self._rate_limiter = self._rate_limiter, None
        if rate_limiter is not None:
            rate_limiter._end(self, is_used=False)  # noqa: SLF001, a place is a part of its governor


class RateLimiter:
    """Gives out the places of one gateway account to this process.

    Args:
        limit: how many; None gives a place to everybody at once.
        clock: tells the time; ``boot_s`` alone is used.
        timer: wakes the waiters; another one lets a test move time by hand.
        budget: where the places are kept; None for a budget of this process alone.
        timeout_s: the longest that a call takes once it is sent.
    """

    def __init__(
        self,
        limit: RateLimit | None,
        clock: Clock,
        *,
        timer: Timer = loop_timer,
        budget: Budget | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._timer = timer
        self._permit_s = SEND_WITHIN_S + timeout_s + SLACK_S
        self._budget = None if limit is None else budget or MemoryBudget(limit, clock)
        self._breaker = CircuitBreaker(clock, trial_s=self._permit_s)
        self._queue = PermitQueue()
        self._alarm: TimerHandle | None = None
        self._is_looking = False
        self._has_content = False
        self._served_at_s = -math.inf
        self._held = 0
        self._resting: deque[float] = deque()
        self._block_s = 0.0
        self._blocked_until_s = 0.0
        self._repeats_left = 1.0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def limit(self) -> RateLimit | None:
        """What it keeps to."""
        return self._limit

    def snapshot(self) -> BudgetSnapshot:
        """Tells how it stands now."""
        now_s = self._clock.boot_s()
        while self._resting and self._resting[0] <= now_s:
            self._resting.popleft()
        return BudgetSnapshot(
            limit_calls=None if self._limit is None else self._limit.calls,
            used=self._held + len(self._resting),
            waiting=len(self._queue),
            is_open=self._breaker.is_open,
            blocked_s=max(0.0, self._blocked_until_s - now_s),
        )

    def refusal(self, priority: Priority = Priority.CHARGE) -> CircuitOpen | None:
        """Tells why no such call may be made now, because the gateway fails; None where it may be asked for."""
        return self._breaker.refusal(priority)

    def may_go_out(self, permit: Permit) -> bool:
        """False where the gateway was found failing after this place was given."""
        return permit.is_trial or permit.priority is Priority.TOKEN or not self._breaker.is_open

    def may_repeat(self) -> bool:
        """Allows one more call for what was called already, as long as there are few of them."""
        if self._repeats_left < 1.0:
            return False
        self._repeats_left -= 1.0
        return True

    async def take_now(self, *, priority: Priority = Priority.CHARGE) -> Permit | None:
        """Gives a place if there is room and nobody waits for one. Raises StoreUnavailable."""
        if self._budget is None and not self._breaker.is_open:
            return Permit(self, None, math.inf, priority, is_trial=False)  # no detour for who wants no limit
        return await self._take(priority, None)

    async def take(self, until_s: float, *, priority: Priority = Priority.CHARGE) -> Permit | None:
        """Gives a place, or None where none came until then (by ``clock.boot_s``) or the gateway fails.

        Raises StoreUnavailable; nobody knows then whether there is a place.
        """
        return await self._take(priority, until_s)

    async def close(self) -> None:
        """Lets nobody wait any more, and puts down what was given back; nothing is lost by a place that isn't."""
        self._silence()
        self._send_away()
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _take(self, priority: Priority, until_s: float | None) -> Permit | None:
        entry = self._breaker.enter(priority)
        if entry is Admission.REJECTED:
            return None
        is_trial = entry is Admission.TRIAL
        if self._budget is None:
            return Permit(self, None, math.inf, priority, is_trial=is_trial)
        granted: tuple[PermitGrant, float] | None = None
        try:
            granted = await self._wait(self._budget, Waiter(priority, until_s, self._clock.boot_s()))
        finally:
            if granted is None and is_trial:
                self._breaker.abandon()
        if granted is None:
            return None
        self._held += 1
        return Permit(self, granted[0], granted[1] + SEND_WITHIN_S, priority, is_trial=is_trial)

    async def _wait(self, budget: Budget, waiter: Waiter) -> tuple[PermitGrant, float] | None:
        """Waits for a grant; gives it with the time at which it was asked for, at the latest."""
        is_known_full = self._alarm is not None
        if (is_known_full and not waiter.is_patient) or len(self._queue) >= WAITERS_MAX:
            return None
        self._queue.push(waiter)
        deadline = None
        if waiter.is_patient:
            deadline = self._timer(waiter.until_s - self._clock.boot_s(), lambda: self._give_up(waiter))
        self._poll_soon(budget)
        try:
            return await waiter.granted
        except asyncio.CancelledError:
            self._forget(budget, waiter)
            raise
        finally:
            if deadline is not None:
                deadline.cancel()

    def _poll_soon(self, budget: Budget) -> None:
        """Looks for places, unless that is going on, or is known to be in vain for now."""
        if not self._is_looking and self._alarm is None and self._queue:
            self._is_looking = True
            self._start(self._poll(budget))

    async def _poll(self, budget: Budget) -> None:
        """Hands out places until nobody waits or there are none; then it is looked again when there may be one."""
        try:
            while self._queue:
                self._has_content = False
                asked_at_s = self._clock.boot_s()
                taken = await budget.take(min(len(self._queue), TAKEN_AT_ONCE_MAX), self._permit_s)
                self._hand_out(budget, taken, asked_at_s)
                if taken.next_in_s is not None and not self._has_content:
                    self._poll_later(budget, taken.next_in_s)
                    return
        except Exception as error:  # noqa: BLE001, whatever it was, whoever waits must hear of it
            self._fail(error)
        finally:
            self._is_looking = False

    def _hand_out(self, budget: Budget, taken: PermitsTaken, asked_at_s: float) -> None:
        for grant in taken.grants:
            waiter = self._queue.pop(self._clock.boot_s())
            if waiter is None:
                self._wait_for(budget, budget.release_unused(grant))
            else:
                waiter.granted.set_result((grant, asked_at_s))
                self._served_at_s = asked_at_s

    def _poll_later(self, budget: Budget, next_in_s: float) -> None:
        """Sends away who can't wait, and sets the alarm for the others; without a waiter no timer runs."""
        for waiter in self._queue.take_out(is_patient=False):
            _give_nothing(waiter)
        priority = self._queue.priority()
        if priority is None:
            return
        delay_s = max(ALARM_S_MIN, next_in_s)
        if budget.is_shared and self._limit is not None:
            since_s = self._clock.boot_s() - self._served_at_s
            served_lately = self._limit.window_s / (self._limit.window_s + since_s)
            delay_s = POLL_S if delay_s > POLL_S else delay_s + POLL_BACKOFF_S * (priority + served_lately)
        self._alarm = self._timer(delay_s, lambda: self._ring(budget))

    def _ring(self, budget: Budget) -> None:
        self._alarm = None
        self._poll_soon(budget)

    def _hear(self, budget: Budget) -> None:
        """A place is free sooner than was known: it is looked anew."""
        self._has_content = True
        self._silence()
        self._poll_soon(budget)

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _fail(self, error: Exception) -> None:
        for waiter in self._everybody():
            if not waiter.granted.done():
                reason = StoreUnavailable(str(error)) if isinstance(error, StoreError) else error
                waiter.granted.set_exception(reason)

    def _send_away(self) -> None:
        for waiter in self._everybody():
            _give_nothing(waiter)

    def _everybody(self) -> list[Waiter]:
        return [waiter for is_patient in (True, False) for waiter in self._queue.take_out(is_patient=is_patient)]

    def _give_up(self, waiter: Waiter) -> None:
        _give_nothing(waiter)
        self._queue.remove(waiter)

    def _forget(self, budget: Budget, waiter: Waiter) -> None:
        """Takes out a waiter that was cancelled; a place that it was given in the same moment goes back."""
        self._queue.remove(waiter)
        if waiter.granted.done() and not waiter.granted.cancelled() and waiter.granted.exception() is None:
            granted = waiter.granted.result()
            if granted is not None:
                self._wait_for(budget, budget.release_unused(granted[0]))

    def _end(self, permit: Permit, *, is_used: bool) -> None:
        if permit.is_trial:
            self._breaker.abandon()  # of no effect where it came to something
        if permit.grant is None or self._budget is None or self._limit is None:
            return
        self._held -= 1
        if is_used:
            insort(self._resting, self._clock.boot_s() + self._limit.window_s)
            self._wait_for(self._budget, self._budget.done(permit.grant))
        else:
            self._wait_for(self._budget, self._budget.release_unused(permit.grant))

    def _leave(self, permit: Permit) -> None:
        if permit.is_trial:
            self._breaker.abandon()
        if permit.grant is not None and self._limit is not None:
            self._held -= 1
            insort(self._resting, permit.send_by_s - SEND_WITHIN_S + self._permit_s + self._limit.window_s)

    def _report(self, permit: Permit, ending: Ending, cause: str) -> None:
        if self._repeats_left < 1.0 and ending is not Ending.NOTHING:
            self._repeats_left += REPEAT_SHARE
        is_token_missing = permit.priority is Priority.TOKEN and ending is not Ending.ANSWERED
        if permit.is_trial or (self._breaker.is_open and is_token_missing):
            self._breaker.trial_ended(ending, cause)
        elif self._breaker.note(ending, cause):
            self._send_away()
        if ending is Ending.BLOCKED:
            self._block()
        elif ending is Ending.ANSWERED and self._clock.boot_s() >= self._blocked_until_s:
            self._block_s = 0.0

    def _block(self) -> None:
        """Keeps everybody who shares the budget away; longer each time that it doesn't help."""
        now_s = self._clock.boot_s()
        if self._budget is None or self._limit is None or now_s < self._blocked_until_s:
            return  # those that were under way when the first was turned away say nothing new
        longest_s = max(self._limit.window_s, BLOCK_S_MAX)
        self._block_s = min(max(self._limit.window_s, self._block_s * 2), longest_s)
        self._blocked_until_s = now_s + self._block_s
        self._wait_for(self._budget, self._budget.block(self._block_s))

    def _wait_for(self, budget: Budget, rest: Rest) -> None:
        """Has the rest of a change done in the background; then, or where there is none, it is looked anew."""
        if rest is None:
            self._hear(budget)
        else:
            self._start(self._finish(budget, rest))

    async def _finish(self, budget: Budget, rest: Coroutine[object, object, None]) -> None:
        with suppress(StoreError):  # the place comes back by itself, later
            await rest
        self._hear(budget)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _give_nothing(waiter: Waiter) -> None:
    if not waiter.granted.done():
        waiter.granted.set_result(None)
