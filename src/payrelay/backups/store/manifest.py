"""What a backup is: the manifest beside the copy, and the check that the copy is the one that the manifest tells of."""

import hashlib
import os
import threading
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from payrelay.backups.store.copied import Moved
from payrelay.core.database.backup_manifest import Manifest
from payrelay.core.moments import moment_of
from payrelay.errors import StoreUnusable

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SQLITE_FILE: Final = "payrelay.db"
POSTGRESQL_FILE: Final = "payrelay.dump"
"""What ``pg_restore`` reads."""
MANIFEST_BYTES_MAX: Final = 65_536
"""A manifest has some 400."""
_CHUNK_BYTES: Final = 4 * 1024 * 1024
_SYNC_EVERY_CHUNKS: Final = 8
"""The system writes at most so much at once, so that memory stays flat."""
_FILE_MODE: Final = 0o600


class Backup(NamedTuple):
    """A backup whose manifest was read.

    Attributes:
        copy: the file of the copy.
        manifest: what it should be.
        made_at_ms: when the backup began, in ms since 1970, UTC.
    """

    copy: Path
    manifest: Manifest
    made_at_ms: int


class _Stopped(Exception):
    """Whoever waited waits no more."""


class _Format(msgspec.Struct):
    format: int


def read_backup(folder: Path) -> Backup:
    """Reads the manifest of a backup, and finds its copy.

    Raises StoreUnusable where the folder is no whole backup, or one of a later version of Payrelay.
    """
    try:
        with (folder / MANIFEST).open("rb") as file:
            text = file.read(MANIFEST_BYTES_MAX)
        number = msgspec.json.decode(text, type=_Format).format
        if number > FORMAT:
            raise StoreUnusable(f"{folder}: a newer Payrelay made this backup; install that version")
        manifest = msgspec.json.decode(text, type=Manifest)
        made_at_ms = moment_of(manifest.made_at)
    except OSError as error:
        raise StoreUnusable(f"{folder}: this is no backup: {MANIFEST} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise StoreUnusable(f"{folder}: {MANIFEST} is not whole: {error}") from error
    if manifest.file not in {SQLITE_FILE, POSTGRESQL_FILE}:
        raise StoreUnusable(f"{folder}: {MANIFEST} names a copy that no version of Payrelay makes")
    return Backup(folder / manifest.file, manifest, made_at_ms)


def check_copy(backup: Backup, draft: Path, moved: Moved, stop: threading.Event) -> None:
    """Reads the copy once, compares it with its manifest, and writes it to ``draft``.

    Raises StoreUnusable where the copy is not the one that was made; OSError where a file can't be read or written.
    """
    manifest, digest, size = backup.manifest, hashlib.sha256(), 0
    total_mb = manifest.bytes // 1_000_000
    with backup.copy.open("rb") as source, _written(draft) as target:
        while chunk := source.read(_CHUNK_BYTES):
            if stop.is_set():
                raise _Stopped
            digest.update(chunk)
            size += len(chunk)
            target.write(chunk)
            if (size // _CHUNK_BYTES) % _SYNC_EVERY_CHUNKS == 0:
                os.fdatasync(target.fileno())
            moved(size // 1_000_000, max(total_mb, size // 1_000_000))
        target.flush()
        os.fsync(target.fileno())
    if (size, digest.hexdigest()) != (manifest.bytes, manifest.sha256):
        raise StoreUnusable(f"{backup.copy}: the copy is not whole: it is not the one that {MANIFEST} tells of")


def _written(draft: Path) -> BinaryIO:
    return os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE), "wb")
