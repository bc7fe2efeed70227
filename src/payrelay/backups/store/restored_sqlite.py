"""A backup of an embedded database on its way back: a draft beside the database, which takes its place at the end.

Until the draft takes the name of the database, with one rename, nothing is changed that a server would use. The
database that was there before keeps its content under another name.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from payrelay.backups.store.copied import KEY_CHECK
from payrelay.backups.store.in_transaction import InTransaction, in_sqlite
from payrelay.errors import StoreUnusable
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import sync_directory
from payrelay.store.engine.sqlite_file import require_ours

BUSY_S: Final = 1.0
"""How long the exchange waits for a command that is about to end."""
_LOG: Final = ("-wal", "-shm")
_JOURNALS: Final = (*_LOG, "-journal")


def draft_of(target: Path) -> Path:
    """Names the draft of a database, in the same folder; one that an interrupted restore has left is removed."""
    draft = target.with_name(f".{target.name}.restoring")
    remove_draft(draft)
    return draft


def remove_draft(draft: Path) -> None:
    """Removes a draft with what SQLite keeps beside it; may be repeated."""
    for suffix in ("", *_JOURNALS):
        draft.with_name(f"{draft.name}{suffix}").unlink(missing_ok=True)


@contextmanager
def changed(path: Path) -> Iterator[tuple[InTransaction, bytes | None]]:
    """Opens a file in one transaction, whatever its schema is; gives it with the sealed check of its encryption key.

    What was written is on disk when the context has ended well. Raises StoreUnusable for a file that is no database of
    ours.
    """
    try:
        with closing(_opened(path)) as connection:
            require_ours(connection, path)
            with in_sqlite(connection) as database:
                check = connection.execute(KEY_CHECK).fetchone()
                yield database, None if check is None else blob_of(check[0])
    except sqlite3.Error as error:
        raise StoreUnusable(f"{path}: the file can't be used: {error}") from error


def take_place(draft: Path, target: Path, kept: Path) -> None:
    """Gives the draft the name of the database, at once; the content of before stays under the name ``kept``.

    The caller holds the owner's lock. Raises StoreUnusable where another program has the database open, and where
    something of the draft is not in its file yet; OSError.
    """
    if any(draft.with_name(f"{draft.name}{suffix}").exists() for suffix in _JOURNALS):
        raise StoreUnusable(f"{draft}: something of it is not in the file yet")
    _sync(draft)
    if not target.exists():
        _set_aside_log(target, kept)
        _rename(draft, target)
        return
    for earlier in target.parent.glob(f"{target.name}.replaced-*"):
        if earlier.samefile(target):  # of a restore that was stopped just before its end
            earlier.unlink()
    kept.hardlink_to(target)
    try:
        with _alone(target) as is_readable:
            if not is_readable:
                _set_aside_log(target, kept)
            _rename(draft, target)
    except BaseException:
        if target.exists() and kept.samefile(target):
            kept.unlink()
        raise


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Holds a database alone, with everything that was committed in its one file; False for one that can't be read.

    Raises StoreUnusable where another program has it open.
    """
    connection = _opened(path)
    try:
        is_readable = _held(connection, path)
        yield is_readable
    finally:
        connection.close()


def _held(connection: sqlite3.Connection, path: Path) -> bool:
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        # Another program that has the file open would go on writing to the log of the old one, beside the new one.
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise StoreUnusable(f"{path}: another program has the database open; nothing was restored") from error
        return False
    return bool(mode == "delete")


def _set_aside_log(target: Path, kept: Path) -> None:
    """Takes away what belongs to a file that is gone or unreadable, and would be read into the new one."""
    for suffix in _JOURNALS:
        with suppress(FileNotFoundError):
            target.with_name(f"{target.name}{suffix}").rename(kept.with_name(f"{kept.name}{suffix}"))


def _rename(draft: Path, target: Path) -> None:
    draft.rename(target)
    sync_directory(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=rw", uri=True, timeout=BUSY_S, isolation_level=None
    )
