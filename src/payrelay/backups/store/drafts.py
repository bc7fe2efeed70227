"""A database that is being restored, of whichever kind: a draft, which takes the place of the database at the end."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from payrelay.backups.store import restored_postgresql, restored_sqlite
from payrelay.backups.store.copied import Moved
from payrelay.backups.store.in_transaction import InTransaction
from payrelay.backups.store.manifest import POSTGRESQL_FILE, SQLITE_FILE, Backup, check_copy
from payrelay.core.database.database_url import embedded_file
from payrelay.errors import StoreUnusable
from payrelay.store.engine.owner_lock import OwnerLock

_KINDS: Final = {SQLITE_FILE: "an embedded database", POSTGRESQL_FILE: "a PostgreSQL database"}


class Opened(NamedTuple):
    """A database in one transaction, whatever its schema is, and the sealed check of its encryption key."""

    database: InTransaction
    key_check: bytes | None


class Draft(Protocol):
    """A database that is being restored."""

    @property
    def name(self) -> str:
        """The name of the database whose place the draft takes."""

    @property
    def is_taken(self) -> bool:
        """Whether there is a database already."""

    @property
    def url(self) -> str:
        """The address of the draft, once it is loaded."""

    async def load(self, backup: Backup, moved: Moved) -> None:
        """Makes the draft of a backup, whose copy is compared with its manifest. Raises StoreError, OSError."""

    def changed(self) -> AbstractAsyncContextManager[Opened]:
        """Opens the draft in one transaction, which is on disk when the context has ended well. Raises StoreError."""

    def replaced(self) -> AbstractAsyncContextManager[Opened]:
        """Opens the database of before as ``changed`` does the draft."""

    async def take_place(self, moment: str) -> str | None:
        """Gives the draft the place of the database, at once; returns where the one of before is kept.

        ``moment`` is a time in digits, which its name gets. Raises StoreUnusable where somebody uses the database.
        """


@asynccontextmanager
async def draft_at(url: str, backup: Backup, variables: Mapping[str, str]) -> AsyncIterator[Draft]:
    """Gives the draft for a URL, and holds the place while the context is open; an unfinished draft goes away.

    Raises StoreUnusable where a process runs on the database, or the backup is of another kind of database.
    """
    name = embedded_file(url)
    file = POSTGRESQL_FILE if name is None else SQLITE_FILE
    if backup.copy.name != file:
        raise StoreUnusable(
            f"the backup is of {_KINDS[backup.copy.name]}, and PAYRELAY_DATABASE_URL names {_KINDS[file]}: restore it"
            " as what it was, and then copy it with payrelay db copy"
        )
    if name is None:
        draft = PostgresqlDraft(url, await restored_postgresql.place_of(url), variables)
        try:
            yield draft
        finally:
            if not draft.is_placed:
                await restored_postgresql.remove_draft(url)
        return
    target = Path(name)
    if not target.parent.is_dir():
        raise StoreUnusable(f"{target}: the directory {target.parent} does not exist")
    lock = OwnerLock.of_database(target)
    try:
        embedded = EmbeddedDraft(target)
        try:
            yield embedded
        finally:
            restored_sqlite.remove_draft(embedded.path)
    finally:
        lock.release()


class EmbeddedDraft:
    """The draft of an embedded database (see ``Draft``)."""

    def __init__(self, target: Path) -> None:
        self.path = restored_sqlite.draft_of(target)
        self.url = f"sqlite:///{self.path}"
        self.name = target.name
        self.is_taken = target.exists()
        self._target = target

    async def load(self, backup: Backup, moved: Moved) -> None:
        """Copies the file beside the database; see ``Draft.load``."""
        await _checked(backup, self.path, moved)

    @asynccontextmanager
    async def changed(self) -> AsyncIterator[Opened]:
        """Opens the draft; see ``Draft.changed``."""
        with restored_sqlite.changed(self.path) as found:
            yield Opened(*found)

    @asynccontextmanager
    async def replaced(self) -> AsyncIterator[Opened]:
        """Opens the database of before; see ``Draft.replaced``."""
        with restored_sqlite.changed(self._target) as found:
            yield Opened(*found)

    async def take_place(self, moment: str) -> str | None:
        """Renames the draft; see ``Draft.take_place``."""
        kept = self._target.with_name(f"{self._target.name}.replaced-{moment}")
        await asyncio.to_thread(restored_sqlite.take_place, self.path, self._target, kept)
        return str(kept) if self.is_taken else None


class PostgresqlDraft:
    """The draft of a PostgreSQL database (see ``Draft``)."""

    def __init__(self, url: str, place: restored_postgresql.Place, variables: Mapping[str, str]) -> None:
        self.url = restored_postgresql.url_within(url, restored_postgresql.DRAFT)
        self.name = place.database
        self.is_taken = place.is_taken
        self.is_placed = False
        self._url = url
        self._place = place
        self._variables = variables

    async def load(self, backup: Backup, moved: Moved) -> None:
        """Reads the dump into a schema of its own; see ``Draft.load``."""
        await _checked(backup, None, moved)
        await restored_postgresql.load_draft(self._url, backup.copy, moved, self._variables)

    @asynccontextmanager
    async def changed(self) -> AsyncIterator[Opened]:
        """Opens the draft; see ``Draft.changed``."""
        async with restored_postgresql.changed(self.url) as found:
            yield Opened(*found)

    @asynccontextmanager
    async def replaced(self) -> AsyncIterator[Opened]:
        """Opens the database of before; see ``Draft.replaced``."""
        async with restored_postgresql.changed(self._url) as found:
            yield Opened(*found)

    async def take_place(self, moment: str) -> str | None:
        """Renames the schemas; see ``Draft.take_place``."""
        kept = f"payrelay_replaced_{moment}"
        await restored_postgresql.take_place(self._url, self._place, kept)
        self.is_placed = True
        return f"the schema {kept} of {self.name}" if self.is_taken else None


async def _checked(backup: Backup, draft: Path | None, moved: Moved) -> None:
    stop = threading.Event()
    try:
        await asyncio.to_thread(check_copy, backup, draft, moved, stop)
    finally:
        stop.set()
