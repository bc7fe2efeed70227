"""A charge on PostgreSQL waits for two syncs of the disk: of its intent before the call, and of its outcome after it.

The server counts the syncs of its log. Nothing but the charges writes here: no worker, and no publishing of events.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.flows.world import World, asked
from tests.needed import lacking
from tests.postgresql_server import PostgresqlServer, ProgramsMissing, running_postgresql

from payrelay.clock import Clock
from payrelay.flows.payments.charge import charge
from payrelay.store import Connecting, open_database
from payrelay.store.engine.database import Database, Row, Statement, Value, all_rows
from payrelay.store.engine.queries import query

pytestmark = [pytest.mark.postgresql, pytest.mark.integration]

CHARGES: Final = 40
OTHERS_MAX: Final = 4
"""What the server may sync on its own meanwhile."""
ONE_SESSION: Final = Connecting(pool_size=1)


@pytest.fixture(scope="module")
def syncing_server() -> Iterator[PostgresqlServer]:
    """Starts a server that syncs, as those of the other tests don't."""
    try:
        with running_postgresql() as server:
            server.stop()
            server.start("fsync=on", "checkpoint_timeout=1h", "wal_writer_delay=10s")
            yield server
    except ProgramsMissing as missing:
        lacking(str(missing))


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Database]:
    database = await open_database(url, clock=Clock(), owner=True, connecting=ONE_SESSION)
    try:
        yield database
    finally:
        await database.close()


async def _value(database: Database, sql: str) -> Value:
    rows: list[Row] = await database.read(all_rows(Statement(query(sql), ())))
    return rows[0][0] if rows else None


async def _syncs(database: Database) -> int:
    """Reads how often the server has synced its log; its session tells of its own syncs only now and then."""
    await _value(database, "SELECT pg_stat_force_next_flush()::text")
    has_column = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'pg_stat_wal'::regclass AND attname = 'wal_sync'"
    if await _value(database, has_column):
        return int(await _value(database, "SELECT wal_sync FROM pg_stat_wal") or 0)
    return int(await _value(database, "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'") or 0)


async def _syncs_of_charges(database: Database, path: Path) -> int:
    """Makes charges one after the other; gives how often the server synced meanwhile."""
    world = World(database, path)
    before = await _syncs(database)
    for number in range(CHARGES):
        await charge(world.relay, asked(world.relay, f"k-{number}"), world.charge_of(number))
    await world.relay.background.finish(0)
    assert len(world.account.ledger) == CHARGES
    return await _syncs(database) - before


async def test_each_charge_is_synced_twice(syncing_server: PostgresqlServer, tmp_path: Path) -> None:
    """Less would lose what was sent or told at a loss of power, and more would make each client wait longer."""
    syncing_server.create("synced")
    async with _opened(syncing_server.url("synced")) as database:
        assert 2 * CHARGES <= await _syncs_of_charges(database, tmp_path) <= 2 * CHARGES + OTHERS_MAX


async def test_a_session_that_does_not_wait_is_noticed(syncing_server: PostgresqlServer, tmp_path: Path) -> None:
    """So the test above would fail, should a setting or a release of ours let commits go on unsynced."""
    syncing_server.create("unsynced")
    async with _opened(syncing_server.url("unsynced")) as database:
        await _value(database, "SET synchronous_commit = off")  # no setting turns it off: see ``sessions``
        assert await _syncs_of_charges(database, tmp_path) < CHARGES


async def test_a_server_that_does_not_sync_is_noticed(postgresql_url: str, tmp_path: Path) -> None:
    """The server of the other tests has ``fsync = off``."""
    async with _opened(postgresql_url) as database:
        assert await _syncs_of_charges(database, tmp_path) == 0
