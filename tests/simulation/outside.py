"""What lies beside the database and outlives it: high-water marks and the list of revocations, in a folder of the life.

The folder is in memory alone. A process has the real readers and writers of both, over this folder in place of a disk.
"""

from collections.abc import Iterable
from pathlib import Path

from payrelay.core.access.revocations import PURPOSE, Revocation, line_of, revocation_of
from payrelay.core.database.marks import MARK_PURPOSE, Mark, read_mark, written_mark
from payrelay.core.keyed_digest import DigestKey
from payrelay.runtime.database.mark_files import FoundFile, MarkFiles
from payrelay.runtime.database.revocation_list import ListedRevocations, RevocationList


class Outside:
    """The folder: the marks by their names, each with the number of its writing, and the lines of the list."""

    def __init__(self) -> None:
        self.marks: dict[str, tuple[int, bytes]] = {}
        self.lines: list[bytes] = []
        self._written = 0

    def copy(self) -> "Outside":
        """Gives a copy as of now."""
        copied = Outside()
        copied.become(self)
        return copied

    def become(self, other: "Outside") -> None:
        """Takes the contents of another one."""
        self.marks, self.lines, self._written = dict(other.marks), list(other.lines), other._written

    def write(self, name: str, content: bytes) -> None:
        """Replaces a mark."""
        self._written += 1
        self.marks[name] = self._written, content


class VirtualMarkFiles(MarkFiles):
    """The marks of all processes, in the life's folder."""

    def __init__(self, outside: Outside, name: str, secret: bytes) -> None:
        super().__init__(None, secret)
        self._outside = outside
        self._own = name
        self._digest_key = DigestKey(secret, MARK_PURPOSE)

    async def read(self) -> list[FoundFile]:
        """Reads all but this process's, the newest first."""
        found = sorted(self._outside.marks.items(), key=lambda item: item[1][0], reverse=True)
        return [
            FoundFile(Path(name), number, read_mark(content, self._digest_key))
            for name, (number, content) in found
            if name != self._own
        ]

    async def write(self, mark: Mark) -> None:
        """Replaces this process's."""
        self._outside.write(self._own, written_mark(mark, self._digest_key))

    async def remove(self, files: Iterable[FoundFile]) -> None:
        """Removes those that nobody has replaced since."""
        for file in files:
            if self._outside.marks.get(file.path.name, (0, b""))[0] == file.inode:
                del self._outside.marks[file.path.name]


class VirtualRevocations(RevocationList):
    """The list of revocations, in the life's folder."""

    def __init__(self, outside: Outside, secret: bytes) -> None:
        super().__init__(None, secret)
        self._outside = outside
        self._digest_key = DigestKey(secret, PURPOSE)

    async def add(self, *revocations: Revocation) -> bool:
        """Adds lines."""
        self._outside.lines += [line_of(each, self._digest_key) for each in revocations]
        return True

    async def read(self) -> ListedRevocations:
        """Reads all lines."""
        found = [revocation_of(line, self._digest_key) for line in self._outside.lines]
        revocations = [each for each in found if each is not None]
        return ListedRevocations(revocations, len(found) - len(revocations))

    async def forget(self, now_ms: int) -> None:
        """Forgets nothing: a life is shorter than two years."""
