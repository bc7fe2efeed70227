"""The copy of an embedded database beside the server that writes to it."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Final

import pytest
from tests.databases import sqlite_url

from payrelay.backups.store.sqlite import STEP_PAGES, copy_sqlite
from payrelay.errors import StoreUnusable

VALUE_BYTES: Final = 4_000
"""About one page a row."""
ROWS: Final = STEP_PAGES * 3
"""Enough for several steps, between which others write."""


def fill(path: Path, rows: int = ROWS) -> sqlite3.Connection:
    """Makes a database with so many rows, and gives the connection of a server that goes on writing."""
    sqlite_url(path)
    server = sqlite3.connect(path, isolation_level=None)
    server.execute("BEGIN")
    for number in range(rows):
        server.execute("INSERT INTO meta (name, value) VALUES (?, randomblob(?))", (f"row {number}", VALUE_BYTES))
    server.execute("COMMIT")
    return server


def rows_of(path: Path) -> int:
    """Counts the rows of a copy that is not opened for writing."""
    copy = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        number: int = copy.execute("SELECT count(*) FROM meta").fetchone()[0]
    finally:
        copy.close()
    return number


async def test_it_ends_although_others_write_all_the_time(tmp_path: Path) -> None:
    """SQLite's own backup begins anew at every write of another process: under load it would never end."""
    server, steps = fill(tmp_path / "a.db"), 0

    def write(_done: int, _total: int | None) -> None:
        nonlocal steps
        steps += 1
        assert steps < ROWS
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("INSERT INTO meta (name, value) VALUES (?, randomblob(?))", (f"late {steps}", VALUE_BYTES))
        other.close()

    await copy_sqlite(tmp_path / "a.db", tmp_path / "b.db", write)

    assert steps > ROWS // STEP_PAGES
    assert server.execute("SELECT count(*) FROM meta").fetchone()[0] == ROWS + steps


async def test_the_copy_is_of_the_moment_at_which_it_began(tmp_path: Path) -> None:
    """Half of a transaction in a backup would be a state that never was."""
    fill(tmp_path / "a.db").execute("INSERT INTO meta (name, value) VALUES ('changed', x'00')")

    def change(_done: int, _total: int | None) -> None:
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN")
        other.execute("DELETE FROM meta WHERE name <> 'changed'")
        other.execute("UPDATE meta SET value = x'01'")
        other.execute("COMMIT")
        other.close()

    await copy_sqlite(tmp_path / "a.db", tmp_path / "b.db", change)

    copy = sqlite3.connect(tmp_path / "b.db")
    assert rows_of(tmp_path / "b.db") == ROWS + 1
    assert copy.execute("SELECT value FROM meta WHERE name = 'changed'").fetchone() == (b"\0",)
    copy.close()


async def test_it_tells_how_far_it_is(tmp_path: Path) -> None:
    """A large copy takes a minute, and whoever waits must see that it moves, and when it has come to the end."""
    fill(tmp_path / "a.db")
    told: list[tuple[int, int | None]] = []
    await copy_sqlite(tmp_path / "a.db", tmp_path / "b.db", lambda *moved: told.append(moved))

    size = (tmp_path / "a.db").stat().st_size // 1_000_000
    assert told == sorted(told)
    assert told[-1] == (size, size)


async def test_it_says_what_it_is_a_copy_of(tmp_path: Path) -> None:
    """The manifest names the schema and the newest entry, read from the copy itself."""
    server = fill(tmp_path / "a.db", 1)
    copied = await copy_sqlite(tmp_path / "a.db", tmp_path / "b.db", lambda *_: None)

    newest = server.execute("SELECT max(number) FROM schema_version").fetchone()[0]
    assert (copied.schema_version, copied.newest_entry_ms, copied.key_check) == (newest, None, None)


async def test_nobody_else_can_read_it_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    """It holds what the database holds. A log of its own beside it would look like a part of it."""
    fill(tmp_path / "a.db", 1).close()
    (tmp_path / "copies").mkdir()
    await copy_sqlite(tmp_path / "a.db", tmp_path / "copies" / "b.db", lambda *_: None)

    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["b.db"]
    assert (tmp_path / "copies" / "b.db").stat().st_mode & 0o777 == 0o600


async def test_a_damaged_database_gives_no_backup(tmp_path: Path) -> None:
    """A copy of damage would be found on the day on which it is needed."""
    server = fill(tmp_path / "a.db")
    server.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    server.close()
    with (tmp_path / "a.db").open("r+b") as file:
        file.seek((tmp_path / "a.db").stat().st_size // 2)
        file.write(bytes(4_096 * 8))

    with pytest.raises(StoreUnusable, match="damaged"):
        await copy_sqlite(tmp_path / "a.db", tmp_path / "b.db", lambda *_: None)


async def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    """A setting that points elsewhere must not be found out at the restore."""
    other = sqlite3.connect(tmp_path / "a.db")
    other.execute("CREATE TABLE strange (id)")
    other.commit()
    (tmp_path / "c.db").write_bytes(b"no database at all, but long enough for a header" * 100)

    with pytest.raises(StoreUnusable, match="not a Payrelay database"):
        await copy_sqlite(tmp_path / "a.db", tmp_path / "b.db", lambda *_: None)
    with pytest.raises(StoreUnusable, match=r"c\.db: the database can't be copied: file is not a database"):
        await copy_sqlite(tmp_path / "c.db", tmp_path / "d.db", lambda *_: None)


async def test_whoever_waits_no_more_ends_it(tmp_path: Path) -> None:
    """After Ctrl-C nothing goes on in the background, on a disk that serves payments."""
    fill(tmp_path / "a.db")
    steps, loop = 0, asyncio.get_running_loop()

    def interrupt(_done: int, _total: int | None) -> None:
        nonlocal steps
        steps += 1
        loop.call_soon_threadsafe(copying.cancel)

    copying = asyncio.create_task(copy_sqlite(tmp_path / "a.db", tmp_path / "b.db", interrupt))
    with pytest.raises(asyncio.CancelledError):
        await copying
    await loop.shutdown_default_executor()

    assert steps < ROWS // STEP_PAGES
