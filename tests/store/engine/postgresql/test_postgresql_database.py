import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from payrelay.clock import Clock
from payrelay.errors import (
    Outdated,
    SettingsError,
    StoreDoubtful,
    StoreError,
    StoreFault,
    StoreUnavailable,
    StoreUnusable,
)
from payrelay.store import Connecting, open_database, status_of
from payrelay.store.engine.database import Database, Statement, Unit, Value
from payrelay.store.engine.migrations import shipped
from payrelay.store.engine.postgresql.connections import KEPT_MIN
from payrelay.store.engine.queries import query

pytestmark = pytest.mark.postgresql

PostgresqlServer = Any  # of tests/conftest.py; test folders are not packages, so that it can't be imported
AT_ONCE = 40


def run(sql: str, *parameters: Value, is_whole: bool = False) -> Unit[Value]:
    """Runs one statement, and gives the first value."""
    rows = yield Statement(query(sql), parameters, is_whole)
    return rows[0][0] if rows else None


@pytest.fixture
async def database(postgresql_url: str) -> AsyncIterator[Database]:
    """Opens an empty database."""
    it = await open_database(postgresql_url, clock=Clock(), owner=True)
    yield it
    await it.close()


async def test_a_commit_that_does_not_wait_for_the_disk_is_turned_off(postgresql_url: str) -> None:
    """A server's default must not take the promise back."""
    database = await open_database(f"{postgresql_url}&synchronous_commit=off", clock=Clock(), owner=True)

    assert await database.read(run("SELECT current_setting('synchronous_commit')")) == "on"
    await database.close()


async def test_a_stronger_commit_is_left_alone(postgresql_url: str) -> None:
    """Who waits for a standby has a reason."""
    database = await open_database(f"{postgresql_url}&synchronous_commit=remote_apply", clock=Clock(), owner=True)

    assert await database.read(run("SELECT current_setting('synchronous_commit')")) == "remote_apply"
    await database.close()


@pytest.mark.parametrize(("is_patient", "longest"), [(True, "1h"), (False, "5s")])
async def test_only_readers_of_whole_tables_may_take_long(
    postgresql_url: str, longest: str, *, is_patient: bool
) -> None:
    """An upgrade of ten million rows must not end at one and the same statement at every start; a request must end."""
    database = await open_database(
        postgresql_url, clock=Clock(), owner=True, connecting=Connecting(is_patient=is_patient)
    )

    assert await database.read(run("SELECT current_setting('statement_timeout')")) == longest
    await database.close()


async def test_a_session_names_the_version_of_its_schema(database: Database) -> None:
    """An upgrade asks whether somebody is connected whose program can't work with what it changes."""
    number = shipped("postgresql")[-1].number

    assert await database.read(run("SELECT current_setting('application_name')")) == f"payrelay schema {number}"


@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_connection_that_is_lost_over_a_unit_leaves_doubt(database: Database, *, is_whole: bool) -> None:
    """What it did may be there all the same, and its caller must not hear otherwise."""
    with pytest.raises(StoreDoubtful):
        await database.write(run("SELECT pg_terminate_backend(pg_backend_pid())", is_whole=is_whole))

    await database.ping()


@pytest.mark.process
async def test_a_stopped_server_is_unavailable_until_it_is_back(
    database: Database, postgresql_server: PostgresqlServer
) -> None:
    """No request hangs, and nobody has to restart the service."""
    await database.ping()
    postgresql_server.stop()
    for using in (database.ping(), database.read(run("SELECT 1")), database.write(run("SELECT 1"))):
        with pytest.raises(StoreUnavailable) as caught:
            await using
        assert not isinstance(caught.value, StoreDoubtful)

    postgresql_server.start()
    await database.ping()


async def test_a_standby_is_not_ready(database: Database) -> None:
    """It answers reads, but the next charge could not be stored."""
    sql = "SELECT set_config('default_transaction_read_only', 'on', false)"
    await asyncio.gather(*[database.write(run(sql, is_whole=True)) for _ in range(KEPT_MIN)])

    with pytest.raises(StoreUnavailable, match="read-only"):
        await database.ping()
    with pytest.raises(StoreUnavailable):
        await database.write(run("DELETE FROM meta"))


