"""Work that outlives the request that began it."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class Background:
    """The work that goes on when nobody waits for it any more.

    A client's disconnect cancels the wait, never the work; a clean stop waits for what is here.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_leaving = False

    @property
    def is_leaving(self) -> bool:
        """True when the program is about to end, and nobody may begin an effect or wait for one any more."""
        return self._is_leaving

    @property
    def under_way(self) -> int:
        """How many pieces of work have begun and not ended."""
        return len(self._tasks)

    def leave(self) -> None:
        """Says that the program is about to end; what is here goes on until ``finish``."""
        self._is_leaving = True

    def start(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Begins a piece of work, and holds on to it until it has ended."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, within_s: float) -> int:
        """Waits until all of it has ended, but no longer than ``within_s``; gives how many have not, and ends them.

        What is ended here left its row in ``sending``, which the next start finds.
        """
        loop = asyncio.get_running_loop()
        until_s = loop.time() + within_s
        while self._tasks and (left_s := until_s - loop.time()) > 0:  # work that ends may leave some that it began
            await asyncio.wait(set(self._tasks), timeout=left_s)
        unfinished = set(self._tasks)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        return len(unfinished)
