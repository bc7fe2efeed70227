"""High-water marks: the newest commits that a process was told of, kept outside the database.

Rules:

1. A mark names a commit only after that commit was acknowledged. So a crash never leaves a mark that names more than
   the database has.
2. A restored or promoted database is a prefix of the order of commits. Two commits may be acknowledged in the other
   order than they were made, so a mark names the newest ones: where all of them are there, everything older is too.
3. A mark names journal entries, checkouts and anchors. None of them is ever removed, whatever is erased or forgotten.
4. A mark counts until a recovery began after it. A copy of the database must have all that it names.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.database.incarnations import Beginning, DatabaseIdentity
from payrelay.core.keyed_digest import DigestKey

OPERATIONS_MAX: Final = 64
"""Operations that a mark names at least. It names as many as the process can have commits under way at one moment: the
newest commit may be acknowledged before all others of that moment, and must not be pushed out by them."""
LOST_TOLERANCE_MS: Final = 300_000
"""How far the clock of a machine may be wrong when it dates a commit."""
MARK_PURPOSE: Final = "high-water mark"
"""The purpose of the key that marks are digested with."""


class MarkedOperation(msgspec.Struct, frozen=True, array_like=True):
    """An operation in its newest version that was acknowledged; ``digest`` is the hash of that journal entry."""

    id: str
    version: int
    digest: str
    at_ms: int


class MarkedCheckout(msgspec.Struct, frozen=True, array_like=True):
    """A checkout in its newest version that was acknowledged."""

    id: str
    version: int
    at_ms: int


class MarkedAnchor(msgspec.Struct, frozen=True, array_like=True):
    """An anchor of the audit, named by its number and its digest."""

    text: str
    at_ms: int


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """The newest commits that one process was told of.

    Attributes:
        database: the id of the database.
        incarnation: the one in which they were made.
        written_at_ms: when the mark was written, in ms since 1970, UTC.
        operations: the newest of them, the longest acknowledged first.
        checkout, anchor: the newest of each; None where there was none.
    """

    database: str
    incarnation: int
    written_at_ms: int
    operations: tuple[MarkedOperation, ...] = ()
    checkout: MarkedCheckout | None = None
    anchor: MarkedAnchor | None = None


class MarkFile(msgspec.Struct, frozen=True):
    """A mark as it is written: its JSON, and the keyed digest over these very bytes."""

    mark: msgspec.Raw
    digest: str


class ReadMark(msgspec.Struct, frozen=True):
    """A mark as it was read; ``is_genuine`` says whether it was written with the key."""

    mark: Mark
    is_genuine: bool


class MarkStanding(StrEnum):
    """What a mark counts for on a database."""

    COUNTS = "counts"
    """The database must have what it names."""
    FOREIGN = "foreign"
    """It is of another database, so that what it names can't be there."""
    RECOVERED = "recovered"
    """A recovery has begun since, which accounts for what is missing."""
    FORGED = "forged"
    """It says that it is of this database, and was not written with its key."""


class Missing(msgspec.Struct, frozen=True):
    """A row that a mark names and the database lacks: its name for people, and when it was committed."""

    name: str
    at_ms: int


class MarksShown(msgspec.Struct, frozen=True, kw_only=True):
    """What the marks outside a database show of it.

    Attributes:
        read: how many marks count on it.
        newest_at_ms: when the newest of these was written; None where there is none.
        missing: what they name and the database lacks, the oldest first.
        foreign: the files with marks of other databases.
        unusable: the files that are no marks, or forged ones; they show nothing.
        lost_since_ms: from when on commits may be lost; None where nothing is missing, and where that isn't known.
        incarnation: the highest number of an incarnation of this database that a genuine mark names; 0 without one.
        copied_since_ms: the same by what a restored copy itself has: all after its newest entry may be lost; else None.
        found_before: why a process has found the database behind, in words; empty where none has.
    """

    read: int
    newest_at_ms: int | None
    missing: tuple[Missing, ...]
    foreign: tuple[str, ...]
    unusable: tuple[str, ...]
    lost_since_ms: int | None = None
    incarnation: int = 0
    copied_since_ms: int | None = None
    found_before: str = ""

    @property
    def reason(self) -> str | None:
        """Why the database counts as behind, in words; None where it doesn't."""
        if self.missing:
            return reason_of(self.missing)
        if self.foreign:
            return f"there is a mark of another database, whose commits are not here: {', '.join(self.foreign)}"
        return self.found_before or None

    def since_ms(self, told_ms: int | None) -> int | None:
        """Gives from when on commits count as lost, where an operator names a time or none; None where nothing tells.

        The operator's word goes before what a copy says of itself, and never hides what marks name.
        """
        copied_ms = self.copied_since_ms if told_ms is None else told_ms
        return min((each for each in (copied_ms, self.lost_since_ms) if each is not None), default=None)


