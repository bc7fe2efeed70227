"""Fills a database with growing books in bulk: rows that the journal's own code makes, stored without a sync each.

Several processes make rows: digests, seals, chains and events are those that the journal stores. One process inserts
them, in the order of their times. Indexes of what is random are made when most rows are there: a row would change a
page of its own in each. The last rows find them, so that their pages are split as those of an index that grew. What the
real flows add is added by them in the end. A database that is being filled is lost where the program dies.
"""

import asyncio
import contextlib
import multiprocessing
import os
import re
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Final, NamedTuple, Protocol

import asyncpg
import msgspec
from tests.flows.console.books import everything
from tests.flows.console.desk import START_MS, Desk
from tests.relays import CHAIN_KEY, SEAL

from growing_books import CALL, DAY_MS, FIRST_PAYMENT, Books, changed_by, entry_of, finished, opened
from payrelay.core.events.event import of_operation
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Value
from payrelay.store.events import outbox
from payrelay.store.events.feed import EVENTS
from payrelay.store.payments.operation_rows import OperationRows
from payrelay.store.statements.payments.operations import OPERATIONS

CHUNK: Final = 2_000
"""Operations that one process makes at a time."""
AHEAD: Final = 2
"""Chunks for each process that are made before they are inserted: few, so that memory doesn't grow."""
COMMIT_EVERY: Final = 50
"""Chunks of one transaction."""
TABLES: Final = {
    "operations": f"{OPERATIONS.listed}, sealed_call, sealed_answer, row_digest",
    "history": "operation_id, version, at_ms, event, state, evidence, row_digest, answer_digest, hash",
    "events": "position, id, type, account, merchant, principal, subject, at_ms, data, row_digest",
}
"""The tables that are filled, with their columns in the order of the rows."""
RANDOM: Final = re.compile(
    r"CREATE (?:UNIQUE )?INDEX (\S+) ON (?:public\.)?operations (?:USING btree )?"
    r"\((?:claim|idempotency_key|request_id)\b"
)
"""Indexes in whose order the rows don't come."""
INDEXED_AT: Final = 15 / 16
"""The part of the rows after which these indexes are made."""
EVENTS_SINCE_MS: Final = START_MS - 30 * DAY_MS
"""Older events are forgotten, and keep their positions."""

_CLAIM: Final = OPERATIONS.columns.index("claim")
_CLAIM_ENDS: Final = OPERATIONS.columns.index("claim_ends_at_ms")

Rows = list[list[Value]]


class Chunk(NamedTuple):
    """The rows of some operations in a row; of events that nobody keeps any more there is None."""

    operations: Rows
    history: Rows
    events: list[list[Value] | None]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder().decode


def made(books: Books, first: int, behind: int) -> bytes:
    """Makes the rows of some operations, in a process of its own: as the journal would, and as the worker leaves them.

    A claim that has lapsed is given back, and an event that is too old is forgotten.
    """
    rows, key = OperationRows(SEAL, CHAIN_KEY), RowKey(CHAIN_KEY)
    chunk = Chunk([], [], [])
    for number in range(first, behind):
        new = books.new(number)
        entry = entry_of(new)
        accepted, (*_, sealed_call, at_ms, event, evidence, row_digest, _) = rows.accepted(new, entry, CALL)
        line: list[Value] = [new.id, 1, at_ms, event, new.state, evidence, row_digest, "", accepted.chain]
        chunk.history.append(line)
        changed, entry, answer = changed_by(accepted, books.event(number), str(FIRST_PAYMENT + number))
        stored, statement = rows.changed(changed, entry, answer)
        sealed_answer, at_ms, event, evidence, _, _, row_digest, answer_digest, _, digest = statement.parameters[9:19]
        line = [new.id, 2, at_ms, event, stored.state, evidence, row_digest, answer_digest, stored.chain]
        chunk.history.append(line)
        columns = list(OPERATIONS.row(stored))
        ends_at_ms = stored.claim_ends_at_ms
        if ends_at_ms is not None and ends_at_ms <= START_MS:
            columns[_CLAIM] = columns[_CLAIM_ENDS] = None
        chunk.operations.append([*columns, sealed_call, sealed_answer, digest])
        told = of_operation(stored, entry)
        if told is not None:
            unpublished = outbox.parameters_of(told, key)[:-1]  # its digest has the position, which isn't known here
            chunk.events.append(list(unpublished) if told.at_ms >= EVENTS_SINCE_MS else None)
    return _encode(chunk)


class Sink(Protocol):
    """Takes rows into the tables of one database."""

    async def put(self, rows: dict[str, Rows]) -> None:
        """Inserts rows, by the names of their tables."""

    async def index(self) -> None:
        """Makes the indexes that were left out."""

    async def end(self, position: int) -> None:
        """Lets the feed go on behind the last event."""


async def fill(url: str, books: Books) -> None:
    """Makes a database, fills it, and brings it to where a worker leaves it."""
    database = await opened(url)  # makes the schema
    await database.close()
    key = RowKey(CHAIN_KEY)
    async with _sink(url) as sink:
        position, is_indexed = 0, False
        async for behind, chunk in _chunks(books):
            events = Rows()
            for position, event in enumerate(chunk.events, position + 1):  # noqa: B020 - it goes on
                if event is not None:
                    published = (position, *event)
                    events.append([*published, key.of(EVENTS, published)])
            await sink.put({"operations": chunk.operations, "history": chunk.history, "events": events})
            if not is_indexed and behind >= INDEXED_AT * books.operations:
                await sink.index()
                is_indexed = True
        await sink.end(position)
    database = await opened(url)
    desk = Desk(database)
    await everything(desk)
    await finished(desk.relay, START_MS)
    await database.close()


