"""What a comparison comes to: a verdict on each thing, what it rests on, and how old it is."""

import hashlib
from datetime import date
from enum import StrEnum
from typing import Final

import msgspec

from payrelay.reconciliation.rules.entries import UNPAID, BooksEntry, Movement, StatementLine

_ID_DIGITS: Final = 24


class BooksVerdict(StrEnum):
    """How one thing stands. The values are stored and never change."""

    AGREED = "agreed"
    ONLY_OURS = "only_ours"
    ONLY_THEIRS = "only_theirs"
    DIFFERENT = "different"
    OPEN = "open"
    """It has no outcome here yet, or the other side may still show it."""
    UNKNOWABLE = "cant_be_known"
    """Nothing that could show it was read."""


VERDICT_WORDS: Final = {
    BooksVerdict.AGREED: "agreed",
    BooksVerdict.ONLY_OURS: "only ours",
    BooksVerdict.ONLY_THEIRS: "only theirs",
    BooksVerdict.DIFFERENT: "different",
    BooksVerdict.OPEN: "open",
    BooksVerdict.UNKNOWABLE: "can't be known",
}
"""Each verdict, for people, in the order in which they are shown."""


class Aspect(StrEnum):
    """In what the two sides differ."""

    AMOUNT = "amount"
    FEE = "fee"
    STATE = "state"
    DAY = "day"
    ORDER = "order"
    STATEMENTS = "statements"
    """Two statements say different things of the same."""


class Basis(StrEnum):
    """What a verdict rests on."""

    COMPLETE_FILES = "complete_files"
    """Files that a person named as complete for the days in question."""
    LINE = "line"
    """A line in a file, which shows what is there, and not what isn't."""
    SEARCH = "search"
    """A search at the gateway for one order or subscription."""
    BOOKS = "books"
    """Our books alone."""


BASIS_WORDS: Final = {
    Basis.COMPLETE_FILES: "files that a person named as complete",
    Basis.LINE: "a line in a file",
    Basis.SEARCH: "a search at the gateway for the order",
    Basis.BOOKS: "our books alone; nothing was read that could show it",
}
"""What a verdict rests on, for people."""


class Concern(StrEnum):
    """A difference that somebody must hear of at once."""

    NOT_MADE_HERE = "not_made_here"
    """A payment that nobody here made."""
    TAKEN_THOUGH_FAILED = "taken_though_failed"
    """Money was taken for what our books call failed."""


CONCERN_WORDS: Final = {
    Concern.NOT_MADE_HERE: "A payment that nobody here made.",
    Concern.TAKEN_THOUGH_FAILED: "Money was taken for what our books call failed: the customer heard that nothing was.",
}
"""Why somebody must hear of a difference at once, for people."""

DIFFERENCES: Final = frozenset({BooksVerdict.ONLY_OURS, BooksVerdict.ONLY_THEIRS, BooksVerdict.DIFFERENT})
"""The verdicts that a person has to close."""


class OpenDifferences(msgspec.Struct, frozen=True):
    """How many differences are open, by what makes them urgent, and since when the oldest is known."""

    by_concern: dict[Concern | None, int]
    oldest_ms: int | None


class BooksFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one thing, with its evidence.

    Attributes:
        movement, identity: what it is; equal in every run.
        day: the day that it belongs to.
        currency: its currency; ``???`` where none is known.
        verdict, aspects: how it stands, and in what the sides differ.
        basis, why: what the verdict rests on, and a sentence for people.
        ours, theirs: the entry and the line; None where a side has none.
        ours_minor, theirs_minor: the amounts on both sides.
        concern: why somebody must hear of it at once; None where nobody must.
        unknown_word: what the statement has for the state, where that isn't known; empty where it has nothing; None
            where the state is known.
    """

    movement: Movement
    identity: str
    day: date
    currency: str
    verdict: BooksVerdict
    basis: Basis
    why: str
    aspects: tuple[Aspect, ...] = ()
    ours: BooksEntry | None = None
    theirs: StatementLine | None = None
    ours_minor: int | None = None
    theirs_minor: int | None = None
    concern: Concern | None = None
    unknown_word: str | None = None

    @property
    def ours_moved_minor(self) -> int | None:
        """The money that moved as our books say: nothing for what failed, or was never paid."""
        return 0 if self.ours is not None and self.ours.standing in UNPAID else self.ours_minor

    @property
    def theirs_moved_minor(self) -> int | None:
        """The money that moved as the statement says; what nobody knows the state of counts, as it may have."""
        is_still = self.theirs is not None and self.unknown_word is None and self.theirs.moved_nothing
        return 0 if is_still else self.theirs_minor

    @property
    def moved_nothing(self) -> bool:
        """True where an amount is known, and no side says that any of it moved."""
        has_amount = self.ours_minor is not None or self.theirs_minor is not None
        return has_amount and not self.ours_moved_minor and not self.theirs_moved_minor

    @property
    def id(self) -> str:
        """What the finding is called: equal in every run, and for whatever verdict."""
        text = f"{self.movement}/{self.identity}".encode()
        return f"dif_{hashlib.sha256(text).hexdigest()[:_ID_DIGITS]}"

    @property
    def is_difference(self) -> bool:
        """True where a person has to close it."""
        return self.verdict in DIFFERENCES

    @property
    def content(self) -> str:
        """What was found, without when and where it was read: a finding whose content changed is found anew."""
        unknown = () if self.unknown_word is None else (self.unknown_word,)
        parts = (self.verdict, *self.aspects, self.currency, str(self.ours_minor), str(self.theirs_minor), *unknown)
        return hashlib.sha256("/".join(parts).encode()).hexdigest()[:_ID_DIGITS]

    @property
    def known_at_ms(self) -> int:
        """When the newest of what it rests on became known."""
        sides = [each.known_at_ms for each in (self.ours, self.theirs) if each is not None]
        return max(sides, default=0)
