"""Measures many processes on one database, a thousand accounts in one installation, and how soon a start is ready.

    PYTHONPATH=. python bench/many.py [--only ready,processes] [--runs 5] [--megabytes 2500] [--seconds 5] [--keep-docs]

*Ready* is the time from the start of the program until ``/health/ready`` answers 200. It is measured on both databases:
empty, then with so many megabytes in it, then with a thousand accounts. *Processes* sends the same requests to two and
four processes on one database, and to as many processes that have a database each, all on one core and one PostgreSQL.
It compares what a request takes of the processor. The two differ by nothing but the shared database.
"""

import argparse
import asyncio
import base64
import concurrent.futures
import contextlib
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import asyncpg
from tests.drills.backups import FILL_POSTGRESQL, FILL_SQLITE, ROWS_OF_MB

import load
import postgresql
import programs
import section
import upstream
from contenders import READY_PATH, Kind, Served, made_key
from measure import memory_mb, tree_cpu_s

PARTS: Final = ("ready", "processes")
ACCOUNTS: Final = 1_000
PROCESSES: Final = (1, 2, 4)
CONNECTIONS: Final = 64
ROUNDS: Final = 3
READY_S_MAX: Final = 1.0
ACCOUNTS_S_MAX: Final = 2.0
ACCOUNTS_MB_MAX: Final = 150.0
TIMES_MAX: Final = 1.15
PREFIX: Final = "PAYRELAY_GATEWAYS__GATEWAY__"
READY_HEAD: Final = ["database", "with", "ready after", "processor time", "memory", "at most", "verdict"]
PROCESSES_HEAD: Final = [
    "request", "processes", "databases", "service", "database", "times a database each", "times one",
    "verdict",
]  # fmt: skip


class Start(NamedTuple):
    """One start: the time until it was ready, the processor time of that, and the memory."""

    ready_s: float
    cpu_s: float
    pss_mb: float


