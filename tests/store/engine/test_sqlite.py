import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import pytest

from payrelay.clock import Clock
from payrelay.errors import Outdated, StoreFault, StoreUnavailable
from payrelay.store import open_database
from payrelay.store.engine import sqlite
from payrelay.store.engine.database import Statement, Unit
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.sqlite import InlineExecutor, Sqlite

P = ParamSpec("P")
R = TypeVar("R")

ADD = query("INSERT INTO meta (name, value) VALUES ($1, $2)")
COUNT = query("SELECT count(*) FROM meta")
BUSY_S = 0.05


class CountingExecutor(InlineExecutor):
    """Runs inline, and counts how often something was handed over."""

    count = 0

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Counts, then runs."""
        self.count += 1
        return super().submit(fn, *args, **kwargs)


def add(name: str, size: int = 0) -> Unit[None]:
    """Adds a name with a value of a size."""
    yield Statement(ADD, (name, bytes(size)))


def whole(text: Query) -> Unit[None]:
    """Runs one statement, and says that it is all there is."""
    yield Statement(text, ("whole", b""), is_whole=True)


def count() -> Unit[object]:
    """Counts the names."""
    rows = yield Statement(COUNT, ())
    return rows[0][0]


def size_of(path: Path) -> int:
    """Gives the size of a file."""
    return path.stat().st_size


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Names the file."""
    return tmp_path / "payrelay.db"


async def opened(path: Path, executor: Executor | None = None) -> Sqlite:
    """Opens the file with a short patience."""
    database = await open_database(f"sqlite:///{path}", clock=Clock(), owner=True, executor=executor, busy_s=BUSY_S)
    assert isinstance(database, Sqlite)
    return database


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Sqlite]:
    """Opens a new file."""
    it = await opened(path)
    yield it
    await it.close()


@pytest.fixture
def other(database: Sqlite, path: Path) -> Iterator[sqlite3.Connection]:
    """Opens the file as another process would."""
    del database
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


async def test_a_lock_of_another_process_is_unavailable(database: Sqlite, other: sqlite3.Connection) -> None:
    """A client gets 503 after a short wait, reads go on, and once the lock is gone all is well again."""
    other.execute("BEGIN IMMEDIATE")

    results = await asyncio.gather(database.write(add("a")), database.write(add("b")), return_exceptions=True)
    assert [type(result) for result in results] == [StoreUnavailable, StoreUnavailable]
    assert await database.read(count()) == 0
    other.execute("ROLLBACK")
    await database.write(add("a"))
    assert await database.read(count()) == 1


