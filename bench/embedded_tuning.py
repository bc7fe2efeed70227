"""Measures what SQLite's caches and its log are worth: for several settings, in databases of two sizes.

    PYTHONPATH=. python bench/embedded_tuning.py [--operations 10000,200000] [--rounds 3] [--charges 2048]
        [--page-bytes 4096]

Each setting works in a process of its own, on the same copy of each database, in turns. So its memory is its own, and
whatever else the machine does weighs on all. Reads and writes of the file are counted by the kernel, and need no quiet
machine. *Beside charges* means: a commit came before, as under load; it empties the cache of whoever only reads.
``--page-bytes`` gives the databases pages of another size. The log is copied after as many bytes then.
"""

import argparse
import asyncio
import contextlib
import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import psutil
import uvloop
from tests.databases import sqlite_url

import bulk_books
import growing_books
from growing_books import FIRST_PAYMENT, Books
from growth import Size
from payrelay.clock import Clock
from payrelay.core.payments.operation import Event, OperationFilter
from payrelay.store.engine.sqlite import Sqlite
from payrelay.store.engine.sqlite_file import BUSY_S, Tuning, open_file

SIZES: Final = "10000,200000"
PAGE_BYTES: Final = 4_096
"""As SQLite makes a file."""
TOGETHER: Final = 32
"""Charges of one batch, as 64 connections leave them: half are about to be sent, and half have been answered."""
TUNINGS: Final = {
    "32 MB each": Tuning(32_768, 32_768, 32_768),
    "writer 8 MB, others 2": Tuning(8_192, 2_048, 2_048),
    "writer 4 MB, others 2": Tuning(4_096, 2_048, 2_048),
    "writer 4 MB, others 1": Tuning(4_096, 1_024, 1_024),
    "2 MB each": Tuning(2_048, 2_048, 2_048),
    "1 MB each": Tuning(1_024, 1_024, 1_024),
    "2 MB each, copied at 1,000 pages": Tuning(2_048, 2_048, 2_048, checkpoint_pages=1_000),
    "2 MB each, copied at 16,000 pages": Tuning(2_048, 2_048, 2_048, checkpoint_pages=16_000),
}
MEASURES: Final = {
    "charge": ("cpu_us", "reads", "kb_written"),
    "replay beside charges": ("cpu_us", "reads"),
    "replay alone": ("cpu_us", "reads"),
    "page": ("cpu_us", "reads"),
}


class Meter:
    """Adds up what one kind of work took, of this process."""

    def __init__(self) -> None:
        self._totals: dict[str, list[float]] = {}
        self._process = psutil.Process()

    async def of(self, name: str, count: int, work: Callable[[], Awaitable[object]]) -> None:
        """Does some work that counts as so many."""
        before = self._now()
        await work()
        after = self._now()
        taken = [count, *(b - a for a, b in zip(before, after, strict=True))]
        self._totals[name] = [a + b for a, b in zip(self._totals.get(name, [0.0] * 4), taken, strict=True)]

    def means(self) -> dict[str, dict[str, float]]:
        """Gives what one of each kind took."""
        return {
            name: {"cpu_us": cpu_s / count * 1e6, "reads": reads / count, "kb_written": written / count / 1e3}
            for name, (count, cpu_s, reads, written) in self._totals.items()
        }

    def _now(self) -> tuple[float, float, float]:
        counted = self._process.io_counters()
        return time.process_time(), counted.read_count, counted.write_chars


