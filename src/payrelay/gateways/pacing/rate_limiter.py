"""The rate limiter of one gateway account: never more calls in any window than its limit, by the gateway's own clock.

Rules:

1. A *permit* is the right to make one call, before ``send_by_s``. All processes that share the budget have together as
   many permits as the limit says.
2. A permit that was used is free again one window after the reply or time-out. The gateway counts a call at some time
   between the grant and that end. So two calls on one permit are at least a window apart there, however long each was
   under way.
3. A permit on which nothing was sent goes back at once.
4. Principals take turns, and each keeps to its share of the budget (``queue.py``, ``core.gateways.fair_shares``). The
   callers of one consumer are served by priority, and in the order of arrival within one priority. No later one of them
   overtakes one that waits.
5. While the circuit breaker (``circuit_breaker.py``) is open, only one half-open trial at a time gets a permit.
"""

import asyncio
import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final, Protocol

from payrelay.clock import Clock
from payrelay.core.gateways.fair_shares import PAYRELAY, Consumer, Requester
from payrelay.core.gateways.permit_grants import BudgetSnapshot, PermitGrant, PermitsGranted
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.errors import StoreError, StoreUnavailable
from payrelay.gateways.pacing.circuit_breaker import Admission, CircuitBreaker, CircuitOpen, Ending
from payrelay.gateways.pacing.queue import PermitQueue, Priority, Waiter, consumer_of, priority_of
from payrelay.gateways.pacing.shared_budget import Budget, MemoryBudget, Rest

__all__ = ["PAYRELAY", "CircuitOpen", "Ending", "Permit", "Priority", "RateLimiter", "Requester", "priority_of"]

SEND_WITHIN_S: Final = 10.0
"""How long a permit may be held before its call is sent: room for a commit, an access token and a connection."""
SLACK_S: Final = 5.0
"""How much later a call may end by the gateway's clock than by ours: written bytes may arrive that much later."""
TIMEOUT_S: Final = 30.0
WAITERS_MAX: Final = 10_000
"""Callers beyond these get no permit at once, because each caller that waits holds a request's memory."""
TAKEN_AT_ONCE_MAX: Final = 32
"""Permits that are taken in one query, so that a burst doesn't make a query for each."""
POLL_S: Final = 0.25
"""How late a permit is noticed that another process gave back unused. All other times are known exactly."""
ALARM_S_MIN: Final = 0.001
"""The store keeps times in milliseconds."""
POLL_BACKOFF_S: Final = 0.004
"""How much later a process polls for each step by which its first caller's priority is lower, and the later it was
served last. All processes know when the next permit is free, and no queue spans several processes."""
BLOCK_S_MAX: Final = 60.0
"""The longest pause for a gateway that answers 429 again and again."""
REPEAT_SHARE: Final = 1 / 12
"""Calls that Payrelay repeats by itself, as a share of all calls. With them, a failing gateway gets less than 1.1 times
the calls that it would get without."""


class TimerHandle(Protocol):
    """A timer that is running."""

    def cancel(self) -> None:
        """Stops the timer before it rings."""


Timer = Callable[[float, Callable[[], None]], TimerHandle]
"""Calls a function after a number of seconds."""


def loop_timer(delay_s: float, ring: Callable[[], None]) -> TimerHandle:
    """Starts a timer on the running event loop."""
    return asyncio.get_running_loop().call_later(delay_s, ring)


