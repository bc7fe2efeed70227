"""The files with high-water marks, one for each process, in a folder of their own.

A file is replaced whole, by a rename, and nothing waits for the disk: what a loss of power leaves of it may be no mark,
and then shows nothing.
"""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from payrelay.core.database.marks import MARK_PURPOSE, Mark, ReadMark, read_mark, written_mark
from payrelay.core.keyed_digest import DigestKey
from payrelay.runtime.database.folder_calls import FOLDER_WAIT_S, FolderCalls
from payrelay.runtime.database.revocation_list import REVOCATIONS

FILES_MAX: Final = 1_000
"""Marks that are read, the newest: a service removes the older ones, and only crashes in a row leave many."""
FILE_BYTES_MAX: Final = 1_048_576
"""Several times what a mark has for the largest pool."""
_SUFFIX: Final = ".mark"
_DRAFT_SUFFIX: Final = ".draft"
_NAME_BYTES: Final = 8


class FoundFile(NamedTuple):
    """A file in the folder: what it holds, None for no mark, and the inode that tells whether it was replaced since."""

    path: Path
    inode: int
    content: ReadMark | None


_Found = list[FoundFile]


class MarkFiles:
    """Reads the marks of all processes, and writes that of this one; ``folder`` is None where none are kept.

    ``secret`` is the key of the audit chain, from which the key of the marks is made. Where the folder hangs, nothing
    waits for it longer than ``wait_s``.
    """

    def __init__(self, folder: Path | None, secret: bytes, *, wait_s: float = FOLDER_WAIT_S) -> None:
        self.folder = folder
        self._calls = FolderCalls(wait_s, stuck_max=1)
        self._key = DigestKey(secret, MARK_PURPOSE)
        self._name = secrets.token_hex(_NAME_BYTES) + _SUFFIX

    async def read(self) -> _Found:
        """Reads all files but this process's; none where there is no folder. Raises OSError."""
        return [] if self.folder is None else await self._calls.make(self._read, self.folder)

    async def write(self, mark: Mark) -> None:
        """Replaces this process's file at once or not at all, and makes the folder where it is missing.

        Does nothing where no files are kept. May be repeated. Raises OSError.
        """
        if self.folder is not None:
            await self._calls.make(_replace, self.folder, self._name, written_mark(mark, self._key))

    async def remove(self, files: Iterable[FoundFile]) -> None:
        """Removes files, unless a process has replaced them since they were read. Raises OSError."""
        if self.folder is not None:
            await self._calls.make(_remove, tuple(files))

    def _read(self, folder: Path) -> _Found:
        found = []
        paths = [path for path in _listed(folder) if path.name != self._name]
        for path in sorted(paths, key=_written_at, reverse=True)[:FILES_MAX]:
            with suppress(FileNotFoundError), path.open("rb") as file:
                content = file.read(FILE_BYTES_MAX)
                inode = os.fstat(file.fileno()).st_ino
                found.append(FoundFile(path, inode, read_mark(content, self._key)))
        return found


def remove_marks(folder: Path) -> None:
    """Removes a folder of marks with all marks and lists of revocations in it, if there is one. Raises OSError."""
    if folder.is_dir():
        for path in folder.iterdir():
            if path.suffix in {_SUFFIX, _DRAFT_SUFFIX} or path.name.startswith(REVOCATIONS):
                path.unlink(missing_ok=True)
        with suppress(OSError):  # something else is in it, which is not ours to remove
            folder.rmdir()


def _listed(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.suffix == _SUFFIX]
    except FileNotFoundError:
        return []


def _written_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _replace(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder / f"{name}{_DRAFT_SUFFIX}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        draft.replace(folder / name)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _remove(files: Iterable[FoundFile]) -> None:
    for file in files:
        with suppress(FileNotFoundError):
            if file.path.stat().st_ino == file.inode:
                file.path.unlink()
                file.path.with_name(f"{file.path.name}{_DRAFT_SUFFIX}").unlink(missing_ok=True)
