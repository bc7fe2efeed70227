"""Counts what one request makes the program do: calls of functions by room, statements, commits, syncs, round trips.

Nothing here is a time, so a busy machine counts the same. The worker goes on beside a request, and may add to what is
counted. So a request of one kind is made many times: the lowest quartile of each number makes the budget, and the least
of each is compared with it.
"""

import asyncio
import os
import socket
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from tests.store.engine import forgetting_vfs
from tests.store.engine.forgetting_vfs import SyncSystem

import payrelay
import payrelay_simulator

OURS: Final = str(Path(payrelay.__file__).parent) + os.sep
OTHERS: Final = (str(Path(payrelay_simulator.__file__).parent) + os.sep, forgetting_vfs.__file__, __file__)
"""The gateway, and what counts: their calls are no work of the program's."""
COMMIT: Final = "COMMIT"
STATEMENT: Final = "statements"
COMMITS: Final = "commits"
SYNCS: Final = "syncs"
ROUND_TRIPS: Final = "round trips"
_EARLIER: Final = asyncio.TimerHandle.__lt__.__code__
"""How often the event loop compares timers depends on how many wait, and so on how busy the machine is."""
_STARTUP_LENGTH: Final = 8
"""Bytes of a message's length and code, of the messages that come before a session."""
_HEAD: Final = 5
"""Bytes of a message's type and length."""


class Work:
    """What was counted since ``begin``; one for a whole program."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()
        self._rooms: dict[str, str | None] = {}
        self._is_on = False
        self._connections: list[sqlite3.Connection] = []

    def begin(self) -> None:
        """Counts from now on, from nothing."""
        while self._connections:
            with suppress(sqlite3.ProgrammingError):  # it is closed, or a list's, which a thread of its own reads
                self._connections.pop().set_trace_callback(self._executed)
        self._counted = Counter()
        self._is_on = True

    def end(self) -> Counter[str]:
        """Counts no more, and gives what was counted."""
        self._is_on = False
        return self._counted

    def note(self, what: str) -> None:
        """Counts one thing."""
        if self._is_on:
            self._counted[what] += 1

    def called(self, frame: FrameType, event: str, _: object) -> None:
        """Counts the call of a function in Python, as ``sys.setprofile`` tells of it: for the room that called it.

        A library's function counts for the room on whose behalf it runs. What nobody of ours called counts for nobody.
        """
        if self._is_on and event == "call" and frame.f_code is not _EARLIER:
            room = self._room_of(frame)
            if room is not None:
                self._counted[f"calls in {room}"] += 1

    def opened(self, event: str, arguments: tuple[object, ...]) -> None:
        """Notes each connection to an embedded database; an audit hook (``sys.addaudithook``)."""
        if event == "sqlite3.connect/handle" and isinstance(arguments[0], sqlite3.Connection):
            self._connections.append(
                arguments[0]
            )  # not open yet: its statements are counted from the next beginning on

    def _executed(self, text: str) -> None:
        if text.startswith(COMMIT):
            self.note(COMMITS)
        elif not text.startswith(("BEGIN", "SAVEPOINT", "RELEASE", "--")):
            self.note(STATEMENT)

    def _room_of(self, frame: FrameType | None) -> str | None:
        while frame is not None:
            path = frame.f_code.co_filename
            if path.startswith(OURS):
                return self._rooms.setdefault(path, path.removeprefix(OURS).partition(os.sep)[0].removesuffix(".py"))
            if path.startswith(OTHERS):
                return None
            frame = frame.f_back
        return None


@contextmanager
def counting() -> Iterator[Work]:
    """Counts in this thread, and in all threads that begin while the context is open. Once in a process."""
    work = Work()
    SyncSystem(lambda _: work.note(SYNCS))
    sys.addaudithook(work.opened)
    threading.setprofile(work.called)
    sys.setprofile(work.called)
    try:
        yield work
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@contextmanager
def tapped(server: Path, folder: Path, work: Work) -> Iterator[Path]:
    """Gives a folder with a socket that leads to a PostgreSQL server's, and counts what passes it."""
    name = ".s.PGSQL.5432"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / name))
        listener.listen()
        threading.Thread(target=_accept, args=(listener, server / name, work), daemon=True).start()
        yield folder


def _accept(listener: socket.socket, server: Path, work: Work) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        there = socket.socket(socket.AF_UNIX)
        there.connect(str(server))
        threading.Thread(
            target=_pass, args=(client, there, _Counted(work, b"EQ", STATEMENT, has_startup=True)), daemon=True
        ).start()
        threading.Thread(
            target=_pass, args=(there, client, _Counted(work, b"Z", ROUND_TRIPS, has_startup=False)), daemon=True
        ).start()


class _Counted(NamedTuple):
    """What is counted of one direction of a connection: messages of these types."""

    work: Work
    types: bytes
    what: str
    has_startup: bool


def _pass(source: socket.socket, target: socket.socket, counted: _Counted) -> None:
    has_startup = counted.has_startup
    held = b""
    while data := _received(source):
        target.sendall(data)
        held += data
        if has_startup and len(held) >= _STARTUP_LENGTH:
            # The first message has no type, only a length.
            length = int.from_bytes(held[:4], "big")
            if len(held) < length:
                continue
            held, has_startup = held[length:], False
        while not has_startup and len(held) >= _HEAD:
            length = 1 + int.from_bytes(held[1:_HEAD], "big")
            if len(held) < length:
                break
            if held[:1] in counted.types:
                counted.work.note(counted.what)
            held = held[length:]
    with suppress(OSError):  # it is closed
        target.shutdown(socket.SHUT_WR)


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(65_536)
    except OSError:
        return b""