@pytest.mark.parametrize(
    ("state", "error", "fault"),
    [
        ("40001", StoreUnavailable, StoreFault.BUSY),
        ("40P01", StoreUnavailable, StoreFault.BUSY),
        ("53100", StoreUnavailable, StoreFault.DISK_FULL),
        ("57014", StoreUnavailable, StoreFault.TIMEOUT),
        ("55P03", StoreUnavailable, StoreFault.BUSY),
        ("25006", StoreUnavailable, StoreFault.READ_ONLY),
        ("58030", StoreUnavailable, StoreFault.IO_ERROR),
        ("23505", Outdated, StoreFault.OTHER),
        ("23502", StoreError, StoreFault.OTHER),
        ("42703", StoreError, StoreFault.OTHER),
    ],
)
async def test_every_state_becomes_one_of_our_errors(
    database: Database, state: str, error: type[StoreError], fault: StoreFault
) -> None:
    """What may be repeated is distinguished from what was decided wrongly, and the driver's classes stay inside."""
    raising = f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}', MESSAGE = 'm', DETAIL = 'SECRET'; END $$"

    with pytest.raises(StoreError) as raised:
        await database.write(run(raising))
    assert (type(raised.value), raised.value.fault) == (error, fault)
    assert "SECRET" not in str(raised.value)


async def test_the_pool_shows_its_use(postgresql_url: str) -> None:
    """A pool that is too small shows as units that wait, before any of them fails."""
    database = await open_database(postgresql_url, clock=Clock(), owner=True, connecting=Connecting(pool_size=2))
    units = asyncio.gather(*[database.read(run("SELECT 1 FROM pg_sleep(0.2)")) for _ in range(5)])
    seen = status_of(database)
    while seen is not None and seen.waiting < 3:
        await asyncio.sleep(0)
        seen = status_of(database)

    assert seen is not None
    assert seen[:4] == (2, 2, 2, 3)
    await units
    await database.close()


async def test_a_value_that_text_cannot_hold_is_refused(database: Database) -> None:
    """The zero character is valid JSON, and no text in PostgreSQL."""
    with pytest.raises(StoreError):
        await database.read(run("SELECT $1::text", "a\0b"))
    with pytest.raises(StoreError):
        await database.read(run("SELECT $1::text", 7))


async def test_more_units_than_connections_take_turns(database: Database) -> None:
    """The pool has a maximum, and no caller is rejected for it while units are short."""
    results = await asyncio.gather(*[database.read(run("SELECT $1::bigint", number)) for number in range(AT_ONCE)])

    assert results == list(range(AT_ONCE))


async def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    """One line for the operator who starts the service, without the password."""
    with pytest.raises(StoreUnusable, match=r"postgresql:///payrelay: the server can't be reached") as raised:
        await open_database(f"postgresql://user:SECRET@/payrelay?host={tmp_path}", clock=Clock(), owner=True)
    assert "SECRET" not in str(raised.value)
    assert "\n" not in str(raised.value)


async def test_a_database_that_is_not_there_is_named(postgresql_server: PostgresqlServer) -> None:
    """The server's own words say which."""
    with pytest.raises(StoreUnusable, match='database "nowhere" does not exist'):
        await open_database(postgresql_server.url("nowhere"), clock=Clock(), owner=True)


@pytest.mark.parametrize("url", ["postgresql://user:SECRET/1@host/name", "postgresql://user:SECRET@[host/name"])
async def test_a_url_that_cannot_be_read_is_not_shown(url: str) -> None:
    """A password with a slash in it breaks a URL, and must not end in the log for that."""
    with pytest.raises(SettingsError, match="PAYRELAY_DATABASE_URL") as raised:
        await open_database(url, clock=Clock(), owner=True)
    assert "SECRET" not in str(raised.value)


async def test_tables_of_others_are_left_alone(empty_postgresql_url: str) -> None:
    """A schema with an ``operations`` of somebody else's is refused whole."""
    connection = await asyncpg.connect(empty_postgresql_url)
    await connection.execute("CREATE TABLE operations (x int)")

    with pytest.raises(StoreUnusable, match='"operations" already exists'):
        await open_database(empty_postgresql_url, clock=Clock(), owner=True)
    assert await connection.fetchval("SELECT to_regclass('schema_version')") is None
    await connection.close()


async def test_only_small_tables_are_written_anew(database: Database) -> None:
    """The name comes from a row: nobody who can write that row may have large tables locked, or other SQL run."""
    assert await database.clear_files("data_keys_00")
    for name in ("operations", "data_keys_00; DROP TABLE meta", 'data_keys"', "Data_keys", ""):
        with pytest.raises(StoreUnavailable):
            await database.clear_files(name)


async def test_a_table_that_is_in_use_is_not_waited_for_long(database: Database, postgresql_url: str) -> None:
    """A dump holds its tables for hours; an erasure can't."""
    other = await asyncpg.connect(postgresql_url)
    async with other.transaction():
        await other.execute("SELECT count(*) FROM data_keys_00")
        with pytest.raises(StoreUnavailable):
            await database.clear_files("data_keys_00")
    await other.close()
    assert await database.clear_files("data_keys_00")
