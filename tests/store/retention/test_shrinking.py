import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from tests.databases import sqlite_url

from payrelay.clock import Clock
from payrelay.errors import DatabaseMissing, StoreUnusable
from payrelay.store import open_database
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.shrinking import shrink_file
from payrelay.store.engine.sqlite_file import write_anew
from payrelay.store.statements.retention.clearing import RELEASE_PAGES

ADD: Final = query("INSERT INTO readings (merchant, subject, sealed, read_at_ms) VALUES ('m', $1, $2, 1)")
REMOVE: Final = query("DELETE FROM readings WHERE subject >= $1 RETURNING subject")
MEGABYTE: Final = 1_000_000


def added(number: int) -> Unit[None]:
    """Stores rows of 2 kB."""
    for each in range(number):
        yield Statement(ADD, (f"{each:05}", b"x" * 2_000))


async def fill_and_remove(database: Database) -> None:
    """Fills some 4 MB, and removes all of it but a row."""
    await database.write(added(2_000))
    await database.write(all_rows(Statement(REMOVE, ("00001",))))


def pragma(path: Path, name: str) -> int:
    """Reads a number of the file's header."""
    connection = sqlite3.connect(path)
    [[value]] = connection.execute(f"PRAGMA {name}")
    connection.close()
    return int(value)


async def test_a_new_file_gives_its_pages_back_a_few_at_a_time(tmp_path: Path) -> None:
    """What was cleared must leave the disk, and no charge may wait for a whole file to be written anew."""
    path = tmp_path / "payrelay.db"
    database = await open_database(sqlite_url(path), clock=Clock(), owner=True)
    await fill_and_remove(database)
    await database.clear_files("data_keys")
    before = path.stat().st_size
    for _ in range(40):
        await database.write(all_rows(Statement(RELEASE_PAGES, ())))
    await database.clear_files("data_keys")
    after = path.stat().st_size
    await database.close()

    assert before > 4 * MEGABYTE
    assert after < MEGABYTE


async def test_a_file_is_shrunk_at_once(tmp_path: Path) -> None:
    """Whoever needs the disk now needn't wait for the service; it goes on giving later pages back by itself."""
    path = tmp_path / "payrelay.db"
    database = await open_database(sqlite_url(path), clock=Clock(), owner=True)
    await fill_and_remove(database)
    await database.close()
    assert path.stat().st_size > 4 * MEGABYTE

    before, after = shrink_file(path)

    assert before > 4 * MEGABYTE
    assert after == path.stat().st_size < MEGABYTE
    assert pragma(path, "auto_vacuum") == 2
    database = await open_database(sqlite_url(path), clock=Clock(), owner=True)
    assert len(await database.read(all_rows(Statement(query("SELECT subject FROM readings"), ())))) == 1
    await database.close()


async def test_the_copy_of_the_data_lies_beside_the_file(tmp_path: Path) -> None:
    """The system's folder for temporary files may be too small for it, as in a container, or on another disk.

    The data of payments must not leave the disk on which the operator keeps them.
    """
    path = tmp_path / "o'hara" / "payrelay.db"
    path.parent.mkdir()
    database = await open_database(sqlite_url(path), clock=Clock(), owner=True)
    await database.write(added(2_000))
    await database.close()
    connection = sqlite3.connect(path, isolation_level=None)
    seen: set[Path] = set()

    def look() -> None:
        seen.update(file for file in open_files() if file.name.startswith("etilqs"))

    connection.set_progress_handler(look, 100)
    write_anew(connection)
    connection.close()

    assert {file.parent for file in seen} == {path.parent}
    assert path.stat().st_size > 4 * MEGABYTE


def open_files() -> Iterator[Path]:
    """Gives the files that this process has open."""
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            yield each.readlink()


async def test_a_running_service_is_left_alone(tmp_path: Path) -> None:
    """It would wait for the whole file to be written, and with it every charge."""
    path = tmp_path / "payrelay.db"
    database = await open_database(sqlite_url(path), clock=Clock(), owner=True)

    with pytest.raises(StoreUnusable):
        shrink_file(path)
    await database.close()


def test_no_file_is_made(tmp_path: Path) -> None:
    """A mistyped address must not look like an empty database that has been shrunk."""
    with pytest.raises(DatabaseMissing):
        shrink_file(tmp_path / "none.db")


def test_another_programs_file_is_left_alone(tmp_path: Path) -> None:
    """It is not ours to write anew."""
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE anything (x)")
    other.close()

    with pytest.raises(StoreUnusable, match="not a Payrelay database"):
        shrink_file(path)
