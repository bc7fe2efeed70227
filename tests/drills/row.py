"""A row of the table: what a drill was run with, what it came to, and how it is written down."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.drills.judge import Verdict
from tests.drills.operator import Recovered
from tests.drills.shop import Shop
from tests.drills.told import Meaning

HEADINGS: Final = (
    "drill",
    "operations",
    "effects",
    "double effects",
    "false answers",
    "lost intents",
    "to a person",
    "no answer",
    "clients served after",
    "all after",
    "p99 of answers",
    "machine's load",
)
SHOWN_MAX: Final = 10


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a drill came to.

    Attributes:
        name: of the drill, as ``ONLY`` names it.
        skipped: why it could not be run; empty where it was.
        recovered: how long clients waited; None where nothing was lost.
        p99_s: of the answers of the time that the drill is about; None where it says nothing.
        notes: whatever the drill found besides.
        load: the machine's, of one minute, when it ended.
    """

    name: str
    operations: int = 0
    verdict: Verdict | None = None
    skipped: str = ""
    recovered: Recovered | None = None
    p99_s: float | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    @property
    def is_right(self) -> bool:
        """True where nothing was as it must not be."""
        return self.verdict is None or self.verdict.is_right

    def cells(self) -> list[str]:
        """Gives the cells of the table."""
        if self.verdict is None:
            return [self.name, f"skipped: {self.skipped}", *[""] * (len(HEADINGS) - 2)]
        verdict, recovered = self.verdict, self.recovered
        counts = [verdict.doubles, verdict.false_answers, verdict.lost]
        return [
            self.name,
            str(self.operations),
            str(verdict.effects),
            *(str(len(each)) for each in counts),
            str(verdict.persons),
            str(len(verdict.unanswered)),
            "" if recovered is None else f"{recovered.clients_s:.0f} s",
            "" if recovered is None else f"{recovered.all_s:.0f} s",
            "" if self.p99_s is None else f"{self.p99_s * 1000:.0f} ms",
            f"{self.load:.0f}",
        ]

    def complaints(self) -> list[str]:
        """Gives what was not as it must be, a few of each kind, and the notes."""
        verdict = self.verdict
        if verdict is None:
            return []
        kinds = {
            "double": verdict.doubles,
            "false": verdict.false_answers,
            "lost": verdict.lost,
            "audit": verdict.findings,
            "no answer": verdict.unanswered,
        }
        found = [f"{kind}: {each}" for kind, entries in kinds.items() for each in entries[:SHOWN_MAX]]
        return [*found, *(f"note: {note}" for note in self.notes)]


def markdown(rows: Iterable[Row], earlier: str, order: Sequence[str]) -> str:
    """Writes the table as docs have it; rows that were not run now stay as they are in the earlier table."""
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in earlier.splitlines() if line.startswith("| ")}
    lines |= {row.name: f"| {' | '.join(row.cells())} |" for row in rows}
    head = [f"| {' | '.join(HEADINGS)} |", f"|{' --- |' * len(HEADINGS)}"]
    return "\n".join([*head, *(lines[name] for name in order if name in lines)]) + "\n"


def p99_s(shop: Shop, since_s: float = 0.0, until_s: float = float("inf")) -> float | None:
    """Gives the 99th percentile of the successes that came between two moments; None where there is none."""
    times = sorted(
        each.elapsed_s
        for heard in shop.told.values()
        for each in heard
        if each.meaning is Meaning.DONE and since_s <= each.at_s <= until_s
    )
    return times[min(len(times) - 1, len(times) * 99 // 100)] if times else None
