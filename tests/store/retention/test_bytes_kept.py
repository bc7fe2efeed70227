"""What an operation takes on the disk once all periods of retention are over: rows are kept for good."""

import asyncio
import hashlib
import sqlite3
from typing import Any, Final

import asyncpg
import msgspec
import pytest
from tests.digests import digests_of

from payrelay.core.answers import Answer
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.core.payments.operation import Event, Operation, Retention, advance
from payrelay.core.retention import Kept
from payrelay.flows.audit.audit import anchor
from payrelay.store.engine.sealing import Seal
from payrelay.store.events.feed import Feed
from payrelay.store.payments.audit import Trail
from payrelay.store.retention.clearing import Clearing

Book = Any  # conftest.Book; test folders are not packages, so that it can't be imported

OPERATIONS: Final = 2_000
TOGETHER: Final = 250
BYTES_MAX: Final = 1_500
DAY_MS: Final = 86_400_000
SEAL: Final = Seal((b"k" * 32,))
RETENTION: Final = Retention(keyed_ms=30 * DAY_MS, unkeyed_ms=DAY_MS, are_keys_free_again=False)
EVIDENCE: Final = Evidence(http_status=200, gateway_msg="Automatic payment charged successfully", elapsed_ms=731)
ANSWER: Final = Answer(http_status=200, body=b"{}" * 200)
_SIZE: Final = """
    SELECT sum(pg_total_relation_size(oid)) FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')"""


def charge(book: Book, number: int) -> Operation:
    """Gives a charge with ids as long as those of clients, of the gateway and of the service."""
    key, order = hashlib.sha256(f"{number}".encode()).hexdigest(), f"ORDER-2026-{number:09}"
    made: Operation = book.new(
        number,
        id=f"op_{number:012x}{key[:20]}",
        account="gateway",
        merchant="0123456789abcdef",
        claim=f"key/{key[:32]}",
        idempotency_key=key[:32],
        fingerprint=key,
        request_id=f"req_{key[:24]}",
        order_id=order,
        guard=f"order/{order}",
        subject=f"order/{order}",
        created_at_ms=1_000,
        updated_at_ms=1_000,
    )
    return made


async def store(book: Book, number: int) -> None:
    """Stores a charge that succeeds."""
    accepted = await book.accept(charge(book, number))
    changed, entry = advance(accepted.operation, Event.SUCCEEDED, at_ms=2_000, retention=RETENTION, evidence=EVIDENCE)
    paid = msgspec.structs.replace(changed, payment_id=str(320_025_000_000 + number))
    await book.journal.record(paid, entry, ANSWER)


async def clear(book: Book) -> None:
    """Does what a worker does of old data, until there is none."""
    feed = Feed(book.database, digests_of(book.database))
    while await feed.publish(10 * DAY_MS):
        pass
    while await feed.forget(20 * DAY_MS, TOGETHER):
        pass
    trail = Trail(book.database, SEAL, ChainKey(b"c" * 32))
    await anchor(trail, 10 * DAY_MS)
    clearing = Clearing(book.database, SEAL, digests_of(book.database), trail)
    for kept in (Kept.ANSWERS, Kept.CALLS, Kept.HISTORIES):
        is_done, cleared = False, 0
        while not is_done:
            batch = await clearing.clear(kept, 400 * DAY_MS, 900 * DAY_MS, limit=500)
            is_done, cleared = batch.is_done, cleared + batch.cleared
        assert cleared == OPERATIONS


async def size_of(url: str) -> int:
    """Measures tables and indexes without the room that is free in them."""
    if url.startswith("postgresql"):
        connection = await asyncpg.connect(url)
        for table in ("operations", "history", "events", "outbox"):
            await connection.execute(f"VACUUM FULL {table}")
        size = int(await connection.fetchval(_SIZE))
        await connection.close()
        return size
    file = sqlite3.connect(url.removeprefix("sqlite:///"))
    file.execute("VACUUM")
    [[pages, bytes_of_one]] = file.execute("SELECT page_count, page_size FROM pragma_page_count, pragma_page_size")
    file.close()
    return int(pages) * int(bytes_of_one)


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
async def test_a_finished_operation_takes_at_most_so_many_bytes(book: Book, url: str) -> None:
    """It is kept for good: a column or an index more is paid for by every payment that there ever was."""
    empty = await size_of(url)
    for first in range(0, OPERATIONS, TOGETHER):
        await asyncio.gather(*(store(book, number) for number in range(first, first + TOGETHER)))
    await clear(book)

    assert (await size_of(url) - empty) / OPERATIONS <= BYTES_MAX
