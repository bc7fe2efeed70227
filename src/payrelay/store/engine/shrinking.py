"""Writes the file of an embedded database anew, so that it has no free pages, nor free room in its pages."""

import shutil
import sqlite3
from pathlib import Path
from typing import Final

from payrelay.errors import StoreUnusable
from payrelay.store.engine import sqlite_file
from payrelay.store.engine.owner_lock import OwnerLock

_ROOM: Final = 2
"""SQLite writes the file anew beside itself, and then, through its log, over the old one."""


def shrink_file(path: Path) -> tuple[int, int]:
    """Writes the file anew; gives its bytes before and after. May be interrupted: the file is as it was then.

    Raises StoreUnusable where a service runs on it, where the disk has not room for the data twice, where it is no
    database of Payrelay's.
    """
    sqlite_file.require_there(path)
    lock = OwnerLock.of_database(path)
    try:
        before = path.stat().st_size
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            sqlite_file.require_ours(connection, path)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            _require_room(connection, path)
            connection.execute("PRAGMA secure_delete = ON")
            sqlite_file.write_anew(connection)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise StoreUnusable(f"{path}: the file can't be written anew: {error}") from error
        finally:
            connection.close()
        return before, path.stat().st_size
    finally:
        lock.release()


def _require_room(connection: sqlite3.Connection, path: Path) -> None:
    [[pages], [free], [size]] = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
    )
    needed, there = _ROOM * (pages - free) * size, shutil.disk_usage(path.resolve().parent).free
    if there < needed:
        raise StoreUnusable(
            f"{path}: {needed // 1_000_000 + 1} MB of free disk are needed beside the file, and there are"
            f" {there // 1_000_000} MB"
        )
