"""Measures how long charges take beside a client that lists a rare state, in a database of a million operations.

    python bench/lists.py [--charges 1000] [--only sqlite,postgresql] [--keep-docs]

A charge here is its intent: what is on disk before anything is sent. It is measured alone, then beside the client, and
then beside the client as it was served before lists had indexes and a place of their own: the database reads all
operations, by the connections that charges use. The ratios to the first are what counts.
"""

# ruff: noqa: S608 - all texts are our own

import argparse
import asyncio
import contextlib
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple

import asyncpg
import msgspec
import uvloop
from tests.digests import CHAIN_KEY, digests_of
from tests.samples import OPERATION
from tests.store.million.filling import fill_postgresql, fill_sqlite

import postgresql
import programs
import section
from payrelay.clock import Clock
from payrelay.core.calls import Charge
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import JournalEntry, State
from payrelay.errors import StoreUnavailable
from payrelay.store import open_database
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.journal import Journal
from payrelay.store.statements.pagination import read_page
from payrelay.store.statements.payments.operations import LIST_OPERATIONS, READ_COLUMNS

STORES: Final = ("sqlite", "postgresql")
CHARGES: Final = 1_000
ROUNDS: Final = 3
"""Medians of their figures and ratios count. The client as before is measured once: it takes minutes."""
BEFORE_MAX: Final = 5
"""Charges beside the client as before: each may take seconds. Their p99 is the longest."""
CALL: Final = Charge(
    authorize=False, order_id="A-1", items="Toy car", currency="LKR", amount_minor=100_000, customer_token="T" * 32
)
SCAN: Final = Statement(
    query(f"SELECT {READ_COLUMNS} FROM operations WHERE state || '' = $1 ORDER BY id DESC LIMIT $2"),
    (State.HELD, 100),
)
HEAD: Final = ["store", "charges beside", "p50", "p99", "p50 to alone", "p99 to alone"]


class Times(NamedTuple):
    """How long charges took, in milliseconds."""

    p50: float
    p99: float


def main() -> int:
    """Measures, prints, and writes its section of the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--charges", type=int, default=CHARGES)
    parser.add_argument("--only", default=",".join(STORES), help=f"which stores, by comma ({','.join(STORES)})")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    wanted = parser.parse_args()
    rows = [HEAD, ["---", "---", *["---:"] * (len(HEAD) - 2)]]
    for store in wanted.only.split(","):
        for row in measured_on(store, wanted.charges):
            rows.append(row)
            print("   ".join(row))
    if not wanted.keep_docs:
        section.write("lists", [f"| {' | '.join(row)} |" for row in rows])
    return 0


def measured_on(store: str, charges: int) -> list[list[str]]:
    """Fills a database, and measures in it; gives the rows of the table."""
    with contextlib.ExitStack() as stack:
        # Not /tmp, which may be memory: a durable write must cost here what it costs in service.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp")))
        if store == "postgresql":
            folder.chmod(0o711)
            cluster = postgresql.Cluster(folder)
            stack.enter_context(cluster.running(programs.cores().load))
            url = cluster.url
        else:
            url = f"sqlite:///{folder}/payrelay.db"
        uvloop.run(filled(url))
        return uvloop.run(measured(store, url, charges))


async def filled(url: str) -> None:
    """Makes the database of a million operations."""
    await (await open_database(url, clock=Clock(), owner=True)).close()
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        fill_sqlite(connection)
        connection.close()
        return
    shared = await asyncpg.connect(url)
    await fill_postgresql(shared)
    await shared.close()


async def measured(store: str, url: str, count: int) -> list[list[str]]:
    """Measures charges alone, beside the client, and beside it as it was."""
    database = await open_database(url, clock=Clock(), owner=True)
    charges = Charges(database)
    await charges.times(count)

    async def list_rare() -> None:
        await read_page(database, LIST_OPERATIONS, {"state": State.HELD}, before=None, limit=100)

    async def scan() -> None:
        await database.read(all_rows(SCAN))

    rounds: list[tuple[Times, Times, Times]] = []
    for _ in range(ROUNDS):
        alone = await charges.times(count)
        now = await charges.times_beside(list_rare, count)
        before = rounds[0][2] if rounds else await charges.times_beside(scan, min(count, BEFORE_MAX))
        rounds.append((alone, now, before))
    await database.close()
    rows = []
    for number, beside in enumerate(("nothing", "the client", "the client, as before")):
        of_p50, of_p99 = ([each[number][at] for each in rounds] for at in (0, 1))
        ratios = ([each[number][at] / each[0][at] for each in rounds] for at in (0, 1))
        rows.append(
            [
                *(store, beside, f"{statistics.median(of_p50):.2f} ms", f"{statistics.median(of_p99):.2f} ms"),
                *(f"{statistics.median(each):,.2f}" for each in ratios),
            ]
        )
    return rows


class Charges:
    """Stores one intent after the other, and measures each."""

    def __init__(self, database: Database) -> None:
        self._journal = Journal(database, Seal((b"k" * 32,)), digests_of(database), chain_key=CHAIN_KEY)
        self._number = 0

    async def times(self, count: int) -> Times:
        """Stores so many intents."""
        taken = [await self._one() for _ in range(count)]
        return Times(statistics.median(taken), statistics.quantiles(taken, n=100, method="inclusive")[98])

    async def times_beside(self, listed: Callable[[], Awaitable[None]], count: int) -> Times:
        """Stores so many intents while a client lists again and again."""
        client = asyncio.create_task(again(listed))
        try:
            return await self.times(count)
        finally:
            client.cancel()
            await asyncio.wait([client])

    async def _one(self) -> float:
        self._number += 1
        name = f"bench-{self._number}"
        new = msgspec.structs.replace(
            OPERATION,
            id=f"op_9{self._number:025d}",
            claim=f"key/{name}",
            idempotency_key=name,
            guard=f"order/{name}",
            subject=f"order/{name}",
            order_id=name,
        )
        entry = JournalEntry(version=1, at_ms=1_000, event=None, state=new.state, evidence=Evidence())
        began_s = time.perf_counter()
        await self._journal.accept(new, entry, CALL, conflicts_with=None, now_ms=1_000)
        return (time.perf_counter() - began_s) * 1_000


async def again(listed: Callable[[], Awaitable[None]]) -> None:
    """Lists without a pause."""
    while True:
        with contextlib.suppress(StoreUnavailable):
            await listed()
        await asyncio.sleep(0)


if __name__ == "__main__":
    sys.exit(main())
