"""A reader of foreign text: what reads it, how much of it may come, and the shapes in which it could be worst."""

import asyncio
import atexit
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

Numbered = Callable[[int], bytes]
T = TypeVar("T")
OURS: Final = frozenset({"payrelay", "payrelay_simulator", "payrelay_tools", "payrelay_client"})


@dataclass(frozen=True)
class Shape:
    """A text of any length: one piece again and again, between a beginning and an end.

    Attributes:
        name: what is worst in it.
        piece: the same each time; or made of its number, where pieces must differ.
    """

    name: str
    piece: bytes | Numbered
    before: bytes = b""
    after: bytes = b""

    def of(self, length: int) -> bytes:
        """Gives a text of this shape that is as long as it can be, and not longer than ``length`` bytes."""
        room = length - len(self.before) - len(self.after)
        if isinstance(self.piece, bytes):
            return self.before + self.piece * (room // len(self.piece)) + self.after
        pieces: list[bytes] = []
        while (room := room - len(piece := self.piece(len(pieces)))) >= 0:
            pieces.append(piece)
        return self.before + b"".join(pieces) + self.after


@dataclass(frozen=True)
class Reader:
    """What reads one kind of foreign text.

    Attributes:
        name: whose text it is.
        read: reads it, as the product does.
        longest: the bytes of the longest text that it is ever given, by the limit that stands before it.
        shapes: those in which it takes longest, by what is known of the reader.
        refusals: what it raises for a text that it refuses, beside errors of our own; that is as good as an answer.
    """

    name: str
    read: Callable[[bytes], object]
    longest: int
    shapes: tuple[Shape, ...]
    refusals: tuple[type[Exception], ...] = ()

    def take(self, text: bytes) -> None:
        """Reads a text, whatever comes of it. Raises what nobody expects, such as an error of Python's own."""
        try:
            self.read(text)
        except Exception as error:
            if not isinstance(error, self.refusals) and type(error).__module__.partition(".")[0] not in OURS:
                raise


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return loop


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Runs work to its end, in one loop for all: to open one takes longer than most readings."""
    return _loop().run_until_complete(work)