async def worked(path: Path, books: Books, tuning: Tuning, charges: int) -> dict[str, object]:
    """Works in a database; gives what one of each thing took, and the memory that all of it took."""
    database = Sqlite(
        open_file(path, clock=Clock(), tuning=tuning),
        executor=ThreadPoolExecutor(max_workers=1),
        loop=asyncio.get_running_loop(),
        lock=None,
        busy_s=BUSY_S,
    )
    size, meter, process = Size(database, books), Meter(), psutil.Process()
    acts = size.acts()
    journal = size.desk.relay.journal

    async def charged(first: int) -> None:
        numbers = range(first, first + TOGETHER)
        sending = await asyncio.gather(*(growing_books.accepted(journal, books.new(each)) for each in numbers))
        await asyncio.gather(
            *(
                growing_books.recorded(journal, each, Event.SUCCEEDED, str(FIRST_PAYMENT + number))
                for number, each in zip(numbers, sending, strict=True)
            )
        )

    async def replayed(count: int) -> None:
        for _ in range(count // 2):
            await acts["replay, young"]()
            await acts["replay, of 30 days"]()

    await charged(books.operations + 1)
    await replayed(TOGETHER)
    before = process.memory_full_info().pss
    for first in range(books.operations + 1 + TOGETHER, books.operations + 1 + charges, TOGETHER):
        await meter.of("charge", TOGETHER, lambda first=first: charged(first))  # type: ignore[misc]
        await meter.of("replay beside charges", TOGETHER, lambda: replayed(TOGETHER))
    memory = process.memory_full_info().pss - before
    await meter.of("replay alone", 2_000, lambda: replayed(2_000))
    filters = OperationFilter(principal="shop", account="gateway")
    for _ in range(50):
        before_id = books.id(size.drawn(books.operations))
        await meter.of("page", 1, lambda before_id=before_id: journal.list(filters, before=before_id, limit=100))  # type: ignore[misc]
    found: dict[str, object] = {**meter.means(), "memory_mb": memory / 1e6}
    await database.close()
    return found


def main() -> int:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", default=SIZES, help=f"sizes by comma ({SIZES})")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--charges", type=int, default=2_048)
    parser.add_argument("--page-bytes", type=int, default=PAGE_BYTES, help=f"of the databases ({PAGE_BYTES})")
    parser.add_argument("--filled", type=Path, help="a folder that keeps the filled databases from run to run")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.work:
        path, name = wanted.work
        tuning = TUNINGS[name]
        tuning = tuning._replace(checkpoint_pages=tuning.checkpoint_pages * PAGE_BYTES // wanted.page_bytes)
        found = uvloop.run(worked(Path(path), Books(int(wanted.operations)), tuning, wanted.charges))
        print(json.dumps(found))
        return 0
    # Not /tmp, which may be memory: a durable write must cost here what it costs in service.
    with tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp") as scratch:
        filled = wanted.filled or Path(scratch)
        for operations in map(int, wanted.operations.split(",")):
            whole = filled / f"{operations}.db"
            if not whole.exists():
                uvloop.run(bulk_books.fill(sqlite_url(whole), Books(operations)))
            in_pages = Path(scratch) / f"{operations}.pages.db"
            _write_anew(whole, in_pages, wanted.page_bytes)
            options = ["--page-bytes", str(wanted.page_bytes), "--charges", str(wanted.charges)]
            _measured(in_pages, Path(scratch) / "turn.db", operations, wanted.rounds, options)
    return 0


def _write_anew(whole: Path, in_pages: Path, page_bytes: int) -> None:
    """Copies a database, and has SQLite write the copy anew with pages of that size."""
    shutil.copyfile(whole, in_pages)
    with contextlib.closing(sqlite3.connect(in_pages, isolation_level=None)) as connection:
        # Where there is a write-ahead log, the size of the pages stays.
        for statement in ("PRAGMA journal_mode = DELETE", f"PRAGMA page_size = {page_bytes}", "VACUUM"):
            connection.execute(statement).fetchall()


def _measured(whole: Path, copy: Path, operations: int, rounds: int, options: list[str]) -> None:
    found: dict[str, list[dict[str, object]]] = {name: [] for name in TUNINGS}
    for _ in range(rounds):
        for name, turns in found.items():
            shutil.copyfile(whole, copy)
            command = [sys.executable, __file__, "--work", str(copy), name, "--operations", str(operations), *options]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            turns.append(json.loads(done.stdout))
    columns = [(what, unit) for what, units in MEASURES.items() for unit in units]
    print(f"\n{operations:,} operations")
    print("| setting | memory MB |", " | ".join(f"{what}: {unit}" for what, unit in columns), "|")
    print("| --- | ---: |", " | ".join("---:" for _ in columns), "|")
    for name, turns in found.items():
        memory = statistics.median(float(str(turn["memory_mb"])) for turn in turns)
        cells = [statistics.median(turn[what][unit] for turn in turns) for what, unit in columns]  # type: ignore[index]
        print(f"| {name} | {memory:.1f} |", " | ".join(f"{cell:.1f}" for cell in cells), "|", flush=True)


if __name__ == "__main__":
    sys.exit(main())
