"""Backs a database up while servers use it: copies it, checks the copy, and says in a manifest what the copy is.

A backup is a folder: the copy, and the manifest beside it. The encryption key is in neither.
"""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from payrelay.backups.store.copied import Copied, Moved
from payrelay.backups.store.manifest import FORMAT, MANIFEST, POSTGRESQL_FILE, SQLITE_FILE
from payrelay.backups.store.postgresql import copy_postgresql
from payrelay.backups.store.sqlite import copy_sqlite
from payrelay.clock import Clock
from payrelay.core.database.backup_manifest import Manifest
from payrelay.core.database.database_url import embedded_file
from payrelay.core.moments import rfc3339
from payrelay.errors import StoreUnusable
from payrelay.store.engine.sealing import Seal, sync_directory
from payrelay.store.meta import require_opened

_FOLDER_MODE: Final = 0o700


class BackupSource(NamedTuple):
    """What is backed up.

    Attributes:
        url: the setting PAYRELAY_DATABASE_URL.
        seal: of the encryption key, which must open the copy.
        variables: the environment of PostgreSQL's programs.
    """

    url: str
    seal: Seal
    variables: Mapping[str, str]


async def back_up(source: BackupSource, folder: Path, clock: Clock, moved: Moved) -> Manifest:
    """Makes the folder, with a checked copy of the database and its manifest; whole or not at all. May be interrupted.

    Raises StoreUnusable where the database can't be copied, where the copy is damaged, or where the encryption key does
    not open it; StoreUnavailable; OSError where the folder is there already or can't be written.
    """
    with _whole_folder(folder) as draft:
        return await _made(source, draft, clock, moved)


@contextmanager
def _whole_folder(folder: Path) -> Iterator[Path]:
    """Gives a draft of the folder, which takes the folder's name when the context ends well, and else goes away."""
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    folder.mkdir(_FOLDER_MODE)  # takes the name, and fails where it is taken
    try:
        draft.mkdir(_FOLDER_MODE)
        yield draft
        sync_directory(draft)
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        folder.rmdir()
        raise
    sync_directory(folder.parent)


async def _made(source: BackupSource, folder: Path, clock: Clock, moved: Moved) -> Manifest:
    now_ms = clock.now_ms()
    database = embedded_file(source.url)
    path = folder / (POSTGRESQL_FILE if database is None else SQLITE_FILE)
    if database is None:
        copied = await copy_postgresql(source.url, path, moved, source.variables)
    else:
        copied = await copy_sqlite(Path(database), path, moved)
    _require_key(source.seal, copied)
    newest_ms = copied.newest_entry_ms
    manifest = Manifest(
        format=FORMAT,
        payrelay=metadata.version("payrelay"),
        made_at=rfc3339(now_ms),
        newest_entry_at=None if newest_ms is None else rfc3339(newest_ms),
        schema_version=copied.schema_version,
        file=path.name,
        bytes=path.stat().st_size,
        sha256=await asyncio.to_thread(_sha256, path),
        key_id=source.seal.key_id.hex(),
    )
    with (folder / MANIFEST).open("xb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return manifest


def _require_key(seal: Seal, copied: Copied) -> None:
    if copied.key_check is None:
        raise StoreUnusable("the check of the encryption key is missing from the database; it was never served from")
    require_opened(seal, copied.key_check)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