async def test_a_short_lock_of_another_process_is_waited_for(path: Path) -> None:
    """A command that creates a key while the service runs disturbs nobody."""
    database = await open_database(f"sqlite:///{path}", clock=Clock(), owner=True)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.ensure_future(database.write(add("a")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    other.execute("ROLLBACK")

    await writing
    other.close()
    await database.close()


async def test_readiness_sees_the_lock(database: Sqlite, other: sqlite3.Connection) -> None:
    """Ready means that the next charge can be stored."""
    await database.ping()
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable):
        await database.ping()


async def test_all_that_wait_share_one_commit(path: Path) -> None:
    """A sync takes as long for a hundred units as for one; that is where the throughput comes from."""
    executor = CountingExecutor()
    database = await opened(path, executor)
    await asyncio.gather(*[database.write(add(str(number))) for number in range(sqlite.BATCH_MAX)])

    assert executor.count == 1
    await database.close()


async def test_a_patient_unit_joins_the_commit_of_others(path: Path) -> None:
    """The event of a charge goes along with the next charge, which would wait for one sync more otherwise."""
    executor = CountingExecutor()
    database = await opened(path, executor)
    executor.count = 0
    patient = asyncio.create_task(database.write(add("patient"), is_patient=True))
    await asyncio.sleep(0)
    await database.write(add("hasty"))

    assert (executor.count, await database.read(count())) == (1, 2)
    await patient
    await database.close()


async def test_a_patient_unit_does_not_wait_for_others_for_long(database: Sqlite) -> None:
    """The last event of a busy hour is told at once, and not when the next customer comes."""
    async with asyncio.timeout(20):
        await database.write(add("patient"), is_patient=True)

    assert await database.read(count()) == 1


async def test_a_close_carries_out_what_is_patient(path: Path) -> None:
    """Otherwise its caller would wait for ever."""
    database = await opened(path)
    patient = asyncio.create_task(database.write(add("patient"), is_patient=True))
    await asyncio.sleep(0)
    await database.close()
    await patient

    reopened = await opened(path)
    assert await reopened.read(count()) == 1
    await reopened.close()


async def test_a_batch_has_a_maximum(path: Path) -> None:
    """The event loop must not be held up by the statements of a thousand units."""
    executor = CountingExecutor()
    database = await opened(path, executor)
    await asyncio.gather(*[database.write(add(str(number))) for number in range(sqlite.BATCH_MAX + 1)])

    assert executor.count == 2
    await database.close()


async def test_the_queue_has_a_maximum(database: Sqlite) -> None:
    """A disk that doesn't keep up is reported to the clients, not collected in memory."""
    writing = [asyncio.ensure_future(database.write(add(str(number)))) for number in range(sqlite.WAITING_MAX + 1)]
    results = await asyncio.gather(*writing, return_exceptions=True)

    assert [type(result) for result in results].count(StoreUnavailable) == 1
    assert database.status().failed == {StoreFault.NO_CONNECTION_FREE: 1}
    assert await database.read(count()) == sqlite.WAITING_MAX


async def test_the_writer_shows_who_waits(database: Sqlite) -> None:
    """A disk that gets slow shows as a queue, before anything fails."""
    assert database.status()[:4] == (1, 1, 0, 0)
    writing = asyncio.gather(*[database.write(add(str(number))) for number in range(3)])
    await asyncio.sleep(0)
    status = database.status()

    assert (status.connections_used, status.waiting) in {(1, 3), (1, 0)}
    assert status.disk_free_bytes is not None
    await writing


async def test_a_full_disk_fails_the_batch_alone(database: Sqlite) -> None:
    """Nothing of it was kept, and with room again the next one works."""
    pages = database._writer.execute("PRAGMA page_count").fetchone()[0]
    database._writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    results = await asyncio.gather(
        database.write(add("small")), database.write(add("large", 100_000)), return_exceptions=True
    )

    assert [type(result) for result in results] == [StoreUnavailable, StoreUnavailable]
    assert await database.read(count()) == 0
    assert database.status().failed == {StoreFault.DISK_FULL: 2}
    database._writer.execute("PRAGMA max_page_count = 1000000")
    await database.write(add("large", 100_000))
    assert await database.read(count()) == 1


@pytest.mark.story
def test_what_was_acknowledged_on_a_full_disk_is_there(path: Path) -> None:
    """The limit is met inside a COMMIT here; what was acknowledged before stays, and work goes on after it."""
    script = Path(__file__).with_name("writes_on_a_full_disk.py")
    command = [sys.executable, str(script), f"sqlite:///{path}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    before, _, _, _, all_of_them = output.split()
    assert int(before) > 0
    assert int(before) + 1 == int(all_of_them)


async def test_a_unit_that_fails_halfway_takes_the_batch_with_it(database: Sqlite) -> None:
    """It has no savepoint to go back to, so all is undone; never is a half of it stored."""
    halves = query("", sqlite=("INSERT INTO meta (name, value) VALUES ($1, $2)", "INSERT INTO history DEFAULT VALUES"))
    results = await asyncio.gather(database.write(add("a")), database.write(whole(halves)), return_exceptions=True)

    assert [type(result) for result in results] == [StoreUnavailable, StoreUnavailable]
    assert await database.read(count()) == 0
    await database.write(add("a"))
    assert await database.read(count()) == 1


async def test_a_unit_that_fails_before_it_wrote_fails_alone(database: Sqlite) -> None:
    """That is how a whole statement fails, if it ever does."""
    double = Query("", ADD.sqlite)
    results = await asyncio.gather(
        database.write(add("a")), database.write(whole(double)), database.write(whole(double)), return_exceptions=True
    )

    assert [type(result) for result in results] == [type(None), type(None), Outdated]
    assert await database.read(count()) == 2


async def test_a_connection_that_broke_is_unavailable(database: Sqlite) -> None:
    """Whatever SQLite says of a file that went away, nobody waits for ever."""
    database._writer.close()

    with pytest.raises(StoreUnavailable):
        await database.write(add("a"))


async def test_the_file_is_synced_at_every_commit(database: Sqlite) -> None:
    """An answer that a power cut could take back is not an answer."""
    assert database._writer.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert database._writer.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert database._writer.execute("PRAGMA foreign_keys").fetchone()[0] == 1


async def test_a_reader_cannot_write(database: Sqlite) -> None:
    """A unit that writes must go where it is committed."""
    with pytest.raises(StoreUnavailable, match="readonly"):
        await database.read(add("a"))


async def test_the_files_are_cleared_between_two_batches(database: Sqlite, path: Path) -> None:
    """What was deleted lies in the log until then; nothing that is written at the same time may be lost over it."""
    await database.write(add("secret", 10))
    written = [database.write(add(f"n-{number}")) for number in range(300)]
    cleared = [database.clear_files("meta") for _ in range(3)]
    assert await asyncio.gather(*cleared) == [True] * 3
    await asyncio.gather(*written)

    assert await database.read(count()) == 301
    assert await database.clear_files("meta")
    assert size_of(path.with_name(f"{path.name}-wal")) == 0


async def test_files_that_another_process_reads_are_not_said_to_be_cleared(database: Sqlite, path: Path) -> None:
    """A backup still needs the log; the next write must not wait for it."""
    await database.write(add("one"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM meta").fetchall()
    await database.write(add("two"))
    assert not await database.clear_files("meta")
    await database.write(add("three"))
    other.close()

    assert await database.clear_files("meta")


WRITES_ANEW: Final = """
import asyncio, resource, sys
from pathlib import Path
from payrelay.clock import Clock
from payrelay.store import open_database
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.shrinking import shrink_file

async def main():
    database = await open_database(f"sqlite:///{sys.argv[1]}", clock=Clock(), owner=True)
    add = query("INSERT INTO meta (name, value) VALUES ($1, zeroblob(1000000))")
    for number in range(120):
        await database.write(all_rows(Statement(add, (f"large {number}",))))
    await database.close()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shrink_file(Path(sys.argv[1]))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)

asyncio.run(main())
"""


@pytest.mark.process
def test_a_file_is_not_held_in_memory_while_it_is_written_anew(path: Path) -> None:
    """A shop's file may be larger than its machine's memory: the command would be killed each time."""
    ran = subprocess.run([sys.executable, "-c", WRITES_ANEW, str(path)], capture_output=True, text=True, check=True)

    assert int(ran.stdout) < 60_000, "KiB more than before, for a file of 120 MB"


async def test_a_mistake_of_ours_in_a_clearing_stops_no_write(path: Path) -> None:
    """All writes wait while the files are cleared; whatever ends that, its caller hears of it and they go on."""
    database = await opened(path)

    def fails(*_: object) -> None:
        raise LookupError("a mistake")

    database._writer.row_factory = fails
    async with asyncio.timeout(10):
        with pytest.raises(LookupError):
            await database.clear_files("meta")
    database._writer.row_factory = None

    await database.write(add("one"))
    assert await database.read(count()) == 1
    await database.close()


async def test_a_closed_database_clears_nothing(database: Sqlite) -> None:
    """Its files may be somebody else's by now."""
    await database.close()
    with pytest.raises(StoreUnavailable):
        await database.clear_files("meta")
