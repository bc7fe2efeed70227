"""A row of the table: what a drill was run with, what it came to, and how it is written down."""

import os
from collections.abc import Iterable, Mapping, Sequence
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
    "told by",
    "machine's load",
)
SHOWN_MAX: Final = 10
TOLD_WITHIN_S: Final = 300
"""An alert that takes longer came too late."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a drill came to.

    Attributes:
        name: of the drill, as ``ONLY`` names it.
        skipped: why it could not be run; empty where it was.
        recovered: how long clients waited; None where nothing was lost.
        p99_s: of the answers of the time that the drill is about; None where it says nothing.
        harms: whether it harms service or books, so that an alert must tell of it; otherwise none may.
        told_by: the alerts, each with its seconds since the fault began; None where no Prometheus watched.
        notes: whatever the drill found besides.
        load: the machine's, of one minute, when it ended.
    """

    name: str
    operations: int = 0
    verdict: Verdict | None = None
    skipped: str = ""
    recovered: Recovered | None = None
    p99_s: float | None = None
    harms: bool = True
    told_by: Mapping[str, float] | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    @property
    def is_right(self) -> bool:
        """True where nothing was as it must not be."""
        return self.verdict is None or (self.verdict.is_right and not self.wrong_alerts())

    def wrong_alerts(self) -> list[str]:
        """Tells of alerts that came without a reason, or not in time."""
        if self.told_by is None:
            return []
        if not self.harms:
            return [f"{alert}, and nothing was harmed" for alert in self.told_by]
        early = [f"{alert}, before the fault" for alert, after_s in self.told_by.items() if after_s < 0]
        in_time = any(0 <= after_s <= TOLD_WITHIN_S for after_s in self.told_by.values())
        return early if in_time else [*early, f"none in {TOLD_WITHIN_S} s"]

    def _first_alert(self) -> str:
        if self.told_by is None:
            return "not watched"
        if not self.told_by:
            return "none"
        alert, after_s = min(self.told_by.items(), key=lambda each: each[1])
        return f"{alert}, {after_s:.0f} s"

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
            self._first_alert(),
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
            "alert": self.wrong_alerts(),
        }
        found = [f"{kind}: {each}" for kind, entries in kinds.items() for each in entries[:SHOWN_MAX]]
        told = ", ".join(f"{alert} after {after_s:.0f} s" for alert, after_s in sorted((self.told_by or {}).items()))
        return [*found, *(f"note: {note}" for note in self.notes), f"note: alerts: {told or 'none'}"]


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
