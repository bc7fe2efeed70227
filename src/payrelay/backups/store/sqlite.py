"""The copy of an embedded database while a server writes to it.

SQLite's own backup begins anew whenever another process writes, so under load it never ends. It does not where its
source keeps one reading transaction open: then every page is as it was when that transaction began. The server goes on
writing to the log meanwhile, which can't be emptied until the copy is finished.
"""

import asyncio
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

from payrelay.backups.store.copied import KEY_CHECK, NEWEST_ENTRY, SCHEMA_VERSION, Copied, Moved
from payrelay.backups.store.priority import step_back
from payrelay.errors import StoreUnusable
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sqlite_file import require_ours

STEP_PAGES: Final = 1_024
"""4 MB: so much is copied at a time. Then the copy rests for as long, and the server has the disk to itself."""
SYNC_EVERY_STEPS: Final = 8
"""The system writes at most so much at once, because the server's own syncs wait for it."""
BUSY_S: Final = 10.0
"""How long the beginning waits for another process that opens or closes the database."""
_CHECKED_INSTRUCTIONS: Final = 100_000
"""How often the check of the copy looks whether it was interrupted: some thousand times a second."""
_FILE_MODE: Final = 0o600


class _Interrupted(Exception):
    """Whoever waited for the copy waits no more."""


async def copy_sqlite(source: Path, target: Path, moved: Moved) -> Copied:
    """Copies the database as it is at the beginning, and checks every page of the copy.

    The server goes on meanwhile. A caller that is cancelled ends the copy; the target is left unfinished then.

    Raises StoreUnusable where the source is no database of ours or can't be read, and where the copy is damaged. Raises
    OSError where the target can't be written.
    """
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_copy, source, target, moved, stop)
    finally:
        stop.set()


def _copy(source: Path, target: Path, moved: Moved, stop: threading.Event) -> Copied:
    step_back(threading.get_native_id())
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE))
    try:
        reader = _opened(source, "ro")
        try:
            require_ours(reader, source)
            reader.execute("BEGIN")
            reader.execute(SCHEMA_VERSION).fetchone()  # the reading transaction begins with the first read
            _copy_pages(reader, target, moved, stop)
        finally:
            reader.close()
        return _checked(target, stop)
    except sqlite3.Error as error:
        raise StoreUnusable(f"{source}: the database can't be copied: {error}") from error


def _copy_pages(reader: sqlite3.Connection, target: Path, moved: Moved, stop: threading.Event) -> None:
    writer = _opened(target, "rw")
    descriptor = os.open(target, os.O_RDONLY)
    page_bytes: int = reader.execute("PRAGMA page_size").fetchone()[0]
    steps, began_s = 0, time.monotonic()

    def rest(_status: int, remaining: int, total: int) -> None:
        nonlocal steps, began_s
        if stop.is_set():
            raise _Interrupted
        steps += 1
        if steps % SYNC_EVERY_STEPS == 0:
            os.fdatasync(descriptor)
        moved((total - remaining) * page_bytes // 1_000_000, total * page_bytes // 1_000_000)
        stop.wait(time.monotonic() - began_s)
        began_s = time.monotonic()

    try:
        # Nobody else reads the target, and an interrupted copy is thrown away.
        writer.execute("PRAGMA journal_mode = OFF")
        writer.execute("PRAGMA synchronous = OFF")
        reader.backup(writer, pages=STEP_PAGES, progress=rest)
    finally:
        writer.close()
        os.fsync(descriptor)
        os.close(descriptor)


def _checked(path: Path, stop: threading.Event) -> Copied:
    """Reads every page of the copy and every index; raises StoreUnusable for the first fault."""
    copy = _opened(path, "ro&immutable=1")  # without a log of its own, of which an empty file would be left
    try:
        copy.set_progress_handler(stop.is_set, _CHECKED_INSTRUCTIONS)
        fault: str = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if fault != "ok":
            raise StoreUnusable(f"the copy is damaged, and so is probably the database: {fault}")
        check = copy.execute(KEY_CHECK).fetchone()
        return Copied(
            schema_version=copy.execute(SCHEMA_VERSION).fetchone()[0],
            newest_entry_ms=copy.execute(NEWEST_ENTRY).fetchone()[0],
            key_check=None if check is None else blob_of(check[0]),
        )
    finally:
        copy.close()


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}", uri=True, timeout=BUSY_S, isolation_level=None
    )