async def _chunks(books: Books) -> AsyncIterator[tuple[int, Chunk]]:
    """Gives all rows in their order, each chunk with the number behind its last operation."""
    if books.operations <= CHUNK:
        yield books.operations, Chunk(*_decode(made(books, 0, books.operations)))
        return
    loop = asyncio.get_running_loop()
    processes = max(1, len(os.sched_getaffinity(0)))
    waiting: deque[tuple[int, asyncio.Future[bytes]]] = deque()
    # Spawned, because this process has threads and an event loop.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for first in range(0, books.operations, CHUNK):
            behind = min(first + CHUNK, books.operations)
            waiting.append((behind, loop.run_in_executor(pool, made, books, first, behind)))
            if len(waiting) > processes * AHEAD:
                number, making = waiting.popleft()
                yield number, Chunk(*_decode(await making))
        for number, making in waiting:
            yield number, Chunk(*_decode(await making))


@contextlib.asynccontextmanager
async def _sink(url: str) -> AsyncIterator[Sink]:
    if url.startswith("sqlite"):
        with _sqlite_sink(url.removeprefix("sqlite:///")) as sink:
            yield sink
    else:
        async with _postgresql_sink(url) as sink:
            yield sink


def _random(texts: Iterable[str]) -> dict[str, str]:
    """Gives those of some indexes in whose order the rows don't come, by their names; RuntimeError unless three."""
    found = {match[1]: text for text in texts if (match := RANDOM.match(text))}
    if len(found) != 3:
        raise RuntimeError(f"the schema has other indexes of what is random than three: {', '.join(found)}")
    return found


class _Sqlite:
    """The sink of an embedded database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._puts = 0
        texts = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
        self._indexes = _random(text for (text,) in texts)
        # With an index its statistics go, which are fixed.
        self._statistics = connection.execute("SELECT tbl, idx, stat FROM sqlite_stat1").fetchall()
        connection.execute("BEGIN")
        for name in self._indexes:
            connection.execute(f"DROP INDEX {name}")

    async def put(self, rows: dict[str, Rows]) -> None:
        """Inserts rows, in transactions of many."""
        for table, each in rows.items():
            columns = TABLES[table]
            places = ", ".join("?" * (columns.count(",") + 1))
            self._connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", each)  # noqa: S608
        self._puts += 1
        if self._puts % COMMIT_EVERY == 0:
            self._connection.execute("COMMIT")
            self._connection.execute("BEGIN")

    async def index(self) -> None:
        """Makes the indexes, with their statistics."""
        for text in self._indexes.values():
            self._connection.execute(text)
        self._connection.execute("DELETE FROM sqlite_stat1")
        self._connection.executemany("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", self._statistics)

    async def end(self, position: int) -> None:
        """Lets the feed go on behind the last event."""
        self._connection.execute("UPDATE feed SET position = ?", (position,))
        self._connection.execute("COMMIT")


@contextlib.contextmanager
def _sqlite_sink(path: str) -> Iterator[Sink]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -1000000"):
            connection.execute(f"PRAGMA {pragma}")
        yield _Sqlite(connection)


class _Postgresql:
    """The sink of a shared database."""

    def __init__(self, connection: asyncpg.Connection, indexes: dict[str, str]) -> None:
        self._connection = connection
        self._indexes = indexes

    async def put(self, rows: dict[str, Rows]) -> None:
        """Copies rows in."""
        for table, each in rows.items():
            await self._connection.copy_records_to_table(table, records=each, columns=TABLES[table].split(", "))

    async def index(self) -> None:
        """Makes the indexes."""
        for text in self._indexes.values():
            await self._connection.execute(text)

    async def end(self, position: int) -> None:
        """Lets the feed go on behind the last event."""
        await self._connection.execute("UPDATE feed SET position = $1", position)


@contextlib.asynccontextmanager
async def _postgresql_sink(url: str) -> AsyncIterator[Sink]:
    connection = await asyncpg.connect(url)
    # Rows refer to each other, and need not be looked up.
    for setting in ("synchronous_commit = off", "session_replication_role = replica", "maintenance_work_mem = '512MB'"):
        await connection.execute(f"SET {setting}")
    await _set(connection, "ALTER SYSTEM SET max_wal_size = '4GB'")
    texts = await connection.fetch("SELECT pg_get_indexdef(indexrelid) FROM pg_index")
    indexes = _random(text for (text,) in texts)
    for name in indexes:
        await connection.execute(f"DROP INDEX {name}")
    yield _Postgresql(connection, indexes)
    await _set(connection, "ALTER SYSTEM RESET max_wal_size")
    await connection.execute("VACUUM ANALYZE")  # which the server would do by itself in a while
    await connection.close()


async def _set(connection: asyncpg.Connection, setting: str) -> None:
    await connection.execute(setting)
    await connection.execute("SELECT pg_reload_conf()")
