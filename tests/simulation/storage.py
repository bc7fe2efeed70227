"""The database of a simulated process: the real engine, on a disk that takes its time and in hands that may die."""

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, ParamSpec, TypeVar

from tests.simulation.loop import OUTSIDE, OWNER, Crash, Owner, SimulatedLoop, wait_seconds

from payrelay.clock import Clock
from payrelay.errors import StoreDoubtful, StoreUnavailable
from payrelay.store.engine import sqlite_file
from payrelay.store.engine.database import Database, T, Unit
from payrelay.store.engine.sqlite import Sqlite

FILES: Final = ("", "-wal", "-shm")
SHARED_LATENCY_S: Final = 0.02
"""The longest way to a database server."""

NEVER: Final[Future[Any]] = Future()

P = ParamSpec("P")
R = TypeVar("R")


def new_folder() -> Path:
    """Makes a folder, in memory where the system has such a place: nothing here outlives the machine."""
    memory = Path("/dev/shm")  # noqa: S108, the folder below it is of our own
    return Path(tempfile.mkdtemp(prefix="payrelay-simulation-", dir=memory if os.access(memory, os.W_OK) else None))


def copy_database(template: Path, path: Path) -> None:
    """Begins a run with the template's database."""
    for suffix in FILES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(template, path)


def replace_database(path: Path, image: bytes) -> None:
    """Puts a file in the place of a database that nobody has open any more."""
    for suffix in FILES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(image)


def nothing() -> None:
    """Does nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """How long a commit takes at most, and who is told of each when it is there."""

    random: Random
    longest_s: float
    done: Callable[[], None] = nothing


class SlowExecutor(Executor):
    """Runs what it is given after a while, on the loop; its owner may die right before and right after.

    The disk's ``done`` is called in between: what was to be on disk is, and nobody has been told yet.
    """

    def __init__(self, loop: SimulatedLoop, disk: "Disk") -> None:
        self._loop = loop
        self._disk = disk

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        """Takes it on; nobody waits for the future that it gives."""
        point = fn.__name__.strip("_")

        def run() -> None:
            owner = OWNER.get()
            owner.reach(f"before_{point}")
            fn(*args, **kwargs)
            self._disk.done()
            owner.reach(f"after_{point}")

        self._loop.call_later(self._disk.random.uniform(0, self._disk.longest_s), run)
        return NEVER


def open_engine(path: Path, loop: SimulatedLoop, clock: Clock, disk: "Disk") -> Sqlite:
    """Opens the real engine; its owner's death closes the file, which undoes what was not committed."""
    connections = sqlite_file.open_file(path, clock=clock)
    # A process that dies loses nothing that it gave to the system; only a machine would.
    connections.writer.execute("PRAGMA synchronous = OFF")

    def drop() -> None:
        connections.lists.close()
        connections.reader.close()
        connections.writer.close()

    OWNER.get().at_death.append(drop)
    return Sqlite(connections, executor=SlowExecutor(loop, disk), loop=loop, lock=None, busy_s=2.0, list_timeout_s=None)


def tear(engine: Sqlite) -> None:
    """Ends a server of many processes as its machine's death does: what wasn't committed is undone."""
    engine._list_connection.close()
    engine._reader.close()
    engine._writer.close()


COMPARING: Final = ContextVar("comparing", default=False)
"""Whether the one who writes compares a new server, and says there what is missing."""


class SimulatedDatabase:
    """The database as a process has it: a way there on which it may die, and writes that may fail.

    Args:
        engine: the real one.
        owner: the process.
        random: when a write fails.
        fails: tells the share of writes that fail at this moment.
        is_shared: whether the engine belongs to the outside world, which goes on when the process dies.
    """

    def __init__(
        self, engine: Database, owner: Owner, random: Random, fails: Callable[[], float], *, is_shared: bool
    ) -> None:
        self._engine = engine
        self._owner = owner
        self._random = random
        self._fails = fails
        self._is_shared = is_shared
        self._is_compared = True

    def change_server(self, engine: Database) -> None:
        """Goes on with another server; before ``compared`` only who compares it writes there."""
        self._engine = engine
        self._is_compared = False

    def compared(self) -> None:
        """Lets writes through again."""
        self._is_compared = True

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Carries it out, unless it fails; over a network it may have been done all the same."""
        self._owner.reach("before_write")
        share = self._fails()
        is_failing = share > 0 and self._random.random() < share
        if is_failing and not (self._is_shared and self._random.random() < 0.5):
            raise StoreUnavailable("simulated: the disk is full")
        if not (self._is_compared or COMPARING.get()):
            raise StoreUnavailable("simulated: another server takes the writes")
        value = await (self._far(unit) if self._is_shared else self._engine.write(unit, is_patient=is_patient))
        self._owner.reach("after_write")
        if is_failing:
            raise StoreDoubtful("simulated: the connection was lost at the commit")
        return value

    async def read(self, unit: Unit[T]) -> T:
        """Reads."""
        if self._owner.is_dead:
            raise Crash
        if self._is_shared:
            await wait_seconds(self._random.uniform(0, SHARED_LATENCY_S))
        return await self._engine.read(unit)

    async def read_page(self, unit: Unit[T]) -> T:
        """Reads a list, as everything else."""
        return await self.read(unit)

    async def clear_files(self, table: str) -> bool:
        """Clears its files, unless its process is dead."""
        if self._owner.is_dead:
            raise Crash
        clearing = self._engine.clear_files(table)
        return await (self._outside(clearing) if self._is_shared else clearing)

    async def ping(self) -> None:
        """Does nothing."""

    async def close(self) -> None:
        """Closes what is its own."""
        if not self._is_shared and not self._owner.is_dead:
            await self._engine.close()

    async def _far(self, unit: Unit[T]) -> T:
        """Hands a unit to a server, which carries it out whatever becomes of us."""
        await wait_seconds(self._random.uniform(0, SHARED_LATENCY_S))
        return await self._outside(self._engine.write(unit))

    async def _outside(self, work: Coroutine[object, object, T]) -> T:
        """Lets the server do something: no step of it is ours, so that our death doesn't stop the server."""
        task: asyncio.Task[T] = asyncio.get_running_loop().create_task(work, context=OUTSIDE.context())
        task.add_done_callback(asyncio.Task.exception, context=OUTSIDE.context())
        return await asyncio.shield(task)


def open_auditor(path: Path) -> sqlite3.Connection:
    """Opens a connection of the judge's own, which sees what is committed and nothing else."""
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
