"""Statements that wait at the same moment are carried out as one: a round trip and a commit for many callers.

Rules, each with a test that tries to break it:

1. A statement goes alone and at once where nothing is under way. Where another query is, it goes at the end of the
   event loop's turn, with what came for its query in that turn. Where its own is, it waits, and goes together with what
   else came as soon as that has ended. It does not wait for one that takes longer than OVERDUE_S. Nothing ever waits
   for others to come: the end of a turn comes without a pause.
2. Each caller gets the rows of its own statement. One that found its place taken gets no row, and fails nobody else.
3. A batch that was surely undone because of one of its rows is carried out again, row by row. So a fault concerns the
   caller alone whose row has it. That includes a deadlock: two processes may wait for each other's rows.
4. A batch whose end isn't known is never repeated. Each of its callers hears of the doubt.
5. A caller that goes away while it waits has nothing carried out. Later, its row is carried out like all others.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.errors import StoreFault, StoreUnavailable
from payrelay.store.engine.database import Row, Statement

BATCH_MAX: Final = 128
"""Statements of one batch: enough to share a commit, few enough for the server to be done in some 10 ms."""
OVERDUE_S: Final = 0.05
"""How long the others wait for a batch: ten times what one usually takes. A longer one waits for somebody's lock."""
WAITING_MAX: Final = 10_000
"""Statements that may wait. More mean that the database can't keep up, and waiting won't help."""
DRAIN_S: Final = 10.0
"""How long a close waits for batches that are under way."""

CarryOut: TypeAlias = Callable[[Sequence[Statement]], Awaitable[list[list[Row]]]]
"""Carries out statements of one query as one, and gives the rows of each. Raises UndoneError where they were surely
undone because of one of them, and whatever else it raises to every caller."""


class UndoneError(Exception):
    """A batch was undone because of one of its rows; nothing of it is stored."""


class _Job(msgspec.Struct, frozen=True):
    """A statement that waits, and the future of its caller."""

    statement: Statement
    waiter: "asyncio.Future[list[Row]]"


class _Lane:
    """The statements of one query: those that wait, and the turns under way that the others wait for.

    It is gathering from the first statement that finds another query under way until the end of the loop's turn.
    """

    __slots__ = ("is_gathering", "turns", "waiting")

    def __init__(self) -> None:
        self.is_gathering = False
        self.turns: list[_Turn] = []
        self.waiting: deque[_Job] = deque()

    def wait(self, statement: Statement) -> "asyncio.Future[list[Row]]":
        """Lets a statement wait for its turn, while others have theirs; gives the future of its rows."""
        if not self.waiting:
            for turn in self.turns:
                turn.limit()
        waiter: asyncio.Future[list[Row]] = asyncio.get_running_loop().create_future()
        self.waiting.append(_Job(statement, waiter))
        return waiter

    def take(self) -> list[_Job]:
        """Takes the next batch out of those that wait; skips callers that went away.

        Writes are sorted by their first parameter, the key of their row, and a batch has each key once: its rows are
        locked in one order, and each change finds the row that it was decided on.
        """
        taken: list[_Job] = []
        later: list[_Job] = []
        keys = set()
        while self.waiting and len(taken) < BATCH_MAX:
            job = self.waiting.popleft()
            if job.waiter.cancelled():
                continue
            key = job.statement.parameters[0]
            if job.statement.is_whole and key in keys:
                later.append(job)
            else:
                keys.add(key)
                taken.append(job)
        self.waiting.extendleft(reversed(later))
        if taken and taken[0].statement.is_whole:
            taken.sort(key=lambda job: str(job.statement.parameters[0]))
        return taken


class _Turn:
    """What is under way in a lane, for as long as the others wait for it."""

    __slots__ = ("_began_s", "_is_over", "_lane", "_loop", "_next", "_timer")

    def __init__(self, lane: _Lane, next_: Callable[[_Lane], None], loop: asyncio.AbstractEventLoop) -> None:
        self._lane = lane
        self._next = next_
        self._loop = loop
        self._is_over = False
        self._began_s = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        lane.turns.append(self)
        if lane.waiting:
            self.limit()

    def limit(self) -> None:
        """Ends it OVERDUE_S after its beginning: somebody waits for it now."""
        if self._timer is None:
            self._timer = self._loop.call_at(self._began_s + OVERDUE_S, self.end)

    def end(self) -> None:
        """Lets the others go on; also called where it is overdue. May be called twice."""
        if self._is_over:
            return
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._lane.turns.remove(self)
        if self._lane.waiting and not self._lane.turns:
            self._next(self._lane)


