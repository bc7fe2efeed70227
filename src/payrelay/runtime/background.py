"""Background work: it outlives the request that began it."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class Background:
    """The background work of this process.

    A client's disconnect cancels the client's wait, never the work. A clean stop waits for the work.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_leaving = False
        self._is_stopping = False

    @property
    def is_stopping(self) -> bool:
        """True once the process was asked to stop; requests are served as before until it leaves."""
        return self._is_stopping

    @property
    def is_leaving(self) -> bool:
        """True when the process is about to end: no effect may begin, and no request may wait for one."""
        return self._is_leaving

    @property
    def under_way(self) -> int:
        """How many tasks have begun and not ended."""
        return len(self._tasks)

    def announce_stop(self) -> None:
        """Notes that the process was asked to stop."""
        self._is_stopping = True

    def leave(self) -> None:
        """Notes that the process is about to end; tasks go on until ``finish``."""
        self._is_stopping = True
        self._is_leaving = True

    def start(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Begins a task, and keeps it until it has ended."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, within_s: float) -> int:
        """Waits until all tasks have ended, but no longer than ``within_s``; cancels the others, and returns how many.

        An operation whose task is cancelled stays in ``sending``, and the next start recovers it.
        """
        loop = asyncio.get_running_loop()
        until_s = loop.time() + within_s
        while self._tasks and (left_s := until_s - loop.time()) > 0:  # a task may have begun others
            await asyncio.wait(set(self._tasks), timeout=left_s)
        unfinished = set(self._tasks)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        return len(unfinished)
