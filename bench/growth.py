"""Measures whether a database with a million operations is as quick as one with ten thousand, and what it takes.

    PYTHONPATH=. python bench/growth.py [--operations 10000,1000000] [--repeats 2000] [--only sqlite] [--keep-docs]

Each size has a database of its own, filled in bulk by the journal's own rows (``bulk_books.py``). All are measured at
once: in each turn a thing is done once in every size, one after the other, so that whatever else the machine does
weighs on all of them. What counts is the ratio to the smallest. Nothing is cleared meanwhile, however old it is. One
store is filled, measured and removed after the other; ten million operations need some 40 GB of disk.
"""

import argparse
import contextlib
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import asyncpg
import uvloop
from tests.console.browsing import Window, console_on, signed_in
from tests.databases import sqlite_url
from tests.flows.console.books import PAYMENT, id_at
from tests.flows.console.desk import START_MS, Desk

import bulk_books
import growing_books
import postgresql
import programs
import section
from growing_books import DAY_MS, FIRST_PAYMENT, Books
from payrelay import worker
from payrelay.core.operators.roles import Role
from payrelay.core.payments.operation import Event, Operation, OperationFilter, State
from payrelay.core.retention import Kept, Periods
from payrelay.flows.retention.clear import clear_round
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query

SIZES: Final = "10000,1000000"
STORES: Final = ("sqlite", "postgresql")
REPEATS: Final = 2_000
"""So that twenty are slower than the p99."""
PAGES_EACH: Final = 10
"""A page of the console is asked for once where a function of the store is called so often: it takes longer."""
REPEATS_MIN: Final = 2
"""Of anything: a p99 is computed from two times at least."""
NEWEST: Final = 9_000
"""The working set: what clients repeat, look up and read on behind is mostly young."""
OLDEST: Final = 300
"""They are never drawn: some of them wait for somebody, and behind them there is no whole page."""
MEDIAN_MAX: Final = 1.3
P99_MAX: Final = 2.0
BYTES_MAX: Final = 1_500
BESIDE: Final = "beside charges"
"""Ends the names of what is measured right after a charge: its commits empty the cache of SQLite's reader."""
NEWEST_BYTES: Final = 8 << 30
"""Of a file. SQLite's has everything, and at its end are the rows of the last months and the indexes of all."""
READ_BYTES: Final = 1 << 24
EMPTY: Final = Books(0)
"""What a database takes without operations isn't theirs."""
KINDS: Final = [Kept.ANSWERS, Kept.CALLS, Kept.HISTORIES]
BYTES_HEAD: Final = ["operations", "bytes of each", "once finished", f"finished: at most {BYTES_MAX:,}"]
JOBS: Final = [job for job in worker.JOBS if job.do is not worker.publish_events]
"""What a worker looks for in its first round, without sending events: nobody takes them here."""
COUNT: Final = Statement(query("SELECT count(*) FROM operations"), ())
HEAD: Final = [
    *("what, in ms", "operations", "median of the smallest", "median", "ratio"),
    *("p99 of the smallest", "p99", "ratio", "verdict"),
]
PAGES: Final = {
    "console: find an order": "/console/find?q=A-1",
    "console: find a payment": f"/console/find?q={PAYMENT}",
    "console: find, nothing fits": "/console/find?q=nobody",
    "console: find the newest": "/console/find?kind=charge",
    "console: find an amount": "/console/find?amount=123456.78",
    "console: find a rare state": "/console/find?state=needs_attention",
    "console: find, as CSV": "/console/find.csv?kind=charge",
    "console: order": "/console/orders/gateway/A-1",
    "console: operation": f"/console/operations/{id_at('op', START_MS + 5_000, 1)}",
    "console: queue": "/console/queue",
    "console: overview of a day": "/console/overview?span=day",
}
Act = Callable[[], Awaitable[object]]


class Times(NamedTuple):
    """How long a thing took, in milliseconds."""

    median: float
    p99: float


