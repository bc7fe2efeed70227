"""Measures what one database carries: charges through one, two and three processes of Payrelay, and through the router.

    bench/install.sh
    make .venv/.bench
    .venv/bin/python bench/capacity.py

On a machine with few cores the rates of several processes say little, because load, gateway, database and processes
share them. The processor time for each charge is what counts: of a process, of the database, and of the router.
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
        name: what was loaded.
        rate: charges in a second, of all processes together.
        process_ms: processor time of the processes for one charge.
        database_ms: the same of the database.
        router_ms: the same of the router; 0 where there is none.
        p50_ms: the latency that half of the charges kept within.
        wrong: answers that weren't a success.
    """

    name: str
    rate: float
    process_ms: float
    database_ms: float
    router_ms: float
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


@contextlib.contextmanager
def routed(setting: Setting, served: Served) -> Iterator[Served]:
    """Runs the router before a process."""
    port = programs.free_port()
    folder = setting.folder / "router"
    folder.mkdir()
    program = str(Path(measure.__file__).parent.parent / ".venv/bin/payrelay")
    launch = programs.Launch(
        name="router",
        arguments=[program, "route", "--host", programs.HOST, "--port", str(port)],
        core=setting.cores.load,
        folder=folder,
        environment={
            "PAYRELAY_PARTITIONS__ONE__ADDRESS": f"http://{programs.HOST}:{served.port}",
            "PAYRELAY_PARTITIONS__ONE__ACCOUNTS": "gateway",
        },
    )
    with programs.running(launch) as process:
        programs.wait_ready(process, launch, port, "/health/ready")
        yield Served(port=port, key=served.key, pid=process.pid)


def loaded(name: str, asked: list[Served], measured: list[Served], router: Served | None, duration_s: int) -> Row:
    """Sends charges to each address at the same time, and gives what they took."""
    core = programs.cores().load
    sending = load.Load(kind=Kind.CHARGE, connections=CONNECTIONS, duration_s=duration_s)

    def spent() -> tuple[float, float, float]:
        return (
            sum(measure.tree_cpu_s(each.pid) for each in measured),
            measure.tree_cpu_s(measured[0].database_pid),
            measure.tree_cpu_s(router.pid) if router else 0.0,
        )

    before = spent()
    began_s = time.monotonic()
    with ThreadPoolExecutor(len(asked)) as pool:
        sent = list(pool.map(lambda each: load.send(each, sending, core, ""), asked))
    took_s = time.monotonic() - began_s
    charges = sum(each.requests for each in sent)
    process_ms, database_ms, router_ms = (
        1000 * (late - early) / charges for early, late in zip(before, spent(), strict=True)
    )
    return Row(
        name=name,
        rate=charges / took_s,
        process_ms=process_ms,
        database_ms=database_ms,
        router_ms=router_ms,
        p50_ms=max(each.p50_us for each in sent) / 1000,
        wrong=sum(each.wrong + each.broken + each.timeouts for each in sent),
    )


def rows(folder: Path, duration_s: int) -> Iterator[Row]:
    """Measures everything, one after the other."""
    cores = programs.cores()
    with upstream.running(folder, cores.load) as gateway:
        setting = Setting(folder=folder, cores=cores, gateway=gateway)
        several = Several(setting)
        for count in PROCESSES:
            with several.started(count) as served:
                loaded("warm-up", served, served, None, 2)
                yield loaded(f"{count} on one database", served, served, None, duration_s)
        with several.started(1) as served, routed(setting, served[0]) as router:
            loaded("warm-up", [router], served, router, 2)
            yield loaded("1, through the router", [router], served, router, duration_s)


def main() -> int:
    """Prints a table; exits with 1 where an answer was wrong."""
    parser = argparse.ArgumentParser(description="Measure what processes, database and router take for a charge.")
    parser.add_argument("--seconds", type=int, default=15, help="how long each load lasts")
    arguments = parser.parse_args()
    table = Table(
        "processes", "charges/s", "ms of a process", "ms of the database", "ms of the router", "p50 ms", "wrong"
    )
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for row in rows(folder, arguments.seconds):
            found.append(row)
            figures = (row.rate, row.process_ms, row.database_ms, row.router_ms, row.p50_ms)
            table.add_row(row.name, *(f"{figure:,.2f}" for figure in figures), str(row.wrong))
    Console(width=120).print(table)
    return 1 if any(row.wrong for row in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
