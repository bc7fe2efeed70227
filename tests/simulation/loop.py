"""An event loop in which time, chance and death are arguments: nothing waits, nothing runs beside anything else.

Time stands still while something is ready, and then jumps to the next timer. Every step belongs to an ``Owner``, a
process or the world outside of it; a dead owner's steps are not taken, whatever they would have done. That is what
kill -9 does: no ``finally`` has an effect, because nothing that has one is reached any more.
"""

import asyncio
import contextvars
import heapq
import inspect
from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final, TypeVar

from payrelay.errors import PayrelayError

T = TypeVar("T")

STEPS_MAX: Final = 1_000_000
"""Of one run; the longest that ended by itself had a quarter of it. More is a story that goes round in circles."""
UNWOUND_MAX: Final = 100
"""How often what is swept up may want to wait before it ends."""


class Crash(SystemExit):
    """The end of a process in the middle of a step; asyncio lets it pass through every task."""


class Endless(Exception):
    """A run came to no end."""


class Owner:
    """Somebody whose steps can be stopped for good: a process, or the world outside, which never is.

    Attributes:
        name: who it is.
        is_dead: whether it was killed.
        steps: how many steps it has taken.
        dies_at_step: before which one it is killed; None for none.
        dies_at: the point at which it is killed, and the which-th time it comes there; None for none.
        at_death: called when it is killed, to break off what it had in hand.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.steps = 0
        self.dies_at_step: int | None = None
        self.dies_at: tuple[str, int] | None = None
        self.at_death: list[Callable[[], None]] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self._passed: dict[str, int] = {}

    def context(self) -> contextvars.Context:
        """Gives a context in which everything that is begun belongs to it."""
        context = contextvars.Context()
        context.run(OWNER.set, self)
        return context

    def reach(self, point: str) -> None:
        """Tells that it has come to a point of its way; raises Crash where it is to die there."""
        if self.is_dead:
            raise Crash
        number = self._passed[point] = self._passed.get(point, 0) + 1
        if self.dies_at == (point, number):
            self.kill()
            raise Crash

    def kill(self) -> None:
        """Ends it as kill -9 does."""
        self.is_dead = True
        for break_off in self.at_death:
            break_off()

    def dispose(self) -> None:
        """Closes what a dead one left lying, so that nothing is said of it when it is swept up."""
        tasks, self.tasks = self.tasks, []
        for task in tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                unwind(task.get_coro())


def unwind(coroutine: Any) -> None:  # noqa: ANN401, what a task holds has no better name
    """Ends a coroutine where it stands, and again wherever it wants to wait on its way out."""
    # What has not begun may hold another one that has not: it is let into its first step, where its death awaits it.
    begin = inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED
    for number in range(UNWOUND_MAX):
        try:
            if begin and number == 0:
                coroutine.send(None)
            else:
                coroutine.throw(asyncio.CancelledError)
        except BaseException:  # noqa: BLE001, whatever it ends with, it has ended
            return


OUTSIDE: Final = Owner("outside")
OWNER: Final[contextvars.ContextVar[Owner]] = contextvars.ContextVar("owner", default=OUTSIDE)


class Step:
    """Something that is to be done, in somebody's context; what asyncio calls a handle."""

    __slots__ = ("args", "callback", "context", "is_cancelled")

    def __init__(self, callback: Callable[..., object], args: tuple[object, ...], context: contextvars.Context) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.is_cancelled = False

    def cancel(self) -> None:
        """Lets it not be done."""
        self.is_cancelled = True

    def cancelled(self) -> bool:
        """Whether it is not to be done."""
        return self.is_cancelled


def _is_outside(step: Step) -> bool:
    return step.context.get(OWNER, OUTSIDE) is OUTSIDE


def _then(work: Callable[..., T], args: tuple[object, ...], done: "asyncio.Future[T]") -> None:
    done.set_result(work(*args))


class NumberedTask(asyncio.Task[T]):
    """A piece of work whose place in a set is its own number, and not where it lies in memory."""

    def __init__(self, number: int, *args: Any, **more: Any) -> None:  # noqa: ANN401, the base's own
        self._number = number
        super().__init__(*args, **more)

    def __hash__(self) -> int:
        """Gives the number."""
        return self._number