class Size:
    """One database, and everything that is done in it, by the name that the table has."""

    def __init__(self, database: Database, books: Books) -> None:
        self.books = books
        self.database = database
        self.desk = Desk(database)
        self.desk.relay.clearing.periods = Periods(None, None, None, None)
        self._draw = random.Random(1)  # noqa: S311 - nothing to keep secret
        self._number = books.operations
        self._sending: list[Operation] = []
        self._window: Window | None = None

    async def begin(self) -> None:
        """Signs an operator in."""
        self.desk.clock.at_ms = START_MS + 60_000
        self._window = await signed_in(self.desk, console_on(self.desk), "ada@shop.example", Role.ADMIN)

    def acts(self) -> dict[str, Act]:
        """Gives what is measured; a charge is accepted before it is recorded."""
        return {
            "accept": self._accept,
            "record": self._record,
            "replay, young": lambda: self._replay(NEWEST),
            "replay, of 30 days": lambda: self._replay(30 * DAY_MS // growing_books.BETWEEN_MS - NEWEST),
            "lookup by order, young": lambda: self._lookup(NEWEST),
            "lookup by order, any": lambda: self._lookup(self.books.operations),
            f"replay, of 30 days, {BESIDE}": lambda: self._replay(30 * DAY_MS // growing_books.BETWEEN_MS - NEWEST),
            f"lookup by order, any, {BESIDE}": lambda: self._lookup(self.books.operations),
            "page, newest": lambda: self._page(None),
            "page, any": lambda: self._page(self.books.id(self.drawn(self.books.operations))),
            "due work: an idle round": self._round,
            "due work: what is stranded": self._stranded,
            "due work: lease": self._lease,
            **{name: partial(self._ask, address) for name, address in PAGES.items()},
        }

    async def charge(self) -> None:
        """Stores a whole charge, in two commits."""
        await self._accept()
        await self._record()

    def drawn(self, newest: int) -> int:
        """Draws a charge of the newest operations, or of all but the oldest where there are fewer."""
        count = self.books.operations
        number = count - 1 - self._draw.randrange(min(newest, count - OLDEST))
        return number if number % 30 != 11 and number % 10 != 3 else number - 1

    async def _accept(self) -> None:
        self._number += 1
        self._sending.append(await growing_books.accepted(self.desk.relay.journal, self.books.new(self._number)))

    async def _record(self) -> None:
        operation = self._sending.pop(0)
        payment = str(FIRST_PAYMENT + self._number + len(self._sending))
        await growing_books.recorded(self.desk.relay.journal, operation, Event.SUCCEEDED, payment)

    async def _replay(self, newest: int) -> None:
        number = self.drawn(newest)
        claim = f"key/{self.books.key(number)}"
        found = await self.desk.relay.journal.find_claim("shop", claim, now_ms=START_MS)
        assert found is not None
        assert found.answer is not None

    async def _lookup(self, newest: int) -> None:
        filters = OperationFilter(principal="shop", account="gateway", order_id=self.books.order(self.drawn(newest)))
        assert await self.desk.relay.journal.list(filters, before=None, limit=100)

    async def _page(self, before: str | None) -> None:
        filters = OperationFilter(principal="shop", account="gateway")
        assert len(await self.desk.relay.journal.list(filters, before=before, limit=100)) == 100

    async def _round(self) -> None:
        for job in JOBS:
            await job.do(self.desk.relay)

    async def _stranded(self) -> None:
        await self.desk.relay.journal.stranded(before_ms=START_MS)
        await self.desk.relay.resolution.next_due_ms()
        assert await self.desk.relay.resolution.in_state(State.NEEDS_ATTENTION)

    async def _lease(self) -> None:
        due_ms = START_MS + 101 * DAY_MS
        assert await self.desk.relay.resolution.lease_due(due_ms, leased_until_ms=due_ms, limit=10)

    async def _ask(self, address: str) -> None:
        assert self._window is not None
        answer = await self._window.send("GET", address)
        assert answer.status == 200, (address, answer.status)


def main() -> int:
    """Measures, prints, and writes a section of the docs for each store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", default=SIZES, help=f"sizes by comma, the smallest first ({SIZES})")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--only", default=",".join(STORES), help=f"which stores, by comma ({','.join(STORES)})")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    wanted = parser.parse_args()
    if wanted.repeats < REPEATS_MIN:
        parser.error(f"--repeats must be at least {REPEATS_MIN}")
    sizes = [Books(int(each)) for each in wanted.operations.split(",")]
    for store in wanted.only.split(","):
        lines = _told(store, sizes, wanted.repeats)
        print("\n".join(lines))
        if not wanted.keep_docs:
            section.write(f"growth_{store}", lines, program="growth")
    return 0


def _told(store: str, sizes: list[Books], repeats: int) -> list[str]:
    """Measures one store, and gives its two tables."""
    rows = [HEAD, ["---", *["---:"] * (len(HEAD) - 2), "---"]]
    taken = [BYTES_HEAD, [*["---:"] * (len(BYTES_HEAD) - 1), "---"]]
    with _filled(store, sizes) as urls:
        full = uvloop.run(bytes_of(urls))
        rows += uvloop.run(measured(urls, repeats))
        end = uvloop.run(bytes_in_the_end(urls[sizes[0]], urls[EMPTY]))
    taken += [[f"{each.operations:,}", f"{full[each]:,}", "-", "-"] for each in sizes]
    taken[2][-2:] = [f"{end:,}", "met" if end <= BYTES_MAX else "short"]
    return [*_lines(rows), "", *_lines(taken)]


def _lines(rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in rows]


@contextlib.contextmanager
def _filled(store: str, sizes: list[Books]) -> Iterator[dict[Books, str]]:
    """Gives the addresses of a filled database of each size, and of one without operations, while they are there."""
    # Not /tmp, which may be memory: a durable write must cost here what it costs in service.
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp")))
        folder.chmod(0o711)  # the database runs as a user of its own when the bench is root
        names = {books: f"growth_{books.operations}" for books in (EMPTY, *sizes)}
        if store == "sqlite":
            urls = {books: sqlite_url(folder / f"{name}.db") for books, name in names.items()}
        else:
            cluster = postgresql.Cluster(folder)
            stack.enter_context(cluster.running(programs.cores().load))
            urls = {books: cluster.make(name) for books, name in names.items()}
        for books, url in urls.items():
            print(f"{store}: filling a database with {books.operations:,} operations", file=sys.stderr)
            uvloop.run(bulk_books.fill(url, books))
        _read_newest(folder)
        yield urls


def _read_newest(folder: Path) -> None:
    """Reads the newest part of each file, so that the working set is in memory, as it is in a service that runs.

    PostgreSQL has a file for each gigabyte of a table or an index: the last two of each are read.
    """
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*"), key=lambda path: int(path.suffix[1:]) if path.suffix[1:].isdigit() else 0):
        if path.is_file():
            files.setdefault(str(path.with_suffix("")), []).append(path)
    for path in (path for segments in files.values() for path in segments[-2:]):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - NEWEST_BYTES))
            while file.read(READ_BYTES):
                pass


async def bytes_of(urls: dict[Books, str]) -> dict[Books, int]:
    """Gives what each operation of a database takes; what one without operations takes isn't theirs."""
    sizes = {}
    for books, url in urls.items():
        database = await growing_books.opened(url)
        sizes[books] = await _size_of(database, url)
        await database.close()
    return {books: (sizes[books] - sizes[EMPTY]) // books.operations for books in sizes if books != EMPTY}


async def bytes_in_the_end(url: str, empty_url: str) -> int:
    """Gives what each takes once all periods of retention are over, and the worker has cleared what it may."""
    (empty, few), (full, many) = await _in_the_end(empty_url), await _in_the_end(url)
    return (full - empty) // (many - few)


async def _in_the_end(url: str) -> tuple[int, int]:
    """Clears a database, and gives its bytes and how many operations it has."""
    later_ms = START_MS + 500 * DAY_MS
    database = await growing_books.opened(url)
    relay = Desk(database).relay
    await growing_books.finished(relay, later_ms)
    done: list[Kept] = []
    while len(done) < len(KINDS):
        _, done = await clear_round(relay.clearing, KINDS, later_ms)
    size = await _size_of(database, url, is_last=True)
    [[operations]] = await database.read(all_rows(COUNT))
    await database.close()
    return size, int(str(operations))


async def _size_of(database: Database, url: str, *, is_last: bool = False) -> int:
    """Measures a database in bytes; the last time without what a later row would take."""
    if url.startswith("sqlite"):
        await database.clear_files("data_keys")
        path = Path(url.removeprefix("sqlite:///"))
        if is_last:  # as `payrelay retention shrink` leaves the file
            written, path = path, path.with_suffix(".anew")
            with contextlib.closing(sqlite3.connect(written)) as connection:
                connection.execute("VACUUM INTO ?", (str(path),))
        return path.stat().st_size
    connection = await asyncpg.connect(url)
    if is_last:
        await connection.execute("VACUUM FULL")
    found: int = await connection.fetchval("SELECT pg_database_size(current_database())")
    await connection.close()
    return found


async def measured(urls: dict[Books, str], repeats: int) -> list[list[str]]:
    """Measures everything in all sizes; gives the rows of the table."""
    urls = {books: url for books, url in urls.items() if books != EMPTY}
    sizes = [Size(await growing_books.opened(url), books) for books, url in urls.items()]
    for size in sizes:
        await size.begin()
    rows = []
    acts = [size.acts() for size in sizes]
    for name in acts[0]:
        count = max(repeats // PAGES_EACH, REPEATS_MIN) if name.startswith("console") else repeats
        befores: list[Act] = [size.charge if name.endswith(BESIDE) else _nothing for size in sizes]
        found = await times_of([each[name] for each in acts], count, befores)
        rows += _rows(name, urls, found)
    for size in sizes:
        await size.database.close()
    return rows


async def _nothing() -> None:
    """Does nothing before an act."""


async def times_of(acts: list[Act], count: int, befores: list[Act]) -> list[Times]:
    """Does each of the acts so often, in turn, and measures it; the first tenth warms up and doesn't count.

    What comes before an act isn't measured.
    """
    taken: list[list[float]] = [[] for _ in acts]
    for turn in range(-(count // 10) - 1, count):
        for before, act, times in zip(befores, acts, taken, strict=True):
            await before()
            began_s = time.perf_counter()
            await act()
            if turn >= 0:
                times.append((time.perf_counter() - began_s) * 1_000)
    return [Times(statistics.median(each), statistics.quantiles(each, n=100)[98]) for each in taken]


def _rows(name: str, urls: dict[Books, str], found: list[Times]) -> list[list[str]]:
    """Gives a row for each size but the smallest, which it is compared with."""
    (_, smallest), *larger = zip(urls, found, strict=True)
    rows = []
    for books, times in larger:
        of_median, of_p99 = times.median / smallest.median, times.p99 / smallest.p99
        is_flat = of_median <= MEDIAN_MAX and of_p99 <= P99_MAX
        row = [name, f"{books.operations:,}"]
        row += [f"{smallest.median:.3f}", f"{times.median:.3f}", f"{of_median:.2f}"]
        row += [f"{smallest.p99:.3f}", f"{times.p99:.3f}", f"{of_p99:.2f}", "flat" if is_flat else "grows"]
        rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())
