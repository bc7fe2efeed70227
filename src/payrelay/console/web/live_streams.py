"""How many pages are live at a time: of all operators together, and of each."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

STREAMS_MAX: Final = 20
"""Of one process: each takes a reading of its page every few seconds."""
OF_OPERATOR_MAX: Final = 4


class LiveStreams:
    """The live pages of this process; ``pause`` waits a number of seconds."""

    def __init__(self, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self.pause = pause
        self._of_operator: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """How many there are."""
        return self._of_operator.total()

    @contextmanager
    def taken(self, operator_id: str) -> Iterator[bool]:
        """Takes a place while the context is open; gives False where none is free."""
        if self.count >= STREAMS_MAX or self._of_operator[operator_id] >= OF_OPERATOR_MAX:
            yield False
            return
        self._of_operator[operator_id] += 1
        try:
            yield True
        finally:
            self._of_operator[operator_id] -= 1
            if not self._of_operator[operator_id]:
                del self._of_operator[operator_id]