class Batches:
    """Carries out statements by ``carry_out``, those that wait at the same moment together."""

    def __init__(self, carry_out: CarryOut) -> None:
        self._carry_out = carry_out
        self._lanes: dict[tuple[str, bool], _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way = 0
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many statements wait for their batch."""
        return sum(len(lane.waiting) for lane in self._lanes.values())

    async def rows(self, statement: Statement) -> list[Row]:
        """Carries out a statement, perhaps with others of its query; gives its rows.

        Raises what ``carry_out`` raises, and StoreUnavailable where too many wait.
        """
        # What begins an effect may be refused where another server takes the writes; nothing else may be with it.
        key = statement.query.postgresql, statement.begins_effect
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        if self._is_closed:
            raise StoreUnavailable("the database is closed")
        if lane.turns or lane.is_gathering:
            if len(lane.waiting) >= WAITING_MAX:
                msg = "too many statements are waiting for the database"
                raise StoreUnavailable(msg, fault=StoreFault.NO_CONNECTION_FREE)
            return await lane.wait(statement)
        if self._under_way and (waiter := await self._gathered(lane, statement)) is not None:
            return await waiter
        turn = _Turn(lane, self._begin, asyncio.get_running_loop())
        self._under_way += 1
        try:
            [rows] = await self._carry_out((statement,))
        finally:
            self._under_way -= 1
            turn.end()
        return rows

    async def close(self) -> None:
        """Carries out what waits, and takes no more; cuts off what lasts longer than DRAIN_S. May be called twice."""
        self._is_closed = True
        await asyncio.sleep(0)  # for those that wait for the end of this turn
        for lane in self._lanes.values():
            while lane.waiting:
                self._begin(lane)
        loop = asyncio.get_running_loop()
        until_s = loop.time() + DRAIN_S
        while self._tasks and loop.time() < until_s:  # a batch that is undone begins others
            await asyncio.wait(self._tasks, timeout=until_s - loop.time())
        unfinished = list(self._tasks)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)

    async def _gathered(self, lane: _Lane, statement: Statement) -> "asyncio.Future[list[Row]] | None":
        """Waits for the end of the loop's turn, and begins a batch of this statement and those that came meanwhile.

        Gives the future of this one's rows; None where no other came, and the statement is to go alone.
        """
        waiter = None
        lane.is_gathering = True
        try:
            await asyncio.sleep(0)
            if lane.waiting:
                waiter = lane.wait(statement)
                lane.waiting.rotate(1)  # it came first
        finally:
            lane.is_gathering = False
            if lane.waiting and not lane.turns:
                self._begin(lane)
        return waiter

    def _begin(self, lane: _Lane) -> None:
        jobs = lane.take()
        if jobs:
            self._start(self._together(_Turn(lane, self._begin, asyncio.get_running_loop()), jobs))

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _together(self, turn: _Turn, jobs: list[_Job]) -> None:
        """Carries out a batch, and gives each caller the outcome of its statement."""
        self._under_way += 1
        try:
            outcomes = await self._carry_out([job.statement for job in jobs])
        except UndoneError:
            for job in jobs:
                self._start(self._alone(job))
        except asyncio.CancelledError:
            _give_up(jobs)
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it concerns every caller
            _fail(jobs, error)
        else:
            for job, rows in zip(jobs, outcomes, strict=True):
                if not job.waiter.done():
                    job.waiter.set_result(rows)
        finally:
            self._under_way -= 1
            turn.end()

    async def _alone(self, job: _Job) -> None:
        """Carries out one statement of a batch that was undone."""
        if job.waiter.done():  # its caller went away meanwhile
            return
        try:
            [rows] = await self._carry_out((job.statement,))
        except asyncio.CancelledError:
            _give_up([job])
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it concerns its caller
            _fail([job], error)
        else:
            if not job.waiter.done():
                job.waiter.set_result(rows)


def _fail(jobs: list[_Job], error: Exception) -> None:
    for job in jobs:
        if not job.waiter.done():
            job.waiter.set_exception(error)


def _give_up(jobs: list[_Job]) -> None:
    for job in jobs:
        job.waiter.cancel()
