"""Reads lists of the embedded database on a thread and a connection of their own, each for a limited time.

A list may have to pass over many rows. On the event loop, or on the connection that charges use, every request would
wait for it.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from payrelay.errors import StoreUnavailable
from payrelay.store.engine.database import T, too_long

_STEPS: Final = 10_000
"""Steps of SQLite's machine between two looks at the time: some 0.1 ms."""


class _Turn:
    """One caller's turn: when it is over, and whether the caller still waits."""

    def __init__(self, until_s: float) -> None:
        self.until_s = until_s
        self.is_wanted = True


class ListReader:
    """Reads one list at a time by ``connection``, which nobody else may use.

    ``timeout_s`` is how long a caller waits, for other lists and for its own.
    """

    def __init__(self, connection: sqlite3.Connection, *, loop: asyncio.AbstractEventLoop, timeout_s: float) -> None:
        self._connection = connection
        self._loop = loop
        self._timeout_s = timeout_s
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="payrelay-lists")
        self._turn = _Turn(0.0)
        self._is_closed = False
        connection.set_progress_handler(self._is_over, _STEPS)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Calls ``work`` on the thread. Raises StoreUnavailable where the time is over, and what ``work`` raises."""
        turn = _Turn(self._loop.time() + self._timeout_s)
        running = asyncio.wrap_future(self._thread.submit(self._take, turn, work), loop=self._loop)
        try:
            return await asyncio.wait_for(running, self._timeout_s)
        except TimeoutError as error:
            raise too_long(self._timeout_s) from error
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise (_closed() if self._is_closed else too_long(self._timeout_s)) from error
        finally:
            turn.is_wanted = False

    def close(self) -> None:
        """Ends what runs, and closes the connection; waits for the thread."""
        self._is_closed = True
        self._thread.shutdown()
        self._connection.close()

    def _take(self, turn: _Turn, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._is_closed:
            raise _closed()
        self._turn = turn
        return work(self._connection)

    def _is_over(self) -> bool:
        return self._is_closed or not self._turn.is_wanted or self._loop.time() >= self._turn.until_s


def _closed() -> StoreUnavailable:
    return StoreUnavailable("the database is closed")
