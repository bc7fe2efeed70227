"""Measures how fast old operations are cleared beside charges, and what an operation takes on the disk.

    python bench/clearing.py [--operations 5000] [--charges 20] [--only sqlite,postgresql]

It stores old operations as a charge leaves them: two journal entries, a call and an answer of a usual size. Then it
clears them as the worker does, batch by batch, while new charges are stored at a fixed pace. It prints the operations
that were cleared in a second, and how long a charge took to be stored without the clearing and beside it.
"""

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final, NamedTuple

import asyncpg
import msgspec
from tests.digests import digests_of
from tests.samples import OPERATION

import postgresql
from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.calls import Charge
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.core.payments.operation import Event, JournalEntry, Retention, State, advance
from payrelay.core.retention import Kept
from payrelay.flows.audit.audit import anchor
from payrelay.flows.retention.clear import clear_round
from payrelay.store import open_database
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.audit import Trail
from payrelay.store.payments.journal import AcceptedOperation, Journal
from payrelay.store.retention.clearing import Clearing

STORES: Final = ("sqlite", "postgresql")
KINDS: Final = [Kept.ANSWERS, Kept.CALLS, Kept.HISTORIES]
DAY_MS: Final = 86_400_000
SECRET: Final = b"c" * 32
SEAL: Final = Seal((b"k" * 32,))
CALL: Final = Charge(
    authorize=False,
    order_id="ORDER-2026-000001",
    items="Monthly plan of the gym, with a towel",
    currency="LKR",
    amount_minor=450_000,
    customer_token="59AFEE022CC69CA39D325E1B59130862",  # noqa: S106 - a made-up one
)
BODY: Final = msgspec.json.encode(
    {
        "status": 1,
        "msg": "Automatic payment charged successfully",
        "data": {
            "order_id": "ORDER-2026-000001",
            "items": "Monthly plan of the gym, with a towel",
            "currency": "LKR",
            "amount": 4500.0,
            "custom_1": None,
            "custom_2": None,
            "payment_id": 320025000005,
            "status_code": 2,
            "status_message": "Successfully completed the payment.",
            "md5sig": "0A1B2C3D4E5F60718293A4B5C6D7E8F9",
            "authorization_token": None,
        },
    }
)
ANSWER: Final = Answer(http_status=200, body=BODY)
EVIDENCE: Final = Evidence(http_status=200, gateway_msg="Automatic payment charged successfully", elapsed_ms=731)
RETENTION: Final = Retention(keyed_ms=30 * DAY_MS, unkeyed_ms=DAY_MS, are_keys_free_again=False)


class Measured(NamedTuple):
    """What one store came to."""

    cleared_s: float
    alone_ms: list[float]
    beside_ms: list[float]
    bytes_full: int
    bytes_cleared: int