class Permit:
    """The right to make one call. Its holder ends it once, with ``done``, ``release_unused`` or ``leave``.

    Attributes:
        send_by_s: nothing is sent on it after this time (by ``clock.boot_s``), because another caller may have the
            permit by then.
        priority: the priority that it was asked for with, and ``requester`` the one whom the call is for.
        is_trial: whether its call is the half-open trial of an open circuit breaker.
    """

    __slots__ = ("_rate_limiter", "grant", "is_trial", "priority", "requester", "send_by_s")

    def __init__(
        self,
        rate_limiter: "RateLimiter",
        grant: PermitGrant | None,
        send_by_s: float,
        priority: Priority,
        *,
        requester: Requester = PAYRELAY,
        is_trial: bool,
    ) -> None:
        self._rate_limiter: RateLimiter | None = rate_limiter
        self.requester = requester
        self.grant = grant
        self.send_by_s = send_by_s
        self.priority = priority
        self.is_trial = is_trial

    def report(self, ending: Ending, cause: str = "") -> None:
        """Reports what the call's end says of the gateway. Must come before the permit is ended."""
        if self._rate_limiter is not None:
            self._rate_limiter._report(self, ending, cause)  # noqa: SLF001, a permit is a part of its rate limiter

    def done(self) -> None:
        """Ends the permit after a reply or a time-out: its window begins now. May be repeated; the first end counts."""
        rate_limiter, self._rate_limiter = self._rate_limiter, None
        if rate_limiter is not None:
            rate_limiter._end(self, is_used=True)  # noqa: SLF001, a permit is a part of its rate limiter

    def leave(self) -> None:
        """Ends the permit of a call that may still be on its way, though its caller waits no more.

        The permit comes back by itself, when no call can last that long. May be repeated; the first end counts.
        """
        rate_limiter, self._rate_limiter = self._rate_limiter, None
        if rate_limiter is not None:
            rate_limiter._leave(self)  # noqa: SLF001, a permit is a part of its rate limiter

    def release_unused(self) -> None:
        """Ends a permit on which nothing was sent: it is free at once. May be repeated; the first end counts."""
        rate_limiter, self._rate_limiter = self._rate_limiter, None
        if rate_limiter is not None:
            rate_limiter._end(self, is_used=False)  # noqa: SLF001, a permit is a part of its rate limiter


