"""Calls on a folder that may hang, such as one on a network file system whose server is gone.

Rules:

1. A call gets an answer within ``wait_s``, or fails with TimeoutError, which is an OSError.
2. Each call has a daemon thread. The end of the process waits for none.
3. While STUCK_MAX calls hang, every further one fails at once: threads don't pile up, and nothing waits in vain again.
"""

import asyncio
import errno
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, ParamSpec, TypeVar

FOLDER_WAIT_S: Final = 5.0
"""A disk that takes its time is done by then."""
STUCK_MAX: Final = 4
"""Calls that may hang at once: those of several requests, and that of the job that reads the list."""

P = ParamSpec("P")
T = TypeVar("T")


class FolderCalls:
    """Makes calls that may hang. ``stuck_max`` of 1 keeps a late call from being overtaken by the next one."""

    def __init__(self, wait_s: float = FOLDER_WAIT_S, *, stuck_max: int = STUCK_MAX) -> None:
        self._wait_s = wait_s
        self._stuck_max = stuck_max
        self._stuck = 0

    async def make(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Makes a call in a thread, and returns what it returns.

        Raises what it raises, and TimeoutError where it hangs, or others do; then it may still be carried out.
        """
        if self._stuck >= self._stuck_max:
            raise TimeoutError(errno.ETIMEDOUT, "it still gives no answer to an earlier call")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            try:
                found = call(*args, **kwargs)
            except Exception as error:  # noqa: BLE001, raised again where the call was made
                tell(_fail, answer, error)
            else:
                tell(_succeed, answer, found)

        def tell(settle: Callable[..., None], *told: object) -> None:
            with suppress(RuntimeError):  # the process has ended meanwhile
                loop.call_soon_threadsafe(settle, *told)

        threading.Thread(target=work, name="payrelay-folder", daemon=True).start()
        done, _ = await asyncio.wait([answer], timeout=self._wait_s)
        if not done:
            self._stuck += 1
            answer.add_done_callback(self._came_back)
            raise TimeoutError(errno.ETIMEDOUT, f"it gives no answer within {self._wait_s:g} s")
        return answer.result()

    def _came_back(self, answer: "asyncio.Future[T]") -> None:
        self._stuck -= 1
        answer.exception()  # nobody waits for it any more


def _succeed(answer: "asyncio.Future[T]", found: T) -> None:
    if not answer.done():
        answer.set_result(found)


def _fail(answer: "asyncio.Future[T]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
