"""The revocation list outside the database: files that outlive the loss of commits.

Rules:

1. A line is on disk before ``add`` returns True. Lines are only ever added; several processes may add at once.
2. A file has the lines of one year. ``forget`` removes a file at the end of the year after its own.
"""

import fcntl
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from payrelay.core.access.revocations import PURPOSE, Revocation, line_of, revocation_of
from payrelay.core.keyed_digest import DigestKey
from payrelay.runtime.database.folder_calls import FOLDER_WAIT_S, FolderCalls

REVOCATIONS: Final = "revocations-"
"""Of a file, before its year."""
_OPENED: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class ListedRevocations(NamedTuple):
    """What the files have: the revocations in their order, and how many lines nobody with the key wrote to the end."""

    revocations: list[Revocation]
    unreadable: int


class RevocationList:
    """Adds to the list in ``folder``, and reads it; with None as ``folder`` there is no list, and nothing is written.

    ``secret`` is the one of the audit chain. ``log`` gets what no answer can carry. Where the folder hangs, nothing
    waits for it longer than ``wait_s``.
    """

    def __init__(
        self,
        folder: Path | None,
        secret: bytes,
        log: FilteringBoundLogger | None = None,
        *,
        wait_s: float = FOLDER_WAIT_S,
    ) -> None:
        self.folder = folder
        self._calls = FolderCalls(wait_s)
        self.reapplied_in: int | None = None
        """The incarnation of the database in which this process has done the whole list again."""
        self.is_reapplying = False
        """Whether it is doing so now."""
        self._log = log
        self._key = DigestKey(secret, PURPOSE)

    async def add(self, *revocations: Revocation) -> bool:
        """Adds revocations, and syncs; False where there is a folder and it can't be written, which is logged.

        The database has them already: they hold even where this fails. May be repeated: a revocation may be in the
        list more than once.
        """
        if self.folder is None or not revocations:
            return True
        lines = b"".join(line_of(each, self._key) + b"\n" for each in revocations)
        newest_ms = max(each.at_ms for each in revocations)
        try:
            await self._calls.make(_append, self.folder / f"{REVOCATIONS}{_year(newest_ms)}", lines)
        except OSError as error:
            if self._log is not None:
                ids = [each.id for each in revocations]
                self._log.error("revocation_not_listed", ids=ids, folder=str(self.folder), reason=error.strerror)
            return False
        return True

    async def read(self) -> ListedRevocations:
        """Reads the whole list. Raises OSError where a file of it can't be read."""
        lines = [] if self.folder is None else await self._calls.make(_lines, self.folder)
        found = [revocation_of(line, self._key) for line in lines]
        revocations = [each for each in found if each is not None]
        return ListedRevocations(revocations, len(found) - len(revocations))

    async def forget(self, now_ms: int) -> None:
        """Removes the files of the years before the last one. Raises OSError."""
        if self.folder is not None:
            await self._calls.make(_forget, self.folder, _year(now_ms) - 1)


def _year(at_ms: int) -> int:
    return datetime.fromtimestamp(at_ms / 1000, UTC).year


def _append(path: Path, lines: bytes) -> None:
    is_new = not path.exists()
    if is_new:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, _OPENED, 0o600), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        # A line that a full disk cut off must not swallow this one.
        gap = b"" if size == 0 or file.read(1) == b"\n" else b"\n"
        file.write(gap + lines)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        for folder in (path.parent, path.parent.parent):
            _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(folder: Path) -> Iterable[Path]:
    return sorted(folder.glob(f"{REVOCATIONS}[0-9][0-9][0-9][0-9]"))


def _lines(folder: Path) -> list[bytes]:
    return [line for path in _files(folder) for line in path.read_bytes().split(b"\n") if line]


def _forget(folder: Path, first_year: int) -> None:
    for path in _files(folder):
        if int(path.name.removeprefix(REVOCATIONS)) < first_year:
            path.unlink(missing_ok=True)
