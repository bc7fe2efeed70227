"""The embedded database: SQLite, with one writer that commits all waiting units of work together.

Rules:

1. A unit is acknowledged after the COMMIT that contains it, never before; the log is synced at every COMMIT.
2. A unit that fails undoes itself alone. A transaction or a COMMIT that fails undoes all of its units. The caller of
   each gets StoreUnavailable, and the next batch begins anew.
3. A patient unit joins the next commit, and has one of its own after PATIENCE_S without any. So what nobody waits for
   syncs the disk for itself only where nothing else does.
4. The event loop and the executor use the writer's connection in turn, never both at once: a batch is handed from one
   to the other. The event loop alone uses the reader's connection, and a thread of its own that of the lists.
"""

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, Final, Generic, ParamSpec, TypeVar

import msgspec

from payrelay.errors import Outdated, StoreError, StoreFault, StoreUnavailable
from payrelay.store.engine import sqlite_file
from payrelay.store.engine.database import LIST_TIMEOUT_S, Row, Statement, T, Unit
from payrelay.store.engine.list_reader import ListReader
from payrelay.store.engine.owner_lock import OwnerLock
from payrelay.store.engine.status import FailureCount, StoreStatus

BATCH_MAX: Final = 128
"""Units of one COMMIT: enough to share a sync, few enough that their statements block the loop for some 5 ms only."""
CLEARING_BUSY_S: Final = 0.1
"""How long the emptying of the log waits for other processes' reads, because all writes wait for it meanwhile."""
PATIENCE_S: Final = 0.02
"""How long a patient unit waits for the commit of others."""
WAITING_MAX: Final = 10_000
"""Units that may wait for the writer. More mean that the disk can't keep up, and waiting won't help."""

_STORAGE_TROUBLE: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_NOLFS,
    }
)
"""Primary result codes that concern the file or the disk, not the statement."""
_FAULTS: Final = {
    sqlite3.SQLITE_FULL: StoreFault.DISK_FULL,
    sqlite3.SQLITE_READONLY: StoreFault.READ_ONLY,
    sqlite3.SQLITE_BUSY: StoreFault.BUSY,
    sqlite3.SQLITE_LOCKED: StoreFault.BUSY,
    sqlite3.SQLITE_PROTOCOL: StoreFault.BUSY,
    sqlite3.SQLITE_IOERR: StoreFault.IO_ERROR,
    sqlite3.SQLITE_CORRUPT: StoreFault.IO_ERROR,
    sqlite3.SQLITE_CANTOPEN: StoreFault.IO_ERROR,
    sqlite3.SQLITE_NOTADB: StoreFault.IO_ERROR,
}

_decode_rows: Final = msgspec.json.Decoder(list[tuple[str | int | None, ...]]).decode

P = ParamSpec("P")
R = TypeVar("R")


