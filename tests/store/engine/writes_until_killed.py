"""Accepts operations as fast as it can, and prints the id of each when it is acknowledged. To be killed.

With a folder behind the address, the folder gets what a loss of power would leave of the files; with ``unsynced``
behind that, SQLite leaves out its syncs.
"""

import asyncio
import sys
from pathlib import Path

import msgspec
from tests.store.engine.forgetting_vfs import ForgettingSystem

from payrelay.clock import Clock
from payrelay.core.calls import CancelSubscription
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import JournalEntry, Kind, Operation, State
from payrelay.store import open_database
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.sealing import Seal
from payrelay.store.engine.sqlite import Sqlite
from payrelay.store.payments.journal import Journal

AT_ONCE = 8
FIRST = Operation(
    id="",
    account="gateway",
    merchant="0123456789abcdef",
    principal="shop",
    kind=Kind.CANCEL,
    state=State.SENDING,
    version=1,
    subject="",
    guard=None,
    claim=None,
    claim_ends_at_ms=None,
    idempotency_key=None,
    fingerprint="f" * 64,
    request_id="req_1",
    order_id=None,
    payment_id=None,
    subscription_id=None,
    amount_minor=None,
    currency=None,
    result_ref=None,
    created_at_ms=1,
    updated_at_ms=1,
    send_by_ms=1,
)


async def _write(journal: Journal, worker: int) -> None:
    number = 0
    while True:
        operation = msgspec.structs.replace(FIRST, id=f"op_{worker}_{number}", guard=f"subscription/{worker}-{number}")
        line = JournalEntry(version=1, at_ms=1, event=None, state=State.SENDING, evidence=Evidence())
        await journal.accept(operation, line, CancelSubscription(subscription_id=1), conflicts_with=None, now_ms=1)
        sys.stdout.write(f"{operation.id}\n")
        sys.stdout.flush()
        number += 1


async def _main(url: str, folder: str = "", unsynced: str = "") -> None:
    if folder:
        ForgettingSystem(Path(folder))
    database = await open_database(url, clock=Clock(), owner=True)
    if unsynced:
        assert isinstance(database, Sqlite)
        database._writer.execute("PRAGMA synchronous = OFF")  # no setting turns it off
    journal = Journal(database, Seal((b"k" * 32,)), RowDigests(database, b"c" * 32, Clock()), chain_key=b"c" * 32)
    await asyncio.gather(*[_write(journal, worker) for worker in range(AT_ONCE)])


asyncio.run(_main(*sys.argv[1:]))
