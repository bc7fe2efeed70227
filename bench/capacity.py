"""Measures what one database carries: charges through one, two and three processes of Payrelay.

    bench/install.sh
    make .venv/.bench
    .venv/bin/python bench/capacity.py

On a machine with few cores the rates of several processes say little, because load, gateway, database and processes
share them. The processor time for each charge is what counts: of a process and of the database.
"""

import argparse
import contextlib
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

import load
import measure
import programs
import upstream
from contenders import Kind, PayrelayPostgresql, Served, Setting

CONNECTIONS = 32
PROCESSES = (1, 2, 3)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one load.

    Attributes:
        processes: how many were loaded.
        rate: charges in a second, of all processes together.
        process_ms: processor time of the processes for one charge.
        database_ms: the same of the database.
        p50_ms: the latency that half of the charges kept within.
        wrong: answers that weren't a success.
    """

    processes: int
    rate: float
    process_ms: float
    database_ms: float
    p50_ms: float
    wrong: int


class Several(PayrelayPostgresql):
    """Several processes on one database, on both cores in turn."""

    @contextlib.contextmanager
    def started(self, count: int) -> Iterator[list[Served]]:
        """Runs so many of them, and the database."""
        with contextlib.ExitStack() as stack:
            database_pid = stack.enter_context(self._cluster.running(self._setting.cores.load))
            yield [stack.enter_context(self._served(self._cluster.url, database_pid)) for _ in range(count)]


def loaded(served: list[Served], duration_s: int) -> Row:
    """Sends charges to each process at the same time, and gives what they took."""
    core = programs.cores().load
    sending = load.Load(kind=Kind.CHARGE, connections=CONNECTIONS, duration_s=duration_s)

    def spent() -> tuple[float, float]:
        return sum(measure.tree_cpu_s(each.pid) for each in served), measure.tree_cpu_s(served[0].database_pid)

    before = spent()
    began_s = time.monotonic()
    with ThreadPoolExecutor(len(served)) as pool:
        sent = list(pool.map(lambda each: load.send(each, sending, core, ""), served))
    took_s = time.monotonic() - began_s
    charges = sum(each.requests for each in sent)
    process_ms, database_ms = (1000 * (late - early) / charges for early, late in zip(before, spent(), strict=True))
    return Row(
        processes=len(served),
        rate=charges / took_s,
        process_ms=process_ms,
        database_ms=database_ms,
        p50_ms=max(each.p50_us for each in sent) / 1000,
        wrong=sum(each.wrong + each.broken + each.timeouts for each in sent),
    )


def rows(folder: Path, duration_s: int) -> Iterator[Row]:
    """Measures everything, one after the other."""
    cores = programs.cores()
    with upstream.running(folder, cores.load) as gateway:
        several = Several(Setting(folder=folder, cores=cores, gateway=gateway))
        for count in PROCESSES:
            with several.started(count) as served:
                loaded(served, 2)
                yield loaded(served, duration_s)


def main() -> int:
    """Prints a table; exits with 1 where an answer was wrong."""
    parser = argparse.ArgumentParser(description="Measure what processes and database take for a charge.")
    parser.add_argument("--seconds", type=int, default=15, help="how long each load lasts")
    arguments = parser.parse_args()
    table = Table("processes", "charges/s", "ms of a process", "ms of the database", "p50 ms", "wrong")
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for row in rows(folder, arguments.seconds):
            found.append(row)
            figures = (row.rate, row.process_ms, row.database_ms, row.p50_ms)
            table.add_row(str(row.processes), *(f"{figure:,.2f}" for figure in figures), str(row.wrong))
    Console(width=120).print(table)
    return 1 if any(row.wrong for row in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