class InlineExecutor(Executor):
    """Runs its tasks at once, in the calling thread: for simulations that must run equally each time."""

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Calls the function, and gives the finished result."""
        future: Future[R] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class _Job(msgspec.Struct, Generic[T], frozen=True):
    """A unit of work, and the future of its caller."""

    unit: Unit[T]
    waiter: "asyncio.Future[T]"


class _Outcome(msgspec.Struct, Generic[T], frozen=True):
    """The outcome of a job: a value, unless there is an error."""

    waiter: "asyncio.Future[T]"
    value: T | None
    error: BaseException | None


class _HalfDone(Exception):
    """A unit without a savepoint failed in the middle, so only the whole batch can be undone."""


class Sqlite:
    """The engine (see ``database.Database``). ``opening.open_database`` makes it, and checks the file first.

    Without ``list_timeout_s`` lists are read as everything else, for simulations that must run equally each time.

    One batch at a time is processed: its statements on the event loop, its COMMIT in the executor, its results on the
    event loop again. The statements take some 20 µs each and touch memory. On a thread of their own they took twice
    that, because Python's lock changes hands at every one of them. The slow steps are the sync of a COMMIT and the wait
    for another process's lock. They never block the loop.
    """

    def __init__(
        self,
        connections: sqlite_file.SqliteConnections,
        *,
        executor: Executor,
        loop: asyncio.AbstractEventLoop,
        lock: OwnerLock | None,
        busy_s: float,
        folder: Path | None = None,
        list_timeout_s: float | None = LIST_TIMEOUT_S,
    ) -> None:
        self._folder = folder
        self._writer = connections.writer
        self._reader = connections.reader
        self._list_connection = connections.lists
        self._lists: ListReader | None = None
        if list_timeout_s is not None:
            self._lists = ListReader(connections.lists, loop=loop, timeout_s=list_timeout_s)
        self._executor = executor
        self._loop = loop
        self._lock = lock
        self._busy_s = busy_s
        self._waiting: deque[_Job[Any]] = deque()  # each job knows its own type
        self._patient: list[_Job[Any]] = []
        self._patience: asyncio.TimerHandle | None = None
        self._clearing: list[asyncio.Future[bool]] = []
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._is_closed = False
        self._failures = FailureCount()

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Carries out a unit of work together with all that wait; see ``Database.write``."""
        with self._failures:
            if self._is_closed:
                raise StoreUnavailable("the database is closed")
            if len(self._waiting) >= WAITING_MAX:
                msg = "too many writes are waiting for the database"
                raise StoreUnavailable(msg, fault=StoreFault.NO_CONNECTION_FREE)
            waiter: asyncio.Future[T] = self._loop.create_future()
            if is_patient:
                self._patient.append(_Job(unit, waiter))
                self._patience = self._patience or self._loop.call_later(PATIENCE_S, self._end_patience)
            else:
                self._waiting.append(_Job(unit, waiter))
                self._wake()
            return await waiter

    async def read(self, unit: Unit[T]) -> T:
        """Carries out a reading unit at once, in the calling thread; see ``Database.read``."""
        with self._failures:
            if self._is_closed:
                raise StoreUnavailable("the database is closed")
            try:
                return _drive(self._reader, unit)
            except sqlite3.Error as error:
                raise _translated(error) from error

    async def read_page(self, unit: Unit[T]) -> T:
        """Carries out a reading unit on the thread of the lists; see ``Database.read_page``."""
        if self._lists is None:
            return await self.read(unit)
        with self._failures:
            if self._is_closed:
                raise StoreUnavailable("the database is closed")
            try:
                return await self._lists.read(lambda connection: _drive(connection, unit))
            except sqlite3.Error as error:
                raise _translated(error) from error

    async def clear_files(self, table: str) -> bool:  # noqa: ARG002 - one log has all tables
        """Copies the log into the file and empties it; see ``Database.clear_files``.

        The file itself has no deleted rows, because SQLite overwrites them (``secure_delete``).
        """
        if self._is_closed:
            raise StoreUnavailable("the database is closed")
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._clearing.append(waiter)
        self._wake()
        return await waiter

    async def ping(self) -> None:
        """Takes the write lock and releases it; see ``Database.ping``."""
        await self.write(_nothing())

    def status(self) -> StoreStatus:
        """Gives the state of the writer now; reads nothing of the file but how much room is beside it."""
        return StoreStatus(
            connections_max=1,
            connections_open=0 if self._is_closed else 1,
            connections_used=0 if self._is_idle.is_set() else 1,
            waiting=len(self._waiting),
            failed=self._failures.by_fault,
            disk_free_bytes=_free_bytes(self._folder),
        )

    async def close(self) -> None:
        """Commits the waiting units, then closes the file; see ``Database.close``."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._patience is not None:
            self._patience.cancel()
            self._end_patience()
        await self._is_idle.wait()
        self._reader.close()
        if self._lists is None:
            self._list_connection.close()
        else:
            await self._loop.run_in_executor(self._executor, self._lists.close)  # it ends what its thread reads
        # The last connection to close copies the log into the file and removes it; a reader could not.
        await self._loop.run_in_executor(self._executor, self._writer.close)
        self._executor.shutdown()
        if self._lock is not None:
            self._lock.release()

    def _end_patience(self) -> None:
        self._patience = None
        self._waiting.extend(self._patient)
        self._patient.clear()
        self._wake()

    def _wake(self) -> None:
        if self._is_idle.is_set():
            self._is_idle.clear()
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        """Begins a transaction for all waiting units; the writer is idle where there are none."""
        if self._clearing:
            clearings, self._clearing = self._clearing, []
            self._executor.submit(self._clear, clearings)
            return
        batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_MAX))]
        if not batch:
            self._is_idle.set()
            return
        batch += self._patient
        self._patient.clear()
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if _primary_code(error) == sqlite3.SQLITE_BUSY:
                self._executor.submit(self._wait_to_begin, batch)
            else:
                self._fail(batch, error)
        else:
            self._carry_out_all(batch)

    def _clear(self, waiters: list[asyncio.Future[bool]]) -> None:
        """Copies the log into the file and empties it, between two batches. Runs in the executor."""
        error: Exception | None = None
        is_empty = False
        try:
            self._writer.execute(f"PRAGMA busy_timeout = {int(CLEARING_BUSY_S * 1000)}")
            [[is_busy, *_]] = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            is_empty = not is_busy
        except sqlite3.Error as trouble:
            error = _translated(trouble)
        except Exception as mistake:  # noqa: BLE001 - all writes wait until the callers have heard of it
            error = mistake
        finally:
            self._writer.execute("PRAGMA busy_timeout = 0")
        self._loop.call_soon_threadsafe(self._deliver, [_Outcome(waiter, is_empty, error) for waiter in waiters])

    def _wait_to_begin(self, batch: list[_Job[Any]]) -> None:
        """Waits until another process releases the write lock. Runs in the executor."""
        try:
            self._writer.execute(f"PRAGMA busy_timeout = {int(self._busy_s * 1000)}")
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.execute("PRAGMA busy_timeout = 0")
        except sqlite3.Error as error:
            self._loop.call_soon_threadsafe(self._fail, batch, error)
        else:
            self._loop.call_soon_threadsafe(self._carry_out_all, batch)

    def _carry_out_all(self, batch: list[_Job[Any]]) -> None:
        """Carries out the units of a batch, and hands the batch to the executor to be committed."""
        try:
            outcomes = [self._carry_out(job) for job in batch if not job.waiter.cancelled()]
        except (sqlite3.Error, _HalfDone) as error:
            self._fail(batch, error)
        else:
            self._executor.submit(self._commit, batch, outcomes)

    def _carry_out(self, job: _Job[Any]) -> _Outcome[Any]:
        """Carries out one unit; raises only exceptions that end the batch.

        A whole statement needs no savepoint: where it fails, it has written nothing, and where it succeeds, the unit is
        done. That spares SQLite a copy of every page that is changed under a savepoint, a fifth of the work.
        """
        changes = self._writer.total_changes
        try:
            statement = next(job.unit)
            if statement.is_whole:
                statement = job.unit.send(rows_of(self._writer, statement))
        except StopIteration as end:
            return _Outcome(job.waiter, end.value, None)
        except Exception as error:  # whatever a unit raises concerns its caller alone
            if self._writer.total_changes != changes:
                raise _HalfDone(f"a unit failed after it had written: {error}") from error
            return self._failed(job, error)
        return self._carry_on(job, statement)

    def _carry_on(self, job: _Job[Any], statement: Statement) -> _Outcome[Any]:
        """Carries out the rest of a unit inside a savepoint; raises only exceptions that end the batch."""
        self._writer.execute("SAVEPOINT unit")
        try:
            outcome: _Outcome[Any] = _Outcome(job.waiter, _go_on(self._writer, job.unit, statement), None)
        except Exception as error:  # noqa: BLE001 - whatever a unit raises concerns its caller alone
            outcome = self._failed(job, error)
            self._writer.execute("ROLLBACK TO unit")
        self._writer.execute("RELEASE unit")
        return outcome

    def _failed(self, job: _Job[Any], error: Exception) -> _Outcome[Any]:
        """Gives the outcome of a failed unit; raises the error where it ends the batch."""
        if isinstance(error, sqlite3.Error):
            if _is_storage_trouble(error) or not self._writer.in_transaction:
                raise error
            return _Outcome(job.waiter, None, _translated(error))
        return _Outcome(job.waiter, None, error)

    def _commit(self, batch: list[_Job[Any]], outcomes: list[_Outcome[Any]]) -> None:
        """Commits a batch to disk. Runs in the executor."""
        try:
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._loop.call_soon_threadsafe(self._fail, batch, error)
        else:
            self._loop.call_soon_threadsafe(self._deliver, outcomes)

    def _fail(self, batch: list[_Job[Any]], error: Exception) -> None:
        """Undoes a batch, and gives each of its callers StoreUnavailable."""
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            self._writer.execute("PRAGMA busy_timeout = 0")
        except sqlite3.Error:
            # The next BEGIN fails then, and its units get StoreUnavailable here.
            pass
        reason = f"the database can't be written to: {error}"
        fault = _fault_of(error)
        self._deliver([_Outcome(job.waiter, None, StoreUnavailable(reason, fault=fault)) for job in batch])

    def _deliver(self, outcomes: list[_Outcome[Any]]) -> None:
        """Gives each caller the outcome of its unit, and goes on with the next batch; skips cancelled callers."""
        for outcome in outcomes:
            waiter = outcome.waiter
            if waiter.done():
                continue
            if outcome.error is None:
                waiter.set_result(outcome.value)
            else:
                waiter.set_exception(outcome.error)
        # Soon, not now: callers with a result may write again, and those writes join the next batch.
        self._loop.call_soon(self._begin)


def _drive(connection: sqlite3.Connection, unit: Unit[T]) -> T:
    try:
        statement = next(unit)
    except StopIteration as end:
        value: T = end.value
        return value
    return _go_on(connection, unit, statement)


def _go_on(connection: sqlite3.Connection, unit: Unit[T], statement: Statement) -> T:
    """Runs the statement that a unit has yielded, and all that it yields after it."""
    try:
        while True:
            statement = unit.send(rows_of(connection, statement))
    except StopIteration as end:
        value: T = end.value
        return value


def rows_of(connection: sqlite3.Connection, statement: Statement) -> list[Row]:
    """Runs a statement, and gives its rows. Raises sqlite3.Error."""
    parameters = statement.parameters
    steps = statement.query.sqlite
    if statement.query.is_for_each:
        connection.executemany(steps[0].text, map(steps[0].pick, _decode_rows(str(parameters[0]))))
        return []
    cursor = connection.execute(steps[0].text, steps[0].pick(parameters))
    if len(steps) == 1:
        return cursor.fetchall()
    if cursor.rowcount == 0:
        return []
    for step in steps[1:]:
        connection.execute(step.text, step.pick(parameters))
    return [()]


def _nothing() -> Unit[None]:
    yield from ()


def _free_bytes(folder: Path | None) -> int | None:
    if folder is None:
        return None
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _fault_of(error: Exception) -> StoreFault:
    return _FAULTS.get(_primary_code(error), StoreFault.OTHER)


def _is_storage_trouble(error: sqlite3.Error) -> bool:
    return _primary_code(error) in _STORAGE_TROUBLE


def _primary_code(error: Exception) -> int:
    # The low byte is the primary code; the bytes above it have details.
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _translated(error: sqlite3.Error) -> StoreError:
    """Gives our exception for one of SQLite's."""
    if _is_storage_trouble(error):
        return StoreUnavailable(f"the database can't be used: {error}", fault=_fault_of(error))
    if getattr(error, "sqlite_errorcode", 0) in {
        sqlite3.SQLITE_CONSTRAINT_UNIQUE,
        sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    }:
        return Outdated("another row took the place of this one")
    return StoreError(f"the database refused a statement: {error}")
