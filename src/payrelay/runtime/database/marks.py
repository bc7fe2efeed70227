"""Keeps the high-water mark of this process, in its memory and in a file, and compares marks with the database.

Rules:

1. A commit is noted only after it was acknowledged, and without a wait: a charge pays a few microseconds for it.
2. The file is written by a task of its own, at most once in WRITE_EVERY_S. What keeps it from being written is logged
   and counted, and holds nothing up.
3. Files of earlier processes are removed once all that they name was found, and this process's file names a commit that
   was made after that.
4. While the database is behind, the file stays as it was: later commits must not push what is missing out of it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.database.incarnations import DatabaseIdentity, is_recovered_since
from payrelay.core.database.marks import (
    OPERATIONS_MAX,
    Mark,
    MarkedAnchor,
    MarkedCheckout,
    MarkedOperation,
    MarkMemory,
    MarksShown,
    MarkStanding,
    Missing,
    incarnation_of,
    lost_since_ms,
    missing_incarnation,
    reason_of,
    standing_of,
)
from payrelay.core.payments.operation import Operation
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.runtime.database.mark_files import FoundFile, MarkFiles
from payrelay.store.database.marked_rows import MarkedRows

_ANY_TIME_MS: Final = 2**62
WRITE_EVERY_S: Final = 0.25
"""What was acknowledged after the newest write, and is lost together with the process, no file names."""


class Marks:
    """The mark of this process, and those of others in its folder.

    ``commits_max`` is how many commits the process can have under way at one moment.

    Attributes:
        failure: why the newest write failed, in words; None where it didn't.
    """

    def __init__(
        self,
        files: MarkFiles,
        rows: MarkedRows,
        lost_commits: LostCommits,
        clock: Clock,
        log: FilteringBoundLogger,
        *,
        commits_max: int = OPERATIONS_MAX,
    ) -> None:
        self._files = files
        self._rows = rows
        self._lost_commits = lost_commits
        self._clock = clock
        self._log = log
        self._memory = MarkMemory(commits_max)
        self._identity: DatabaseIdentity | None = None
        self._changed = asyncio.Event()
        self._covered: tuple[FoundFile, ...] = ()
        self._turn = asyncio.Lock()
        self.failure: str | None = None

    def note_operation(self, operation: Operation) -> None:
        """Notes that a version of an operation was acknowledged by the database."""
        noted = MarkedOperation(operation.id, operation.version, operation.chain, operation.updated_at_ms)
        self._memory.note_operation(noted)
        self._changed.set()

    def note_checkout(self, checkout: Checkout) -> None:
        """Notes that a version of a checkout was acknowledged by the database."""
        self._memory.note_checkout(MarkedCheckout(checkout.id, checkout.version, checkout.updated_at_ms))
        self._changed.set()

    def note_anchor(self, text: str, at_ms: int) -> None:
        """Notes that an anchor of the audit, named by its number and digest, is in the database."""
        self._memory.note_anchor(MarkedAnchor(text, at_ms))

    async def compare(self) -> bool:
        """Compares what this process was told of with the database; False where something is missing.

        The database is behind then. To be called when the database may be another one, before anything is written to
        it: later commits push the noted ones out. May be repeated. Raises StoreError.
        """
        identity = await self._lost_commits.refresh()
        self._forget_recovered(identity)
        missing = await self._rows.missing(self._mark_on(identity))
        if missing:
            self._lost_commits.fall_behind(identity.current.number, reason_of(missing))
        return self._lost_commits.behind is None

    async def compare_files(self) -> None:
        """Compares the marks in the folder with the database, which is behind where it lacks something that they name.

        For the start, before anything is recovered or served. A folder or a file that can't be read is logged, and
        shows nothing. Raises StoreError.
        """
        identity = self._identity = await self._lost_commits.identity()
        try:
            found = await self._files.read()
        except OSError as error:
            self._fail(error)
            return
        shown = await shown_by(found, identity, self._rows)
        for name in shown.unusable:
            self._log.error("mark_unusable", file=name)
        if shown.reason is not None:
            # A file of another database may have got here by mistake: the next start finds it again, or no more.
            is_lasting = bool(shown.missing)
            self._lost_commits.fall_behind(identity.current.number, shown.reason, is_lasting=is_lasting)
            return
        self._covered = tuple(found)

    async def shown(self) -> MarksShown:
        """Gives what the marks in the folder show of the database; changes nothing. Raises OSError, StoreError."""
        return await shown_by(await self._files.read(), await self._lost_commits.identity(), self._rows)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Writes the mark after commits while the context is open, and once more at its end."""
        writing = asyncio.create_task(self._keep_writing())
        try:
            yield
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing
            await self._write()

    async def _keep_writing(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            # A write that has begun goes on at a stop, and the last one waits for it.
            await asyncio.shield(self._write())
            await asyncio.sleep(WRITE_EVERY_S)

    async def _write(self) -> None:
        async with self._turn:
            identity = self._lost_commits.known
            if identity is None or self._lost_commits.behind is not None:
                return
            self._forget_recovered(identity)
            if self._memory.is_empty:
                return
            try:
                await self._files.write(self._mark_on(identity))
                covered, self._covered = self._covered, ()
                await self._files.remove(covered)
            except OSError as error:
                self._fail(error)
                return
            if self.failure is not None:
                self._log.info("mark_kept_again")
                self.failure = None

    def _fail(self, error: OSError) -> None:
        if self.failure is None:
            self._log.error("mark_not_kept", folder=str(self._files.folder), reason=error.strerror)
        self.failure = error.strerror or type(error).__name__

    def _forget_recovered(self, identity: DatabaseIdentity) -> None:
        """Begins anew where a recovery accounts for what was noted before it."""
        if self._identity is not None and is_recovered_since(self._identity, identity):
            self._memory.forget()
        self._identity = identity

    def _mark_on(self, identity: DatabaseIdentity) -> Mark:
        return self._memory.mark(identity.id, identity.current.number, self._clock.now_ms())


async def shown_by(found: list[FoundFile], identity: DatabaseIdentity, rows: MarkedRows) -> MarksShown:
    """Compares the marks in files with the rows of the database that has this identity. Raises StoreUnavailable."""
    missing: set[Missing] = set()
    written_ms, foreign, unusable = list[int](), list[str](), list[str]()
    for file in found:
        standing = MarkStanding.FORGED if file.content is None else standing_of(file.content, identity)
        if standing is MarkStanding.FOREIGN:
            foreign.append(str(file.path))
        elif standing is MarkStanding.FORGED:
            unusable.append(str(file.path))
        elif standing is MarkStanding.COUNTS and file.content is not None:
            mark = file.content.mark
            written_ms.append(mark.written_at_ms)
            missing |= {*await rows.missing(mark), *missing_incarnation(mark, identity)}
    oldest_first = tuple(sorted(missing, key=lambda each: (each.at_ms, each.name)))
    since_ms = lost_since_ms(await rows.newest_entry_ms(oldest_first[0].at_ms)) if oldest_first else None
    copied_ms = None
    if identity.current.is_moved:
        copied_ms = lost_since_ms(await rows.newest_entry_ms(_ANY_TIME_MS)) or identity.current.began_at_ms
    return MarksShown(
        read=len(written_ms),
        newest_at_ms=max(written_ms, default=None),
        missing=oldest_first,
        foreign=tuple(foreign),
        unusable=tuple(unusable),
        lost_since_ms=since_ms,
        copied_since_ms=copied_ms,
        incarnation=max((incarnation_of(each.content, identity) for each in found if each.content), default=0),
    )
