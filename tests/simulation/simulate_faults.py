"""Lives through many seeds on all processors, and sums up: ``make simulate-faults SEEDS=1000 FROM=1 JOBS=2``."""

import argparse
import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from tests.simulation.fate import Fate
from tests.simulation.process import Parts
from tests.simulation.template import Template
from tests.simulation.universe import Report, run

CHUNK: Final = 50
"""Seeds that one process takes at a time: some seconds of work."""
TOLD_EVERY: Final = 1_000
"""After so many runs a file that is written in place of a terminal gets a line, where nobody sees a bar move."""
FAILURES_SHOWN_MAX: Final = 20
TRACE_SHOWN_MAX: Final = 5_000


@dataclass(kw_only=True, slots=True)
class Summary:
    """What many seeds came to.

    Attributes:
        runs: how many there were.
        failed: the reports of those in which something happened that never should.
        counts: how much of everything there was.
        resolved_s: how long each lost reply was open whose effect could be seen at once, while reads got through.
    """

    runs: int = 0
    failed: list[Report] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    resolved_s: list[float] = field(default_factory=list)

    def add(self, other: "Summary") -> None:
        """Adds what other seeds came to."""
        self.runs += other.runs
        self.failed += other.failed
        self.counts += other.counts
        self.resolved_s += other.resolved_s


def run_many(seeds: Sequence[int], parts: Parts | None = None) -> Summary:
    """Lives through seeds one after the other."""
    summary = Summary()
    gc.freeze()  # what is here by now stays, and need not be looked through
    gc.disable()  # what one seed leaves behind is little, and is swept up with that of the others below
    with Template() as template:
        for seed in seeds:
            report = run(seed, template, parts)
            summary.runs += 1
            summary.counts.update(report.counts)
            summary.resolved_s += report.resolved_s
            if report.failures:
                summary.failed.append(report)
    gc.enable()
    gc.collect()
    return summary


def main() -> int:
    """Reads the arguments, runs, prints; 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--from", type=int, default=1, dest="first")
    parser.add_argument("--with-pages", action="store_true", help="of these seeds only those with the gateway's pages")
    parser.add_argument("--with-losses", action="store_true", help="only those whose database goes back in time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    console = Console()
    began_s = time.monotonic()
    summary = Summary()
    seeds: Sequence[int] = range(given.first, given.first + given.seeds)
    if given.with_pages:
        seeds = [seed for seed in seeds if Fate.of(seed).pages is not None]
    if given.with_losses:
        seeds = [seed for seed in seeds if Fate.of(seed).loss is not None]
    for part in _parts(seeds, given.jobs, console):
        summary.add(part)
    _show(console, summary, time.monotonic() - began_s)
    return 1 if summary.failed else 0


def _parts(seeds: Sequence[int], jobs: int, console: Console) -> Iterator[Summary]:
    """Gives the summaries of parts as they come, and moves the bar."""
    bar = Progress(
        TextColumn("seeds"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    runs = failed = 0
    with bar, ProcessPoolExecutor(max_workers=jobs) as pool:
        task = bar.add_task("seeds", total=len(seeds), failed=0)
        futures = [pool.submit(run_many, seeds[start : start + CHUNK]) for start in range(0, len(seeds), CHUNK)]
        for future in as_completed(futures):
            part = future.result()
            failed += len(part.failed)
            for report in part.failed:
                told = f"seed {report.seed}: {report.failures[0]}"
                bar.console.print(told, markup=False, highlight=False, soft_wrap=True)
            if not console.is_terminal and runs // TOLD_EVERY < (runs + part.runs) // TOLD_EVERY:
                console.print(f"{runs + part.runs} of {len(seeds)} runs, {failed} failed", highlight=False)
            runs += part.runs
            bar.update(task, advance=part.runs, failed=failed)
            yield part


def _show(console: Console, summary: Summary, elapsed_s: float) -> None:
    table = Table(title=f"{summary.runs} runs in {elapsed_s:.0f} s, {len(summary.failed)} failed", show_header=False)
    for name, number in sorted(summary.counts.items()):
        table.add_row(name, f"{number:,}")
    console.print(table)
    if summary.resolved_s:
        ordered = sorted(summary.resolved_s)
        shares = ", ".join(f"{share} % within {_at(ordered, share):.1f} s" for share in (50, 90, 95, 99, 100))
        console.print(f"Lost replies whose effect could be seen at once ({len(ordered):,}): {shares}")
    for report in sorted(summary.failed, key=lambda each: each.seed)[:FAILURES_SHOWN_MAX]:
        if summary.runs == 1:
            console.print("\n".join(report.trace[:TRACE_SHOWN_MAX]), markup=False, highlight=False, soft_wrap=True)
        for failure in report.failures:
            console.print(failure, markup=False, highlight=False, soft_wrap=True)
        console.print(f"make simulate-faults SEEDS=1 FROM={report.seed}", style="bold red")


def _at(ordered: list[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


if __name__ == "__main__":
    sys.exit(main())