def main() -> int:
    """Measures, prints, and writes its sections of the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help=f"which parts, by comma ({','.join(PARTS)})")
    parser.add_argument("--runs", type=int, default=5, help="how often each start is measured")
    parser.add_argument("--megabytes", type=int, default=2_500, help="of the large database")
    parser.add_argument("--seconds", type=int, default=5, help="how long each load lasts")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    wanted = parser.parse_args()
    for part in wanted.only.split(","):
        # Not /tmp, which may be memory.
        with tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp") as name:
            folder = Path(name)
            folder.chmod(0o711)  # the database runs as a user of its own when the bench is root
            if part == "ready":
                head, rows = READY_HEAD, ready_rows(folder, wanted.runs, wanted.megabytes)
            else:
                head, rows = PROCESSES_HEAD, process_rows(folder, wanted.seconds)
        lines = [head, ["---", "---", *["---:"] * (len(head) - 3), "---"], *rows]
        print("\n".join("   ".join(each) for each in lines))
        if not wanted.keep_docs:
            section.write(part, [f"| {' | '.join(each)} |" for each in lines], program="many")
    return 0


def ready_rows(folder: Path, runs: int, megabytes: int) -> list[list[str]]:
    """Measures starts on both databases; gives the rows of the table."""
    accounts = folder / "accounts.toml"
    accounts.write_text("".join(map(account, range(ACCOUNTS))))
    accounts.chmod(0o600)
    many = {"PAYRELAY_CONFIG": str(accounts)}
    rows = []
    with contextlib.ExitStack() as stack:
        for store in ("sqlite", "postgresql"):
            url = f"sqlite:///{folder / 'payrelay.db'}"
            if store == "postgresql":
                cluster = postgresql.Cluster(folder)
                stack.enter_context(cluster.running(programs.cores().load))
                url = cluster.url
            one = _one_account("http://127.0.0.1:9")
            started(folder, one | store_at(url))  # makes the database
            rows.append(_ready_row(store, "nothing", [started(folder, one | store_at(url)) for _ in range(runs)]))
            first = started(folder, many | store_at(url))
            rows.append(_ready_row(store, f"{ACCOUNTS:,} new accounts", [first], is_many=True))
            rest = [started(folder, many | store_at(url)) for _ in range(runs)]
            rows.append(_ready_row(store, f"{ACCOUNTS:,} accounts", rest, is_many=True))
            _fill(url, megabytes)
            full = [started(folder, one | store_at(url)) for _ in range(runs)]
            rows.append(_ready_row(store, f"{megabytes:,} MB", full))
    return rows


def account(number: int, gateway: str = "http://127.0.0.1:9") -> str:
    """Writes the settings of an account."""
    secrets = "".join(f'{name} = "bench-{number}"\n' for name in ("app_id", "app_secret", "merchant_secret"))
    rest = f'merchant_id = "{1_210_000 + number}"\nbase_url = "{gateway}"\nrate_limit = "off"\n'
    return f"[gateways.shop-{number}]\n{secrets}{rest}"


def _one_account(gateway: str) -> dict[str, str]:
    named = {f"{PREFIX}{name}": "bench" for name in ("APP_ID", "APP_SECRET", "MERCHANT_SECRET")}
    return {f"{PREFIX}BASE_URL": gateway, f"{PREFIX}MERCHANT_ID": "1210000", f"{PREFIX}RATE_LIMIT": "off", **named}


def store_at(url: str) -> dict[str, str]:
    """Gives the settings of a database."""
    key = base64.urlsafe_b64encode(b"k" * 32).decode()
    return {"PAYRELAY_DATABASE_URL": url, "PAYRELAY_ENCRYPTION_KEY": key}


def _fill(url: str, megabytes: int) -> None:
    """Fills a database with rows that no start has use for."""
    number, now_ms = megabytes * ROWS_OF_MB, time.time_ns() // 1_000_000
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute(FILL_SQLITE, {"rows": number, "now_ms": now_ms})
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return

    async def fill() -> None:
        shared = await asyncpg.connect(url)
        await shared.execute("SET synchronous_commit = off")
        await shared.execute(FILL_POSTGRESQL, number, now_ms)
        await shared.close()

    asyncio.run(fill())


def started(folder: Path, environment: dict[str, str]) -> Start:
    """Starts the service, and ends it once it is ready."""
    with served(folder, environment, "start") as (process_id, port, began_s):
        while True:
            with contextlib.suppress(OSError):
                if programs.fetch(port, READY_PATH).status == 200:
                    break
            if time.monotonic() - began_s > programs.START_S_MAX:
                raise programs.ProgramError(f"not ready within {programs.START_S_MAX} s; see start.out")
            time.sleep(0.002)
        ready_s = time.monotonic() - began_s
        return Start(ready_s, tree_cpu_s(process_id), memory_mb(process_id)[0])


@contextlib.contextmanager
def served(folder: Path, environment: dict[str, str], name: str) -> Iterator[tuple[int, int, float]]:
    """Runs a service; gives its process id, its port and when it was started, and doesn't wait until it is ready."""
    program, port = str(Path(sys.executable).parent / "payrelay"), programs.free_port()
    launch = programs.Launch(
        name=name,
        arguments=[program, "serve", "--host", programs.HOST, "--port", str(port)],
        core=programs.cores().server,
        folder=folder,
        environment=environment,
    )
    began_s = time.monotonic()
    with programs.running(launch) as process:
        yield process.pid, port, began_s


def _ready_row(store: str, what: str, starts: list[Start], *, is_many: bool = False) -> list[str]:
    ready_s, cpu_s, pss_mb = (statistics.median(each) for each in zip(*starts, strict=True))
    s_max = ACCOUNTS_S_MAX if is_many else READY_S_MAX
    is_met = ready_s <= s_max and (pss_mb <= ACCOUNTS_MB_MAX or not is_many)
    most = f"{s_max:g} s, {ACCOUNTS_MB_MAX:.0f} MB" if is_many else f"{s_max:g} s"
    times = [f"{ready_s:.2f} s", f"{cpu_s:.2f} s", f"{pss_mb:.0f} MB"]
    return [store, what, *times, most, "met" if is_met else "short"]


class Taken(NamedTuple):
    """What a request took of the processor in µs: the services', and the database's."""

    service_us: float
    database_us: float

    @property
    def us(self) -> float:
        """Of the processor, altogether."""
        return self.service_us + self.database_us


class Layout(NamedTuple):
    """So many processes, on so many databases of one server."""

    processes: int
    databases: int


class Place(NamedTuple):
    """A database, the settings of a service on it, a key for it, and the prefix of the orders that are repeated."""

    url: str
    environment: dict[str, str]
    key: str
    prefix: str


def layouts() -> Iterator[Layout]:
    """Gives each number of processes: with a database each, and on one."""
    for count in PROCESSES:
        if count > 1:
            yield Layout(count, count)
        yield Layout(count, 1)