class NumberedFuture(asyncio.Future[T]):
    """The same of a future."""

    def __init__(self, number: int, *, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        """Gives the number."""
        return self._number


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs everything in one thread, in an order that the seed decides.

    Args:
        random: shuffles what is ready at the same time; None keeps it in order, as asyncio does.
    """

    def __init__(self, random: Random | None) -> None:
        self._random = random
        self._now_s = 0.0
        self._ready: deque[Step] = deque()
        self._timers: list[tuple[float, int, Step]] = []
        self._number = 0
        self.steps = 0
        self.stalls: dict[int, float] = {}
        """Seconds that pass at once before a step, by its number: a machine that was suspended, a slow collection."""
        self.still_until_s = 0.0
        """Until then no process takes a step."""
        self.owners: list[Owner] = [OUTSIDE]
        self.fatal: str | None = None
        """Why it can't go on."""
        self.troubles: list[str] = []
        """What ended with an exception that nobody took."""

    def time(self) -> float:
        """Gives the seconds since the beginning."""
        return self._now_s

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a piece of work of the outside world to its end; raises Endless where that doesn't come."""
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(work)
            while not task.done():
                self._step()
            return task.result()
        finally:
            self._sweep()
            asyncio._set_running_loop(None)

    def _sweep(self) -> None:
        """Clears away what was left lying; what does so may leave something itself, and not only its own."""
        for owner in self.owners:
            owner.is_dead = owner is not OUTSIDE
        while any(owner.tasks for owner in self.owners):
            for owner in self.owners:
                owner.dispose()
        for break_off in OUTSIDE.at_death:
            break_off()
        OUTSIDE.at_death.clear()
        self._ready.clear()
        self._timers.clear()

    def _step(self) -> None:
        if not self._ready:
            self._jump()
        if self._random is not None and len(self._ready) > 1:
            self._ready.rotate(self._random.randrange(len(self._ready)))
        step = self._ready.popleft()
        owner = step.context.get(OWNER, OUTSIDE)
        if step.is_cancelled or owner.is_dead:
            return
        self._count()
        owner.steps += 1
        if owner.steps == owner.dies_at_step:
            owner.kill()
            return
        if self.steps in self.stalls:
            # A step of a process waits until it goes on; one of the outside world doesn't.
            if owner is OUTSIDE:
                self._ready.appendleft(step)
            self._stand_still(self._now_s + self.stalls[self.steps])
            if owner is OUTSIDE or owner.is_dead:  # it may have been killed meanwhile
                return
        self._do(step, owner)

    def _count(self) -> None:
        self.steps += 1
        if self.fatal is not None or self.steps > STEPS_MAX:
            raise Endless(self.fatal or f"no end after {STEPS_MAX} steps, at {self._now_s:.1f} s")

    def _do(self, step: Step, owner: Owner) -> None:
        try:
            step.context.run(step.callback, *step.args)
        except Crash:
            pass  # its owner is dead
        except Exception as error:  # noqa: BLE001, as every loop does: the others go on
            self.call_exception_handler({"message": f"a step of {owner.name} failed", "exception": error})

    def _stand_still(self, until_s: float) -> None:
        """Lets time pass for the outside world alone: what is on its way there arrives, and no process takes a step."""
        self.still_until_s = until_s
        while True:
            ready = next((step for step in self._ready if _is_outside(step)), None)
            if ready is not None:
                self._ready.remove(ready)
            else:
                waiting = (timer for timer in self._timers if timer[0] <= until_s and _is_outside(timer[2]))
                due = min(waiting, default=None)
                if due is None:
                    break
                self._timers.remove(due)
                heapq.heapify(self._timers)
                self._now_s, ready = max(self._now_s, due[0]), due[2]
            if not ready.is_cancelled:
                self._count()
                self._do(ready, OUTSIDE)
        self._now_s = until_s

    def _jump(self) -> None:
        """Moves the time to the next timer, and makes ready all that are due then."""
        while self._timers and self._timers[0][2].is_cancelled:
            heapq.heappop(self._timers)
        if not self._timers:
            raise Endless("everybody waits for somebody else")
        self._now_s = max(self._now_s, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now_s:
            self._ready.append(heapq.heappop(self._timers)[2])

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: object, context: contextvars.Context | None = None
    ) -> "Step":
        """Takes a step as soon as its turn comes."""
        step = Step(callback, args, context or contextvars.copy_context())
        self._ready.append(step)
        return step

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: object, context: contextvars.Context | None = None
    ) -> "Step":
        """Takes a step after so many seconds."""
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: object, context: contextvars.Context | None = None
    ) -> "Step":
        """Takes a step at a moment."""
        step = Step(callback, args, context or contextvars.copy_context())
        self._number += 1
        heapq.heappush(self._timers, (when, self._number, step))
        return step

    def create_future(self) -> "asyncio.Future[Any]":
        """Makes a future of this loop."""
        self._number += 1
        return NumberedFuture(self._number, loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        """Begins a piece of work; it belongs to whoever begins it, or to the owner of the context."""
        self._number += 1
        task: asyncio.Task[T] = NumberedTask(self._number, coro, loop=self, name=name, context=context)
        owner = OWNER.get() if context is None else context.get(OWNER, OUTSIDE)
        owner.tasks.append(task)
        return task

    async def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> T:  # type: ignore[override]  # noqa: ANN401
        """Runs a function in an executor, which is a simulated one too."""
        done = self.create_future()
        executor.submit(_then, func, args, done)
        value: T = await done
        return value

    def get_debug(self) -> bool:
        """Says that nothing is watched more closely than usual."""
        return False

    def is_running(self) -> bool:
        """Says that it runs."""
        return True

    def is_closed(self) -> bool:
        """Says that it isn't closed."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Notes what nobody took, unless it comes of a crash, or is an answer for somebody who has left."""
        error = context.get("exception")
        if not isinstance(error, Crash | PayrelayError):
            self.troubles.append(f"{context.get('message')}: {error!r}")


async def wait_seconds(seconds: float) -> None:
    """Lets simulated time pass."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    timer = loop.call_later(max(0.0, seconds), _end_wait, over)
    try:
        await over
    finally:
        timer.cancel()


def _end_wait(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)


def new_loop(random: Random | None) -> SimulatedLoop:
    """Makes a loop; what it doesn't have of a real one raises NotImplementedError."""
    return SimulatedLoop(random)  # type: ignore[abstract]
