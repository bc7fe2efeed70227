import fcntl
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.databases import sqlite_url

from payrelay.clock import Clock
from payrelay.errors import StoreUnavailable, StoreUnusable
from payrelay.store import open_database
from payrelay.store.engine.sqlite_file import Tuning, open_file

OPEN = (
    "import sys; from pathlib import Path; from payrelay.clock import Clock; "
    "from payrelay.store.engine import sqlite_file; "
)
NOBODY = 65534


def close(path: Path) -> None:
    """Opens and closes a file; the writer last, for only it can clear the log away."""
    for connection in reversed(open_file(path, clock=Clock(), busy_s=0.05)):
        connection.close()


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """Gives a folder to which this user can't write, even as root: root acts as nobody meanwhile."""
    folder = Path(tempfile.mkdtemp(prefix="payrelay-"))
    file = folder / "payrelay.db"
    close(file)
    file.chmod(0o444)
    folder.chmod(0o555)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(NOBODY)
    yield folder
    if was_root:
        os.seteuid(0)
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """Names of customers' orders stand in it in clear."""
    close(tmp_path / "payrelay.db")

    assert (tmp_path / "payrelay.db").stat().st_mode & 0o777 == 0o600


def test_a_file_is_opened_again(tmp_path: Path) -> None:
    """The second start finds nothing to migrate."""
    close(tmp_path / "payrelay.db")
    close(tmp_path / "payrelay.db")


def test_the_pages_that_sqlite_keeps_take_little_memory(tmp_path: Path) -> None:
    """Each connection fills its cache under load, and three of 32 MB made up half of the service's memory."""
    connections = open_file(tmp_path / "payrelay.db", clock=Clock())
    kib = [-connection.execute("PRAGMA cache_size").fetchone()[0] for connection in connections]
    for connection in reversed(connections):
        connection.close()

    assert sum(kib) <= 6 * 1024


def test_a_batch_that_changes_more_than_is_kept_is_whole_and_one_commit(tmp_path: Path) -> None:
    """Pages without room are written before the COMMIT; a reader, and a start after a kill, see none of them."""
    path = tmp_path / "payrelay.db"
    connections = open_file(path, clock=Clock(), tuning=Tuning(writer_kib=64))
    writer, reader = connections.writer, connections.reader
    writer.execute("CREATE TABLE wide (number INTEGER PRIMARY KEY, text BLOB) STRICT")
    writer.execute("BEGIN IMMEDIATE")
    writer.executemany("INSERT INTO wide VALUES (?, randomblob(3000))", ((number,) for number in range(200)))
    log_bytes = path.with_name("payrelay.db-wal").stat().st_size
    seen = [reader.execute("SELECT count(*) FROM wide").fetchone()[0]]
    killed = tmp_path / "killed.db"
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{path}{suffix}", f"{killed}{suffix}")
    writer.execute("COMMIT")
    seen += [reader.execute("SELECT count(*) FROM wide").fetchone()[0]]
    for connection in reversed(connections):
        connection.close()

    assert log_bytes > 400_000
    assert [*seen, *sqlite3.connect(killed).execute("SELECT count(*) FROM wide").fetchone()] == [0, 200, 0]


def test_a_name_with_odd_characters_is_only_a_name(tmp_path: Path) -> None:
    """A question mark begins the options of an SQLite URI; here it does not."""
    close(tmp_path / "a b?mode=memory#%41.db")

    assert (tmp_path / "a b?mode=memory#%41.db").stat().st_size > 0


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A mistyped path must not become a new, empty database elsewhere."""
    with pytest.raises(StoreUnusable, match=f"the directory {tmp_path}/nowhere does not exist"):
        close(tmp_path / "nowhere" / "payrelay.db")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    """Said in plain words."""
    with pytest.raises(StoreUnusable, match="this is a directory"):
        close(tmp_path)


def test_a_folder_that_is_read_only_is_named(closed_folder: Path) -> None:
    """SQLite needs to make its log beside the file."""
    with pytest.raises(StoreUnusable, match=f"the directory {closed_folder} can't be written to"):
        close(closed_folder / "payrelay.db")


def test_a_file_that_is_read_only_is_named(closed_folder: Path) -> None:
    """A copy from a backup often is."""
    user = os.geteuid()
    if user == NOBODY:
        os.seteuid(0)
    closed_folder.chmod(0o777)
    if user == NOBODY:
        os.seteuid(NOBODY)

    with pytest.raises(StoreUnusable, match="can't be read and written by this user"):
        close(closed_folder / "payrelay.db")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """And left as it is."""
    content = b"This is a letter. " * 100
    (tmp_path / "letter").write_bytes(content)

    with pytest.raises(StoreUnusable, match="not a SQLite database"):
        close(tmp_path / "letter")
    assert (tmp_path / "letter").read_bytes() == content


def test_a_database_of_others_is_refused(tmp_path: Path) -> None:
    """Our tables must not appear in somebody's address book."""
    connection = sqlite3.connect(tmp_path / "book.db")
    connection.execute("CREATE TABLE addresses (name TEXT)")
    connection.close()
    before = (tmp_path / "book.db").read_bytes()

    with pytest.raises(StoreUnusable, match="not a Payrelay database"):
        close(tmp_path / "book.db")
    assert (tmp_path / "book.db").read_bytes() == before


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    """Half a file must not be taken for a whole one."""
    path = tmp_path / "payrelay.db"
    close(path)
    path.write_bytes(path.read_bytes()[:100] + b"\xa5" * 8_000)

    with pytest.raises(StoreUnusable, match=str(path)):
        close(path)


def test_a_locked_file_is_unavailable(tmp_path: Path) -> None:
    """Another one is migrating it, or copies it; try again."""
    path = tmp_path / "payrelay.db"
    close(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable, match="locked"):
        close(path)
    other.close()


@pytest.mark.process
def test_a_migration_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """A start that was stopped in the middle is simply repeated."""
    path = tmp_path / "payrelay.db"
    code = OPEN + "sqlite_file._apply = lambda c, m, n: (c.execute('CREATE TABLE half (x)'), sys.exit(7)); "
    code += "sqlite_file.open_file(Path(sys.argv[1]), clock=Clock())"
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 7

    close(path)
    tables = [row[0] for row in sqlite3.connect(path).execute("SELECT name FROM sqlite_schema")]
    assert "half" not in tables
    assert "operations" in tables


@pytest.mark.story
def test_processes_that_start_at_once_all_succeed(tmp_path: Path) -> None:
    """The service and a command, both the first to come."""
    code = OPEN + "sqlite_file.open_file(Path(sys.argv[1]), clock=Clock())"
    command = [sys.executable, "-c", code, str(tmp_path / "payrelay.db")]
    processes = [subprocess.Popen(command) for _ in range(4)]

    assert [process.wait() for process in processes] == [0, 0, 0, 0]


async def test_a_second_look_at_the_file_leaves_the_locks_of_the_process(tmp_path: Path) -> None:
    """Without them another program takes itself for the only one when it ends, and removes the log with its commits."""
    path = tmp_path / "payrelay.db"
    first = await open_database(sqlite_url(path), clock=Clock(), owner=True)
    second = await open_database(sqlite_url(path), clock=Clock(), owner=False)
    await second.close()
    descriptor = os.open(path, os.O_RDWR)
    # Locks of a descriptor are compared with those of the process, as another program's would be.
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    answered = struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    os.close(descriptor)
    await first.close()

    assert answered[0] == fcntl.F_RDLCK