def process_rows(folder: Path, seconds: int) -> list[list[str]]:
    """Measures several processes on one database and on one each, in rounds; gives the rows of the table."""
    cores, cluster = programs.cores(), postgresql.Cluster(folder)
    taken: dict[tuple[Kind, Layout], list[Taken]] = {}
    with upstream.running(folder, cores.load) as gateway, cluster.running(cores.load) as database_pid:
        places = [_place(cluster, number, gateway.url, folder) for number in range(max(PROCESSES))]
        for _ in range(ROUNDS):
            for layout in layouts():
                own = places[: layout.processes] if layout.databases > 1 else places[:1] * layout.processes
                with contextlib.ExitStack() as stack:
                    entered = [served(folder, each.environment, f"service-{at}") for at, each in enumerate(own)]
                    running = [stack.enter_context(each) for each in entered]
                    loaded = [
                        (Served(port=port, key=place.key, pid=pid), place.prefix)
                        for (pid, port, _), place in zip(running, own, strict=True)
                    ]
                    wait_for([each for each, _ in loaded])
                    for kind in Kind:
                        _sent(loaded, kind, 1)
                        found = _measured(loaded, kind, seconds, database_pid)
                        taken.setdefault((kind, layout), []).append(found)
    return [_process_row(kind, layout, taken) for kind in Kind for layout in layouts()]


def _place(cluster: postgresql.Cluster, number: int, gateway: str, folder: Path) -> Place:
    """Makes a database with a key, and with the charges that a replay repeats."""
    url = cluster.make(f"{postgresql.ROLE}_{number}" if number else postgresql.ROLE)
    environment = _one_account(gateway) | store_at(url)
    place = Place(url, environment, made_key(environment, folder), load.new_replay_prefix())
    with served(folder, environment, "prepare") as (pid, port, _):
        one = Served(port=port, key=place.key, pid=pid)
        wait_for([one])
        load.prepare_replay(one, place.prefix)
    return place


def wait_for(all_served: list[Served]) -> None:
    """Returns once all services are ready; raises ProgramError where one takes too long."""
    end_s = time.monotonic() + programs.START_S_MAX
    for each in all_served:
        while True:
            with contextlib.suppress(OSError):
                if programs.fetch(each.port, READY_PATH).status == 200:
                    break
            if time.monotonic() > end_s:
                raise programs.ProgramError("a service is not ready in time")
            time.sleep(programs.POLL_S)


_Loaded: TypeAlias = list[tuple[Served, str]]
"""Services, each with the prefix of the orders that its replays repeat."""


def _sent(loaded: _Loaded, kind: Kind, seconds: int) -> int:
    """Sends to all processes at once, over as many connections each whatever their number; gives the answers."""
    wanted = load.Load(kind=kind, connections=CONNECTIONS, duration_s=seconds)
    core = programs.cores().load
    with concurrent.futures.ThreadPoolExecutor(len(loaded)) as pool:
        sent = list(pool.map(lambda each: load.send(each[0], wanted, core, each[1]), loaded))
    if wrong := sum(each.wrong + each.broken + each.timeouts for each in sent):
        raise programs.ProgramError(f"{wrong} answers were wrong: {[each.complaint for each in sent]}")
    return sum(each.requests for each in sent)


def _measured(loaded: _Loaded, kind: Kind, seconds: int, database_pid: int) -> Taken:
    """Gives what a request took, with everything that the processes did beside."""

    def now() -> Taken:
        services = sum(tree_cpu_s(each.pid) for each, _ in loaded if each.pid is not None)
        return Taken(services * 1e6, tree_cpu_s(database_pid) * 1e6)

    before = now()
    requests = _sent(loaded, kind, seconds)
    after = now()
    return Taken(*((late - early) / requests for early, late in zip(before, after, strict=True)))


def _process_row(kind: Kind, layout: Layout, taken: dict[tuple[Kind, Layout], list[Taken]]) -> list[str]:
    own = taken[kind, layout]

    def times(other: Layout) -> list[float]:
        return sorted(each.us / its.us for each, its in zip(own, taken[kind, other], strict=True))

    service_us, database_us = (statistics.median(each) for each in zip(*own, strict=True))
    row = [kind.value, *map(str, layout), f"{service_us:,.0f} µs", f"{database_us:,.0f} µs"]
    times_one = _range(times(Layout(1, 1))) if layout.processes > 1 else "-"
    if layout.databases > 1 or layout.processes == 1:
        return [*row, "-", times_one, "-"]
    times_apart = times(Layout(layout.processes, layout.processes))
    return [*row, _range(times_apart), times_one, "met" if statistics.median(times_apart) <= TIMES_MAX else "short"]


def _range(times: list[float]) -> str:
    """Shows the median of the rounds, and between which they lay: times of one round are of the same minutes."""
    return f"{statistics.median(times):.2f} ({times[0]:.2f} to {times[-1]:.2f})"


if __name__ == "__main__":
    sys.exit(main())
