"""Measures the reconciliation of a month with a million payments, and that its memory does not grow with them.

    PYTHONPATH=. python bench/reconciliation.py [--payments 10000,1000000] [--keep-docs]

Each size has a database of its own: so many charges of a month, and one file of the gateway's with a line for each. Of
every thousand lines one is missing, and one has another amount. The file is read, each day is compared, and the month
is written as a journal, by the flows that the commands call. Each of the three runs in a process of its own, whose peak
of memory is what the system says. The program ends with an error unless exactly what was planted is found.
"""

# ruff: noqa: S608 - all texts are our own

import argparse
import hashlib
import multiprocessing
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog
import uvloop
from tests.databases import sqlite_url
from tests.digests import CHAIN_KEY
from tests.relays import relay_over
from tests.samples import OPERATION

import section
from payrelay.clock import Clock
from payrelay.console.flows.parts import Actor
from payrelay.core.money import decimal_text
from payrelay.core.payments.operation import Kind, Operation, Retention, State
from payrelay.flows.relay import Relay
from payrelay.reconciliation.flows.export import journal_days
from payrelay.reconciliation.flows.import_statement import Completeness, FileToImport, import_file, say_complete
from payrelay.reconciliation.flows.run_day import run_day
from payrelay.reconciliation.flows.scope import BooksScope
from payrelay.reconciliation.rules.entries import Zone, days_between
from payrelay.reconciliation.rules.files.profiles import BUILT_IN
from payrelay.reconciliation.rules.journal import BooksJournal
from payrelay.reconciliation.rules.verdicts import BooksVerdict
from payrelay.store import open_database
from payrelay.store.digests.rows import OPERATIONS, RowKey
from payrelay.store.statements.payments.operations import OPERATION_COLUMNS

SIZES: Final = "10000,1000000"
FIRST: Final = date(2025, 9, 1)
DAYS: Final = 30
PLANTED_EACH: Final = 1_000
BATCH: Final = 10_000
ZONE: Final = Zone("Asia/Colombo")
MERCHANT: Final = "1210000"
SCOPE: Final = BooksScope(account="gateway", merchant=MERCHANT, zone=ZONE, gateway_zone=ZONE.name)
BENCH: Final = Actor("bench")
LOG: Final = structlog.wrap_logger(None, processors=[], wrapper_class=structlog.make_filtering_bound_logger("critical"))
RETENTION: Final = Retention(keyed_ms=60_000, unkeyed_ms=60_000)
MIB: Final = 1024
HEAD: Final = ["payments", "step", "time", "processor time", "of a payment", "peak of memory"]


class Done(NamedTuple):
    """How long a step took, its processor time, the peak of its process's memory, and what it came to."""

    seconds: float
    cpu_s: float
    peak_mib: float
    found: dict[str, int]


class Month(NamedTuple):
    """A month of payments: its size, its database and its file."""

    payments: int
    folder: Path

    @property
    def database(self) -> Path:
        """Gives the file of the database."""
        return self.folder / f"{self.payments}.db"

    @property
    def statement(self) -> Path:
        """Gives the gateway's file."""
        return self.folder / f"{self.payments}.csv"

    def day(self, number: int) -> date:
        """Gives the day of a payment: a thirtieth of them is on each."""
        return FIRST + timedelta(days=number * DAYS // self.payments)

    def at_ms(self, number: int) -> int:
        """Gives the time of a payment, between nine and twenty-one o'clock of its day."""
        return ZONE.begins_ms(self.day(number)) + 9 * 3_600_000 + number % 43_200 * 1_000

    def planted(self) -> dict[str, int]:
        """Gives what must be found."""
        each = self.payments // PLANTED_EACH
        return {
            BooksVerdict.AGREED: self.payments - 2 * each,
            BooksVerdict.ONLY_OURS: each,
            BooksVerdict.DIFFERENT: each,
        }


def main() -> int:
    """Measures, prints, and writes its section of the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--payments", default=SIZES, help="sizes of the month, by comma")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    wanted = parser.parse_args()
    rows = [HEAD, ["---:", "---", *["---:"] * (len(HEAD) - 2)]]
    for size in map(int, wanted.payments.split(",")):
        # Not /tmp, which may be memory.
        with tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp") as folder:
            month = Month(size, Path(folder))
            alone(filled, month)
            for name, step in (("read the file", imported), ("compare each day", compared), ("journal", written)):
                done = alone(step, month)
                if step is compared and done.found != month.planted():
                    raise RuntimeError(f"{month.planted()} was planted, and {done.found} was found")
                times = (f"{done.seconds:.1f} s", f"{done.cpu_s:.1f} s", f"{done.cpu_s / size * 1e6:.0f} µs")
                rows.append([f"{size:,}", name, *times, f"{done.peak_mib:.0f} MiB"])
                print("   ".join(rows[-1]), flush=True)
    if not wanted.keep_docs:
        section.write("reconciliation", [f"| {' | '.join(row)} |" for row in rows])
    return 0


def alone(step: Callable[[Month], Coroutine[None, None, dict[str, int]]], month: Month) -> Done:
    """Runs a step in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (step, month))