class RateLimiter:
    """Gives out the permits of one gateway account to this process.

    Args:
        limit: calls in a window; None gives every caller a permit at once.
        clock: tells the time; only ``boot_s`` is used.
        timer: wakes the callers that wait; a test passes its own to move time by hand.
        budget: keeps the permits; None for a budget of this process alone.
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
        self._is_polling = False
        self._is_outdated = False
        self._is_any_left = False
        self._refused: set[Consumer] = set()
        self._last_grant_s = -math.inf
        self._held_count = 0
        self._resting_until_s: deque[float] = deque()
        self._block_s = 0.0
        self._blocked_until_s = 0.0
        self._repeats_left = 1.0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def limit(self) -> RateLimit | None:
        """The limit on calls; None without one."""
        return self._limit

    def snapshot(self) -> BudgetSnapshot:
        """Gives the state of the budget, the queue and the circuit breaker now."""
        now_s = self._clock.boot_s()
        while self._resting_until_s and self._resting_until_s[0] <= now_s:
            self._resting_until_s.popleft()
        return BudgetSnapshot(
            limit_calls=None if self._limit is None else self._limit.calls,
            used=self._held_count + len(self._resting_until_s),
            waiting=len(self._queue),
            is_open=self._breaker.is_open,
            blocked_s=max(0.0, self._blocked_until_s - now_s),
        )

    def open_circuit(self, priority: Priority = Priority.CHARGE) -> CircuitOpen | None:
        """Gives the reason why the open circuit breaker rejects such a call now; None where it doesn't."""
        return self._breaker.open_circuit(priority)

    def may_go_out(self, permit: Permit) -> bool:
        """False where the circuit breaker opened after this permit was given."""
        return permit.is_trial or permit.priority is Priority.TOKEN or not self._breaker.is_open

    def may_repeat(self) -> bool:
        """Allows one more call that repeats an earlier one, as long as repeats are few."""
        if self._repeats_left < 1.0:
            return False
        self._repeats_left -= 1.0
        return True

    async def take_now(self, *, priority: Priority = Priority.CHARGE, requester: Requester = PAYRELAY) -> Permit | None:
        """Gives a permit if one is free for the caller and nobody waits for it. Raises StoreUnavailable."""
        if self._budget is None and not self._breaker.is_open:
            return Permit(self, None, math.inf, priority, requester=requester, is_trial=False)  # no limit, so no detour
        return await self._take(priority, requester, None)

    async def take(
        self, until_s: float, *, priority: Priority = Priority.CHARGE, requester: Requester = PAYRELAY
    ) -> Permit | None:
        """Gives a permit; None where none came until ``until_s`` (by ``clock.boot_s``), or the circuit breaker is open.

        Raises StoreUnavailable where nobody can know whether a permit is free.
        """
        return await self._take(priority, requester, until_s)

    async def close(self) -> None:
        """Sends all callers away, and stores the permits that were given back. An unstored permit comes back later."""
        self._stop_alarm()
        self._refuse_all()
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _take(self, priority: Priority, requester: Requester, until_s: float | None) -> Permit | None:
        admission = self._breaker.enter(priority)
        if admission is Admission.REJECTED:
            return None
        is_trial = admission is Admission.TRIAL
        if self._budget is None:
            return Permit(self, None, math.inf, priority, requester=requester, is_trial=is_trial)
        granted: tuple[PermitGrant, float] | None = None
        try:
            consumer = consumer_of(requester, priority)
            granted = await self._wait(self._budget, Waiter(priority, until_s, self._clock.boot_s(), consumer))
        finally:
            if granted is None and is_trial:
                self._breaker.abandon()
        if granted is None:
            return None
        self._held_count += 1
        return Permit(self, granted[0], granted[1] + SEND_WITHIN_S, priority, requester=requester, is_trial=is_trial)

    async def _wait(self, budget: Budget, waiter: Waiter) -> tuple[PermitGrant, float] | None:
        """Waits for a grant; gives it with a time that isn't later than the time of the grant."""
        is_known_full = self._is_known_full(waiter.consumer)
        if (is_known_full and not waiter.is_patient) or len(self._queue) >= WAITERS_MAX:
            return None
        self._queue.push(waiter)
        deadline = None
        if waiter.is_patient:
            deadline = self._timer(waiter.until_s - self._clock.boot_s(), lambda: self._give_up(waiter))
        if not is_known_full:
            self._stop_alarm()
        self._poll_soon(budget)
        try:
            return await waiter.granted
        except asyncio.CancelledError:
            self._withdraw(budget, waiter)
            raise
        finally:
            if deadline is not None:
                deadline.cancel()

    def _is_known_full(self, consumer: Consumer) -> bool:
        """Tells whether no permit is free for a consumer, as far as the last poll has shown and until the next one."""
        is_refused = consumer in self._refused or consumer.whole_part in self._refused
        return self._alarm is not None and (not self._is_any_left or is_refused)

    def _poll_soon(self, budget: Budget) -> None:
        """Polls for permits, unless a poll is running or is known to find none now."""
        if not self._is_polling and self._alarm is None and self._queue:
            self._is_polling = True
            self._start(self._poll(budget))

    async def _poll(self, budget: Budget) -> None:
        """Hands out permits until no caller waits or none is free; then polls again when one may be free."""
        next_in_s = math.inf
        self._refused.clear()
        try:
            while wanted := self._queue.wanted(TAKEN_AT_ONCE_MAX, without=self._refused):
                self._is_outdated = False
                polled_at_s = self._clock.boot_s()
                permits = await budget.take(wanted, self._permit_s)
                self._hand_out(budget, permits, polled_at_s)
                if self._is_outdated:
                    self._refused.clear()
                    next_in_s = math.inf
                elif permits.next_in_s is not None:
                    next_in_s = min(next_in_s, permits.next_in_s)
                    self._refused |= permits.refused
                    self._is_any_left = permits.is_any_left
                    if not self._is_any_left:
                        break
            if self._queue:
                self._poll_later(budget, next_in_s)
        except Exception as error:  # noqa: BLE001, whatever it was, the callers that wait must get it
            self._fail(error)
        finally:
            self._is_polling = False

    def _hand_out(self, budget: Budget, permits: PermitsGranted, polled_at_s: float) -> None:
        for grant in permits.grants:
            waiter = self._queue.pop(grant.consumer, self._clock.boot_s())
            if waiter is None:
                self._run_rest(budget, budget.release_unused(grant))
            else:
                waiter.granted.set_result((grant, polled_at_s))
                self._last_grant_s = polled_at_s

    def _poll_later(self, budget: Budget, next_in_s: float) -> None:
        """Sends impatient callers away, and sets the alarm for the others. No timer runs while no caller waits."""
        for waiter in self._queue.take_out(is_patient=False):
            _refuse(waiter)
        priority = self._queue.priority()
        if priority is None:
            return
        delay_s = max(ALARM_S_MIN, next_in_s)
        if budget.is_shared and self._limit is not None:
            since_s = self._clock.boot_s() - self._last_grant_s
            recency = self._limit.window_s / (self._limit.window_s + since_s)
            delay_s = POLL_S if delay_s > POLL_S else delay_s + POLL_BACKOFF_S * (priority + recency)
        self._alarm = self._timer(delay_s, lambda: self._ring(budget))

    def _ring(self, budget: Budget) -> None:
        self._alarm = None
        self._poll_soon(budget)

    def _poll_anew(self, budget: Budget) -> None:
        """Polls again at once, because a permit is free sooner than was known."""
        self._is_outdated = True
        self._stop_alarm()
        self._poll_soon(budget)

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _fail(self, error: Exception) -> None:
        for waiter in self._all_waiters():
            if not waiter.granted.done():
                reason = StoreUnavailable(str(error)) if isinstance(error, StoreError) else error
                waiter.granted.set_exception(reason)

    def _refuse_all(self) -> None:
        for waiter in self._all_waiters():
            _refuse(waiter)

    def _all_waiters(self) -> list[Waiter]:
        return [waiter for is_patient in (True, False) for waiter in self._queue.take_out(is_patient=is_patient)]

    def _give_up(self, waiter: Waiter) -> None:
        _refuse(waiter)
        self._queue.remove(waiter)

    def _withdraw(self, budget: Budget, waiter: Waiter) -> None:
        """Removes a caller that was cancelled, and gives back a permit that it was granted in the same moment."""
        self._queue.remove(waiter)
        if waiter.granted.done() and not waiter.granted.cancelled() and waiter.granted.exception() is None:
            granted = waiter.granted.result()
            if granted is not None:
                self._run_rest(budget, budget.release_unused(granted[0]))

    def _end(self, permit: Permit, *, is_used: bool) -> None:
        if permit.is_trial:
            self._breaker.abandon()  # without effect where the trial has ended
        if permit.grant is None or self._budget is None or self._limit is None:
            return
        self._held_count -= 1
        if is_used:
            insort(self._resting_until_s, self._clock.boot_s() + self._limit.window_s)
            self._run_rest(self._budget, self._budget.done(permit.grant))
        else:
            self._run_rest(self._budget, self._budget.release_unused(permit.grant))

    def _leave(self, permit: Permit) -> None:
        if permit.is_trial:
            self._breaker.abandon()
        if permit.grant is not None and self._limit is not None:
            self._held_count -= 1
            insort(self._resting_until_s, permit.send_by_s - SEND_WITHIN_S + self._permit_s + self._limit.window_s)

    def _report(self, permit: Permit, ending: Ending, cause: str) -> None:
        if self._repeats_left < 1.0 and ending is not Ending.NOTHING:
            self._repeats_left += REPEAT_SHARE
        is_token_missing = permit.priority is Priority.TOKEN and ending is not Ending.ANSWERED
        if permit.is_trial or (self._breaker.is_open and is_token_missing):
            self._breaker.trial_ended(ending, cause)
        elif self._breaker.note(ending, cause):
            self._refuse_all()
        if ending is Ending.BLOCKED:
            self._block()
        elif ending is Ending.ANSWERED and self._clock.boot_s() >= self._blocked_until_s:
            self._block_s = 0.0

    def _block(self) -> None:
        """Keeps all processes that share the budget from calling; longer each time that it doesn't help."""
        now_s = self._clock.boot_s()
        if self._budget is None or self._limit is None or now_s < self._blocked_until_s:
            return  # calls that were under way at the first 429 say nothing new
        longest_s = max(self._limit.window_s, BLOCK_S_MAX)
        self._block_s = min(max(self._limit.window_s, self._block_s * 2), longest_s)
        self._blocked_until_s = now_s + self._block_s
        self._run_rest(self._budget, self._budget.block(self._block_s))

    def _run_rest(self, budget: Budget, rest: Rest) -> None:
        """Runs the rest of a change in the background, and polls again when it is done."""
        if rest is None:
            self._poll_anew(budget)
        else:
            self._start(self._finish(budget, rest))

    async def _finish(self, budget: Budget, rest: Coroutine[object, object, None]) -> None:
        with suppress(StoreError):  # the permit comes back by itself, later
            await rest
        self._poll_anew(budget)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _refuse(waiter: Waiter) -> None:
    if not waiter.granted.done():
        waiter.granted.set_result(None)
