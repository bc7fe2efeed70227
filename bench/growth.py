"""Measures whether a database with a million operations is as quick as one with ten thousand, and what it takes.

    PYTHONPATH=. python bench/growth.py [--operations 10000,1000000] [--repeats 2000] [--only sqlite] [--keep-docs]

Each size has a database of its own, filled in bulk by the journal's own rows (``bulk_books.py``). All are measured at
once: in each turn a thing is done once in every size, one after the other, so that whatever else the machine does
weighs on all of them. What counts is the ratio to the smallest. Nothing is cleared meanwhile, however old it is.

    PYTHONPATH=. python bench/growth.py --operations 10000,10000000 --keep-docs

measures ten million. One store is filled, measured and removed after the other. Each needs some 40 GB of disk.

    PYTHONPATH=. python bench/growth.py --operations 10000,10000000 --only sqlite --fill FOLDER
    PYTHONPATH=. python bench/growth.py --operations 10000,10000000 --only sqlite --filled FOLDER

fills on a machine that may be busy, and measures later on a quiet one. What was measured is removed: it has changed.
"""

import argparse
import contextlib
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

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
from clearing import KINDS, size_of
from console import asked
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
WHOLE: Final = "whole"
"""The file that says which sizes were filled, to the end."""
NEWEST_BYTES: Final = 8 << 30
"""Of a file. SQLite's has everything, and at its end are the rows of the last months and the indexes of all."""
READ_BYTES: Final = 1 << 24
EMPTY: Final = Books(0)
"""What a database takes without operations isn't theirs."""
BYTES_HEAD: Final = ["store", "operations", "bytes of each", "once finished", f"finished: at most {BYTES_MAX:,}"]
JOBS: Final = [job for job in worker.JOBS if job.do is not worker.publish_events]
"""What a worker looks for in its first round, without sending events: nobody takes them here."""
COUNT: Final = Statement(query("SELECT count(*) FROM operations"), ())
HEAD: Final = [
    *("store", "what", "operations", "median of the smallest", "median", "ratio"),
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
        await asked(self._window, address)


def main() -> int:
    """Measures, prints, and writes a section of the docs for each store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", default=SIZES, help=f"sizes by comma, the smallest first ({SIZES})")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--only", default=",".join(STORES), help=f"which stores, by comma ({','.join(STORES)})")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    apart = parser.add_mutually_exclusive_group()
    apart.add_argument("--fill", type=Path, metavar="FOLDER", help="only fill, and keep the databases in this folder")
    apart.add_argument("--filled", type=Path, metavar="FOLDER", help="measure what --fill left there, and remove it")
    wanted = parser.parse_args()
    if wanted.repeats < REPEATS_MIN:
        parser.error(f"--repeats must be at least {REPEATS_MIN}")
    sizes = [Books(int(each)) for each in wanted.operations.split(",")]
    if wanted.fill is not None:
        for store in wanted.only.split(","):
            _fill_apart(store, sizes, wanted.fill.resolve() / store)
        return 0
    for store in wanted.only.split(","):
        lines = _told(store, sizes, wanted.repeats, wanted.filled)
        print("\n".join(lines))
        if not wanted.keep_docs:
            section.write(f"growth_{store}", lines, program="growth")
    return 0


def _told(store: str, sizes: list[Books], repeats: int, kept: Path | None) -> list[str]:
    """Measures one store, and gives its two tables."""
    rows = [HEAD, ["---", "---", *["---:"] * (len(HEAD) - 3), "---"]]
    taken = [BYTES_HEAD, ["---", *["---:"] * (len(BYTES_HEAD) - 2), "---"]]
    with _filled(store, sizes, kept) as urls:
        full = uvloop.run(bytes_of(urls))
        rows += uvloop.run(measured(store, urls, repeats))
        end = uvloop.run(bytes_in_the_end(urls[sizes[0]], urls[EMPTY]))
    taken += [[store, f"{each.operations:,}", f"{full[each]:,}", "-", "-"] for each in sizes]
    taken[2][-2:] = [f"{end:,}", "met" if end <= BYTES_MAX else "short"]
    return [*_lines(rows), "", *_lines(taken)]


def _lines(rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in rows]


def _fill_apart(store: str, sizes: list[Books], folder: Path) -> None:
    """Fills a database of each size, and of none, to be measured later; the folder must be new."""
    folder.mkdir(parents=True)
    with _served(store, sizes, folder) as urls:
        for books, url in urls.items():
            uvloop.run(bulk_books.fill(url, books, partial(_tell, books, time.monotonic())))
    (folder / WHOLE).write_text(_text(sizes))


@contextlib.contextmanager
def _filled(store: str, sizes: list[Books], kept: Path | None) -> Iterator[dict[Books, str]]:
    """Gives the addresses of a database of each size, and of none, while they are there: one store a time.

    Fills them, unless that was done apart. Raises ProgramError where what is kept isn't whole, or has other sizes.
    """
    with contextlib.ExitStack() as stack:
        if kept is None:
            # Not /tmp, which may be memory: a durable write must cost here what it costs in service.
            kept = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp")))
            kept.chmod(0o711)  # the database runs as a user of its own when the bench is root
            _fill_apart(store, sizes, kept / store)
        folder = kept.resolve() / store
        whole = folder / WHOLE
        if not whole.exists() or whole.read_text() != _text(sizes):
            raise programs.ProgramError(f"{folder} doesn't have databases of {_text(sizes)} operations that are whole")
        whole.unlink()  # whatever happens, they are measured once
        with _served(store, sizes, folder) as urls:
            _read_newest(folder)
            yield urls
        shutil.rmtree(folder)


@contextlib.contextmanager
def _served(store: str, sizes: list[Books], folder: Path) -> Iterator[dict[Books, str]]:
    """Gives the addresses of the databases in a folder; makes those of PostgreSQL where they aren't there yet."""
    names = {books: f"growth_{books.operations}" for books in (EMPTY, *sizes)}
    if store == "sqlite":
        yield {books: sqlite_url(folder / f"{name}.db") for books, name in names.items()}
        return
    cluster = postgresql.Cluster(folder)
    with cluster.running(programs.cores().load):
        yield {books: cluster.make(name) for books, name in names.items()}


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


def _text(sizes: list[Books]) -> str:
    return ",".join(str(books.operations) for books in sizes)


def _tell(books: Books, began_s: float, number: int) -> None:
    if number % 100_000 == 0:
        print(f"{number:,} of {books.operations:,} after {time.monotonic() - began_s:.0f} s", file=sys.stderr)


async def bytes_of(urls: dict[Books, str]) -> dict[Books, int]:
    """Gives what each operation of a database takes; what one without operations takes isn't theirs."""
    sizes = {}
    for books, url in urls.items():
        database = await growing_books.opened(url)
        sizes[books] = await size_of(database, url.removeprefix("sqlite:///"))
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
    size = await size_of(database, url.removeprefix("sqlite:///"), is_last=True)
    [[operations]] = await database.read(all_rows(COUNT))
    await database.close()
    return size, int(str(operations))


async def measured(store: str, urls: dict[Books, str], repeats: int) -> list[list[str]]:
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
        rows += _rows(store, name, urls, found)
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


def _rows(store: str, name: str, urls: dict[Books, str], found: list[Times]) -> list[list[str]]:
    """Gives a row for each size but the smallest, which it is compared with."""
    (_, smallest), *larger = zip(urls, found, strict=True)
    rows = []
    for books, times in larger:
        of_median, of_p99 = times.median / smallest.median, times.p99 / smallest.p99
        is_flat = of_median <= MEDIAN_MAX and of_p99 <= P99_MAX
        row = [store, name, f"{books.operations:,}"]
        row += [f"{smallest.median:.3f} ms", f"{times.median:.3f} ms", f"{of_median:.2f}"]
        row += [f"{smallest.p99:.3f} ms", f"{times.p99:.3f} ms", f"{of_p99:.2f}", "flat" if is_flat else "grows"]
        rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())
