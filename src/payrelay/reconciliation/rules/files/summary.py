"""What a statement's file comes to: its lines as they were read, their sums, and whether a total fits them."""

from collections.abc import Iterable
from datetime import date
from typing import Final, TypeAlias

import msgspec

from payrelay.core.money import decimal_text
from payrelay.reconciliation.rules.entries import LineState, StatementLine

REFUSED_MAX: Final = 100
"""Refused lines, and words that aren't known, that are told of one file; all are counted."""


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that was not read."""

    number: int
    reason: str


class PassedOver(msgspec.Struct, frozen=True):
    """A line that is none of those that the profile is for."""

    number: int


class TotalLine(msgspec.Struct, frozen=True):
    """The sum that the file itself says, in hundredths."""

    number: int
    total_minor: int


Read: TypeAlias = StatementLine | RefusedLine | PassedOver | TotalLine


class LineSums(msgspec.Struct, kw_only=True):
    """Some lines of a file.

    Attributes:
        counts: how many there are, by movement and currency.
        sums_minor: their amounts, in hundredths.
    """

    counts: dict[str, int] = {}
    sums_minor: dict[str, int] = {}

    def add(self, line: StatementLine) -> None:
        """Adds one line."""
        name = f"{line.movement} {line.currency}"
        self.counts[name] = self.counts.get(name, 0) + 1
        self.sums_minor[name] = self.sums_minor.get(name, 0) + line.amount_minor

    def add_all(self, others: "LineSums") -> None:
        """Adds the lines of another file."""
        for name, number in others.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number
            self.sums_minor[name] = self.sums_minor.get(name, 0) + others.sums_minor[name]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    @property
    def total_minor(self) -> int | None:
        """Their sum; None where they are of several kinds, which have no sum together."""
        return sum(self.sums_minor.values()) if len(self.sums_minor) <= 1 else None


class Fitting(msgspec.Struct, frozen=True):
    """Of which lines a total, and a number of lines, are. ``problem`` says what doesn't fit; None where all does."""

    checked: tuple[str, ...] = ()
    problem: str | None = None


class FileSummary(msgspec.Struct, kw_only=True):
    """What a file came to.

    Attributes:
        lines: all lines that were read.
        moved: those of them whose money has moved, as the statement says.
        unknown_words: how many lines have a state that isn't known, by its word; the first REFUSED_MAX words.
        unknown_count: how many lines have a state that isn't known.
        refused_count, refused: how many lines were refused, and the first of them.
        passed_over: lines of something else.
        first_day, last_day: of all lines.
        totals_minor: the sums that the file itself says, each once.
    """

    lines: LineSums = msgspec.field(default_factory=LineSums)
    moved: LineSums = msgspec.field(default_factory=LineSums)
    unknown_words: dict[str, int] = {}
    unknown_count: int = 0
    refused_count: int = 0
    refused: list[RefusedLine] = []
    passed_over: int = 0
    first_day: date | None = None
    last_day: date | None = None
    totals_minor: list[int] = []

    def add(self, read: Read) -> None:
        """Adds what one line came to."""
        if isinstance(read, StatementLine):
            self._add_line(read)
        elif isinstance(read, RefusedLine):
            self.refused_count += 1
            if len(self.refused) < REFUSED_MAX:
                self.refused.append(read)
        elif isinstance(read, TotalLine):
            if read.total_minor not in self.totals_minor[:REFUSED_MAX]:
                self.totals_minor.append(read.total_minor)
        else:
            self.passed_over += 1

    def _add_line(self, line: StatementLine) -> None:
        self.lines.add(line)
        if line.has_happened:
            self.moved.add(line)
        if line.state is LineState.OTHER:
            self.unknown_count += 1
            word = line.word or ""
            if word in self.unknown_words or len(self.unknown_words) < REFUSED_MAX:
                self.unknown_words[word] = self.unknown_words.get(word, 0) + 1
        self.first_day = line.day if self.first_day is None else min(self.first_day, line.day)
        self.last_day = line.day if self.last_day is None else max(self.last_day, line.day)

    @classmethod
    def together(cls, files: Iterable["FileSummary"]) -> "FileSummary":
        """Sums files up as one statement; only of a single file the sum that it says itself is known."""
        files = list(files)
        whole = cls()
        for each in files:
            whole.lines.add_all(each.lines)
            whole.moved.add_all(each.moved)
            whole.unknown_count += each.unknown_count
            whole.refused_count += each.refused_count
            days = [day for day in (whole.first_day, whole.last_day, each.first_day, each.last_day) if day is not None]
            whole.first_day, whole.last_day = min(days, default=None), max(days, default=None)
        if len(files) == 1:
            whole.totals_minor = files[0].totals_minor
        return whole

    def fitting(self, said_minor: int | None = None, said_count: int | None = None) -> Fitting:
        """Compares the lines with the sum and the number that a person says, or with the sum that the file says.

        Portals print them of all lines, or of those whose money has moved. Each is compared with both.
        """
        totals = self.totals_minor if said_minor is None else [said_minor]
        if len(totals) > 1:
            return Fitting(problem=f"the file says several sums: {', '.join(map(decimal_text, totals))}")
        told = [self._of_count(said_count), *map(self._of_total, totals)]
        problems = [each for each in told if each.problem is not None]
        if problems:
            return problems[-1]
        return Fitting(
            tuple(text for each in told for text in each.checked) + (() if totals else ("no sum was compared",))
        )

    def _of_count(self, said: int | None) -> Fitting:
        if said is None:
            return Fitting((f"{self.lines.count} lines",))
        if said == self.lines.count:
            return Fitting((f"{said} lines, as the statement says",))
        if said == self.moved.count:
            return Fitting((f"{self.lines.count} lines, of which {said} took money, as the statement says",))
        moved = "" if self._all_moved else f", {self.moved.count} of them took money"
        return Fitting(problem=f"{self.lines.count} lines were read{moved}, and {said} were said{self._unknown}")

    def _of_total(self, said_minor: int) -> Fitting:
        said, whole, moved = decimal_text(said_minor), self.lines.total_minor, self.moved.total_minor
        if said_minor == whole:
            return Fitting((f"the sum {said} agrees, of all lines",))
        if said_minor == moved:
            return Fitting((f"the sum {said} agrees, of the {self.moved.count} lines that took money",))
        if whole is None and (moved is None or not self.moved.count):
            kinds = ", ".join(sorted(self.lines.counts))
            return Fitting(problem=f"the lines are of several kinds ({kinds}), which have no sum together")
        come = [f"the lines come to {decimal_text(whole)}"] if whole is not None else []
        if moved is not None and not self._all_moved:
            come.append(f"those that took money come to {decimal_text(moved)}")
        return Fitting(problem=f"{', '.join(come)}, and {said} was said{self._unknown}")

    @property
    def _all_moved(self) -> bool:
        return self.moved.count == self.lines.count

    @property
    def _unknown(self) -> str:
        """Says how many lines can be in no such figure, as nobody knows whether they took money."""
        return f"; of {self.unknown_count} lines the profile doesn't know the state" if self.unknown_count else ""