class MarkMemory:
    """Remembers what a process was told of, as much as a mark names.

    ``commits_max`` is how many commits the process can have under way at one moment: the connections of its pool.
    """

    def __init__(self, commits_max: int = OPERATIONS_MAX) -> None:
        self._operations_max = max(OPERATIONS_MAX, commits_max)
        self._operations: dict[str, MarkedOperation] = {}
        self._checkout: MarkedCheckout | None = None
        self._anchor: MarkedAnchor | None = None

    @property
    def is_empty(self) -> bool:
        """True where no commit was noted; an anchor alone may be an old one."""
        return not (self._operations or self._checkout)

    def note_operation(self, operation: MarkedOperation) -> None:
        """Notes an acknowledged version of an operation; one that is older than the noted version changes nothing."""
        known = self._operations.pop(operation.id, operation)
        self._operations[operation.id] = operation if operation.version >= known.version else known
        if len(self._operations) > self._operations_max:
            del self._operations[next(iter(self._operations))]

    def note_checkout(self, checkout: MarkedCheckout) -> None:
        """Notes an acknowledged version of a checkout."""
        known = self._checkout
        if known is None or known.id != checkout.id or known.version <= checkout.version:
            self._checkout = checkout

    def note_anchor(self, anchor: MarkedAnchor) -> None:
        """Notes an anchor that is in the database."""
        self._anchor = anchor

    def forget(self) -> None:
        """Forgets everything, where a recovery accounts for it."""
        self._operations.clear()
        self._checkout = self._anchor = None

    def mark(self, database: str, incarnation: int, written_at_ms: int) -> Mark:
        """Gives the mark of now."""
        return Mark(
            database=database,
            incarnation=incarnation,
            written_at_ms=written_at_ms,
            operations=tuple(self._operations.values()),
            checkout=self._checkout,
            anchor=self._anchor,
        )


def written_mark(mark: Mark, key: DigestKey) -> bytes:
    """Gives the bytes of a mark's file."""
    raw = msgspec.json.encode(mark)
    return msgspec.json.encode(MarkFile(msgspec.Raw(raw), key.digest(raw)))


def read_mark(content: bytes, key: DigestKey) -> ReadMark | None:
    """Reads the bytes of a file; None where they are no mark, as after a loss of power."""
    try:
        file = msgspec.json.decode(content, type=MarkFile)
        mark = msgspec.json.decode(file.mark, type=Mark)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return ReadMark(mark, key.fits(file.digest, bytes(file.mark)))


def standing_of(read: ReadMark, identity: DatabaseIdentity) -> MarkStanding:
    """Tells what a mark counts for on a database.

    That of another database can't be checked: the key lies in the other database.
    """
    mark = read.mark
    is_own = mark.database == identity.id
    if is_own and not read.is_genuine:
        return MarkStanding.FORGED
    for began in identity.incarnations:
        is_later = began.began_at_ms >= mark.written_at_ms or (is_own and began.number > mark.incarnation)
        if began.reason is Beginning.RECOVERED and is_later:
            return MarkStanding.RECOVERED
    return MarkStanding.COUNTS if is_own else MarkStanding.FOREIGN


def incarnation_of(read: ReadMark, identity: DatabaseIdentity) -> int:
    """Gives the incarnation that a genuine mark of this database names; 0 for any other mark."""
    is_own = read.is_genuine and read.mark.database == identity.id
    return read.mark.incarnation if is_own else 0


def missing_incarnation(mark: Mark, identity: DatabaseIdentity) -> tuple[Missing, ...]:
    """Gives the incarnation of a mark where the database doesn't know of it; nothing else where it does."""
    if mark.incarnation <= identity.current.number:
        return ()
    return (Missing(f"incarnation {mark.incarnation} of the database", mark.written_at_ms),)


def reason_of(missing: tuple[Missing, ...]) -> str:
    """Says in words what a database lacks."""
    others = len(missing) - 1
    more = f", and {others} more" if others else ""
    return f"it lacks what a process was told of: {missing[0].name}{more}"


def lost_since_ms(newest_entry_ms: int | None) -> int | None:
    """Gives from when on commits may be lost; None where that isn't known.

    ``newest_entry_ms`` is the time of the newest journal entry that is not younger than what is missing.
    """
    return None if newest_entry_ms is None else newest_entry_ms - LOST_TOLERANCE_MS