def main() -> None:
    """Measures, and prints a line for each store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=5_000)
    parser.add_argument("--charges", type=int, default=20, help="new charges a second")
    parser.add_argument("--only", default=",".join(STORES))
    wanted = parser.parse_args()
    for store in wanted.only.split(","):
        found = asyncio.run(measured(store, wanted.operations, wanted.charges))
        alone, beside = (statistics.quantiles(each, n=20) for each in (found.alone_ms, found.beside_ms))
        print(
            f"{store}: {found.cleared_s:.0f} operations cleared a second, {found.cleared_s * 86_400 / 1e6:.1f} million"
            f" a day; a charge is stored in {alone[9]:.1f} ms (95 %: {alone[18]:.1f}), beside it in {beside[9]:.1f} ms"
            f" (95 %: {beside[18]:.1f}); an operation has {found.bytes_full} bytes, and {found.bytes_cleared} after"
        )


async def measured(store: str, operations: int, charges: int) -> Measured:
    """Fills a database, and clears it beside charges."""
    async with opened(store) as (database, url):
        rows = digests_of(database)
        journal = Journal(database, SEAL, rows, chain_key=SECRET)
        trail = Trail(database, SEAL, ChainKey(SECRET))
        clearing = Clearing(database, SEAL, rows, trail)
        now_ms = Clock().now_ms()
        empty = await size_of(database, url)
        await fill(journal, operations, now_ms - 500 * DAY_MS)
        while await anchor(trail, now_ms - 499 * DAY_MS):
            pass
        full = await size_of(database, url)
        alone_ms = await charge(journal, charges, 100, "a")
        times: list[float] = []
        beside = asyncio.create_task(charge(journal, charges, 10**6, "b", times_ms=times))
        began_s = time.monotonic()
        cleared = 0
        done: list[Kept] = []
        while len(done) < len(KINDS):
            number, done = await clear_round(clearing, KINDS, now_ms)
            cleared += number
            await asyncio.sleep(0.005)
        took_s = time.monotonic() - began_s
        beside.cancel()
        stored = operations + len(times) + len(alone_ms)
        after = await size_of(database, url, is_last=True)
        return Measured(
            cleared / len(KINDS) / took_s,
            alone_ms,
            times,
            (full - empty) // operations,
            (after - empty) // stored,
        )


async def fill(journal: Journal, number: int, at_ms: int) -> None:
    """Stores old operations, 50 at a time."""
    for first in range(0, number, 50):
        await asyncio.gather(
            *(
                store_one(journal, f"op_{at_ms + each:012x}{each:020x}", at_ms + each, each)
                for each in range(first, min(first + 50, number))
            )
        )


async def store_one(journal: Journal, id_: str, at_ms: int, number: int) -> None:
    """Stores an operation and its outcome."""
    key = f"key-{id_}"
    operation = msgspec.structs.replace(
        OPERATION,
        id=id_,
        state=State.SENDING,
        claim=f"key/{key}",
        idempotency_key=key,
        guard=f"order/{id_}",
        subject=f"order/{id_}",
        order_id=id_,
        payment_id=None,
        created_at_ms=at_ms,
        updated_at_ms=at_ms,
        send_by_ms=at_ms + 10_000,
        version=1,
        chain="",
    )
    entry = JournalEntry(version=1, at_ms=at_ms, event=None, state=State.SENDING, evidence=Evidence())
    accepted = await journal.accept(operation, entry, CALL, conflicts_with=None, now_ms=at_ms)
    assert isinstance(accepted, AcceptedOperation)
    changed, entry = advance(
        accepted.operation, Event.SUCCEEDED, at_ms=at_ms + 700, retention=RETENTION, evidence=EVIDENCE
    )
    changed = msgspec.structs.replace(changed, payment_id=str(320_025_000_000 + number))
    await journal.record(changed, entry, ANSWER)


async def charge(
    journal: Journal, a_second: int, number: int, prefix: str, *, times_ms: list[float] | None = None
) -> list[float]:
    """Stores new charges at a fixed pace; gives how long each took, in milliseconds."""
    times_ms = [] if times_ms is None else times_ms
    for each in range(number):
        now_ms = Clock().now_ms()
        began_s = time.monotonic()
        await store_one(journal, f"op_{now_ms:012x}{prefix}{each:019x}", now_ms, each)
        took_s = time.monotonic() - began_s
        times_ms.append(took_s * 1000)
        await asyncio.sleep(max(0.0, 1 / a_second - took_s))
    return times_ms


@asynccontextmanager
async def opened(store: str) -> AsyncIterator[tuple[Database, str]]:
    """Opens an empty database, and gives it with its address."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # noqa: ASYNC240 - nothing else runs yet
        if store == "sqlite":
            database = await open_database(f"sqlite:///{folder / 'bench.db'}", clock=Clock(), owner=True)
            yield database, str(folder / "bench.db")
            await database.close()
            return
        cluster = postgresql.Cluster(folder)
        with cluster.running(0):
            database = await open_database(cluster.url, clock=Clock(), owner=True)
            yield database, cluster.url
            await database.close()


async def size_of(database: Database, url: str, *, is_last: bool = False) -> int:
    """Measures a database in bytes; the last time without what a later row would take."""
    if not url.startswith("postgresql"):
        await database.clear_files("data_keys")
        measured = Path(url)
        if is_last:  # as `payrelay retention shrink` leaves the file
            measured = measured.with_suffix(".anew")
            with closing(sqlite3.connect(url)) as connection:
                connection.execute("VACUUM INTO ?", (str(measured),))
        return measured.stat().st_size
    connection = await asyncpg.connect(url)
    if is_last:
        await connection.execute("VACUUM FULL")
    found: int = await connection.fetchval("SELECT pg_database_size(current_database())")
    await connection.close()
    return found


if __name__ == "__main__":
    main()