def _measured(step: Callable[[Month], Coroutine[None, None, dict[str, int]]], month: Month) -> Done:
    began_s, used_s = time.monotonic(), time.process_time()
    found = uvloop.run(step(month))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
    return Done(time.monotonic() - began_s, time.process_time() - used_s, peak, found)


async def filled(month: Month) -> dict[str, int]:
    """Makes the database and the file."""
    await (await open_database(sqlite_url(month.database), clock=Clock(), owner=True)).close()
    connection, key = sqlite3.connect(month.database), RowKey(CHAIN_KEY)
    places = ", ".join("?" * (OPERATION_COLUMNS.count(",") + 1))
    for first in range(0, month.payments, BATCH):
        rows = [msgspec.structs.astuple(each) for each in _charges(month, first)]
        connection.executemany(
            f"INSERT INTO operations ({OPERATION_COLUMNS}, row_digest, sealed_call) VALUES ({places}, ?, x'')",
            ((*row, key.of(OPERATIONS, row)) for row in rows),
        )
        connection.executemany(
            "INSERT INTO history (operation_id, version, at_ms, event, state, evidence, row_digest, hash)"
            " VALUES (?, 2, ?, 'succeeded', 'succeeded', '{}', '', ?)",
            ((row[0], row[-5], row[-2]) for row in rows),
        )
        connection.commit()
    connection.close()
    with month.statement.open("w") as file:
        file.write("payment_id,order_id,amount,currency,status,date\n")
        file.writelines(_lines(month))
    return {}


def _charges(month: Month, first: int) -> Iterator[Operation]:
    for number in range(first, min(first + BATCH, month.payments)):
        at_ms = month.at_ms(number)
        yield msgspec.structs.replace(
            OPERATION,
            id=f"op_{at_ms:012x}{number:020x}",
            account=SCOPE.account,
            merchant=MERCHANT,
            kind=Kind.CHARGE,
            state=State.SUCCEEDED,
            version=2,
            subject=f"order/O-{number}",
            guard=None,
            claim=None,
            claim_ends_at_ms=None,
            idempotency_key=None,
            order_id=f"O-{number}",
            payment_id=str(320_025_000_000 + number),
            amount_minor=100 + number % 100_000,
            currency="LKR",
            created_at_ms=at_ms,
            updated_at_ms=at_ms + 900,
            send_by_ms=at_ms + 5_000,
            chain=hashlib.sha256(str(number).encode()).hexdigest(),
        )


def _lines(month: Month) -> Iterator[str]:
    for number in range(month.payments):
        left = number % PLANTED_EACH
        if left != 1:
            amount = decimal_text(100 + number % 100_000 + (left == 2))
            second = 32_400 + number % 43_200
            at = f"{second // 3_600:02}:{second // 60 % 60:02}:{second % 60:02}"
            day = month.day(number)
            yield f"{320_025_000_000 + number},O-{number},{amount},LKR,RECEIVED,{day} {at}\n"


async def imported(month: Month) -> dict[str, int]:
    """Reads the file, and says that it has everything of the month."""
    relay = await _relay(month)
    with month.statement.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    file = FileToImport(
        name=month.statement.name, digest=digest, profile=BUILT_IN["payments"], opened=lambda: _read(month.statement)
    )
    read = await import_file(relay, SCOPE, file, BENCH)
    said = Completeness(first=FIRST, last=FIRST + timedelta(days=DAYS - 1))
    await say_complete(relay, SCOPE, [read], said, BENCH)
    return {"new": read.new}


def _read(path: Path) -> Iterator[str]:
    with path.open(newline="") as opened:
        yield from opened


async def compared(month: Month) -> dict[str, int]:
    """Compares each day, and counts what was found."""
    relay, found = await _relay(month), dict[str, int]()
    for day in days_between(FIRST, FIRST + timedelta(days=DAYS - 1)):
        for each in (await run_day(relay, SCOPE, day)).sums:
            found[each.verdict] = found.get(each.verdict, 0) + each.count
    return found


async def written(month: Month) -> dict[str, int]:
    """Writes the month as a journal, to nowhere."""
    relay, journal, lines = await _relay(month), BooksJournal("gateway"), 0
    async for each in journal_days(relay, SCOPE, FIRST, FIRST + timedelta(days=DAYS - 1)):
        lines += sum(1 for _ in journal.day(each))
    return {"lines": lines}


async def _relay(month: Month) -> Relay:
    database = await open_database(sqlite_url(month.database), clock=Clock(), owner=False)
    return relay_over(database, {}, clock=Clock(), log=LOG, retention=RETENTION)


if __name__ == "__main__":
    sys.exit(main())
