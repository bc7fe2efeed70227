"""An embedded database that is being restored: a draft, which takes the place of the database at the end."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from payrelay.backups.store import restored_sqlite
from payrelay.backups.store.copied import Moved
from payrelay.backups.store.in_transaction import InTransaction
from payrelay.backups.store.manifest import SQLITE_FILE, Backup, check_copy
from payrelay.core.database.database_url import embedded_file
from payrelay.errors import StoreUnusable
from payrelay.store.engine.owner_lock import OwnerLock


class Opened(NamedTuple):
    """A database in one transaction, whatever its schema is, and the sealed check of its encryption key."""

    database: InTransaction
    key_check: bytes | None


class Draft:
    """A database that is being restored.

    Attributes:
        name: the name of the database whose place it takes.
        is_taken: whether there is a database already.
        url: the address of the draft, once it is loaded.
    """

    def __init__(self, target: Path) -> None:
        self._path = restored_sqlite.draft_of(target)
        self._target = target
        self.url = f"sqlite:///{self._path}"
        self.name = target.name
        self.is_taken = target.exists()

    async def load(self, backup: Backup, moved: Moved) -> None:
        """Makes the draft of a backup, whose copy is compared with its manifest. Raises StoreError, OSError."""
        stop = threading.Event()
        try:
            await asyncio.to_thread(check_copy, backup, self._path, moved, stop)
        finally:
            stop.set()

    @asynccontextmanager
    async def changed(self) -> AsyncIterator[Opened]:
        """Opens the draft in one transaction, which is on disk when the context has ended well. Raises StoreError."""
        with restored_sqlite.changed(self._path) as found:
            yield Opened(*found)

    @asynccontextmanager
    async def replaced(self) -> AsyncIterator[Opened]:
        """Opens the database of before as ``changed`` does the draft."""
        with restored_sqlite.changed(self._target) as found:
            yield Opened(*found)

    async def take_place(self, moment: str) -> str | None:
        """Gives the draft the place of the database, at once; returns where the one of before is kept.

        ``moment`` is a time in digits, which its name gets. Raises StoreUnusable where somebody uses the database.
        """
        kept = self._target.with_name(f"{self._target.name}.replaced-{moment}")
        await asyncio.to_thread(restored_sqlite.take_place, self._path, self._target, kept)
        return str(kept) if self.is_taken else None

    def remove(self) -> None:
        """Removes it, where it took no place."""
        restored_sqlite.remove_draft(self._path)


@asynccontextmanager
async def draft_at(url: str, backup: Backup) -> AsyncIterator[Draft]:
    """Gives the draft for a URL, and holds the place while the context is open; an unfinished draft goes away.

    Raises StoreUnusable where a process runs on the database, and where that or the backup is PostgreSQL's.
    """
    name = embedded_file(url)
    if backup.copy.name != SQLITE_FILE:
        raise StoreUnusable(
            "the backup is of a PostgreSQL database: bring it back with pg_restore, and then run payrelay recover"
        )
    if name is None:
        raise StoreUnusable(
            "the backup is of an embedded database, and PAYRELAY_DATABASE_URL names a PostgreSQL database: restore it"
            " as what it was, and then copy it with payrelay db copy"
        )
    target = Path(name)
    if not target.parent.is_dir():
        raise StoreUnusable(f"{target}: the directory {target.parent} does not exist")
    lock = OwnerLock.of_database(target)
    try:
        draft = Draft(target)
        try:
            yield draft
        finally:
            draft.remove()
    finally:
        lock.release()
