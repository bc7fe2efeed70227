import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg
import pytest

from payrelay.clock import Clock
from payrelay.core.database.schema_changes import ANY, MAKE, SchemaChanges
from payrelay.errors import DatabaseNotReady, StoreUnusable
from payrelay.store import open_database
from payrelay.store.engine.migrations import ONLINE, Migration, shipped
from payrelay.store.engine.postgresql.migrating import (
    LOCK_WAIT_S,
    LOCKS_WITHIN_S,
    PAUSE_S,
    SchemaTarget,
    bring_up_to_date,
    session_name,
)

pytestmark = pytest.mark.postgresql

LAST = Migration(2, "lanes_since_0001", "ALTER TABLE places ADD COLUMN lane text;")
"""Waits for its locks, because it changes a table that others read."""
KNOWN = (*shipped("postgresql"), LAST)
ONLINE_LAST = Migration(
    3,
    "online_since_0001",
    f"{ONLINE}\nDROP INDEX CONCURRENTLY IF EXISTS places_free; CREATE INDEX CONCURRENTLY places_free ON places (slot);",
)
CLOSED = Migration(4, "closed", "ALTER TABLE places DROP COLUMN lane;")
"""No older program can work with it."""
INDEX_IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'places_free'::regclass"


class LongClock(Clock):
    """A clock on which a wait is over as soon as it has begun to be told."""

    def __init__(self) -> None:
        self._at_s = 0.0

    def boot_s(self) -> float:
        """Gives a later time at every look."""
        self._at_s += LOCKS_WITHIN_S
        return self._at_s


def target(changes: SchemaChanges = ANY, *more: Migration) -> SchemaTarget:
    """Gives the schema of this program, or one that goes on from there."""
    return SchemaTarget("place", (*KNOWN, *more), changes)


@pytest.fixture
async def connection(empty_postgresql_url: str) -> AsyncIterator[asyncpg.Connection]:
    """Gives a session on a database that lacks the last of them."""
    await (await open_database(empty_postgresql_url, clock=Clock(), owner=True)).close()
    it = await asyncpg.connect(empty_postgresql_url)
    yield it
    await it.close()


@asynccontextmanager
async def dumping(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Holds what a dump holds for hours: the right to read every table."""
    dump = await asyncpg.connect(url, server_settings={"application_name": "pg_dump"})
    async with dump.transaction():
        await dump.execute("LOCK TABLE places, operations IN ACCESS SHARE MODE")
        yield dump
    await dump.close()


async def versions(connection: asyncpg.Connection) -> list[int]:
    """Gives the migrations that the database has had."""
    return [row[0] for row in await connection.fetch("SELECT number FROM schema_version ORDER BY number")]


async def test_writes_go_on_beside_a_migration_that_a_dump_delays(
    connection: asyncpg.Connection, empty_postgresql_url: str
) -> None:
    """Without a limit each write would wait behind the migration for as long as the dump takes."""
    told: list[str] = []
    has_waited, writer = asyncio.Event(), await asyncpg.connect(empty_postgresql_url)

    def tell(text: str) -> None:
        told.append(text)
        if text.startswith("waiting"):
            has_waited.set()

    async with dumping(empty_postgresql_url):
        upgrade = asyncio.create_task(bring_up_to_date(connection, target(SchemaChanges(tell=tell)), Clock()))
        slowest_s, number, end_s = 0.0, 0, asyncio.get_running_loop().time() + 2 * (LOCK_WAIT_S + PAUSE_S)
        while asyncio.get_running_loop().time() < end_s or not has_waited.is_set():
            assert not upgrade.done(), "it waited for nothing"
            began_s = asyncio.get_running_loop().time()
            await writer.execute("INSERT INTO meta (name, value) VALUES ($1, '')", f"row {number}")
            await writer.execute("UPDATE places SET slot = slot")
            slowest_s, number = max(slowest_s, asyncio.get_running_loop().time() - began_s), number + 1
        assert not upgrade.done()
    await upgrade

    assert slowest_s < 2 * LOCK_WAIT_S + 1
    assert LAST.number in await versions(connection)
    assert (told[0], told.count(LAST.shown)) == (LAST.shown, 1)
    assert "letting others go on meanwhile" in told[1]
    await writer.close()


async def test_who_is_waited_for_is_named(connection: asyncpg.Connection, empty_postgresql_url: str) -> None:
    """The operator sees whether it is a dump that will end, or a session that somebody has forgotten."""
    async with dumping(empty_postgresql_url) as dump:
        await dump.fetch("SELECT pg_sleep(1.1)")
        with pytest.raises(StoreUnusable, match=r"no moment for its locks: .*process \d+ \(pg_dump\), for \d+ s;"):
            await bring_up_to_date(connection, target(), LongClock())

    assert LAST.number not in await versions(connection)
    assert await connection.fetchval("SHOW lock_timeout") == "0"


async def test_processes_that_upgrade_at_once_run_each_migration_once(
    connection: asyncpg.Connection, empty_postgresql_url: str
) -> None:
    """Three machines with `serve --upgrade` start a new version together."""
    others = [await asyncpg.connect(empty_postgresql_url) for _ in range(3)]
    told: list[str] = []
    await asyncio.gather(*[bring_up_to_date(each, target(SchemaChanges(tell=told.append)), Clock()) for each in others])

    assert told.count(LAST.shown) == 1
    assert await versions(connection) == [migration.number for migration in KNOWN]
    for each in others:
        await each.close()


async def test_who_may_only_make_a_database_leaves_an_old_one(connection: asyncpg.Connection) -> None:
    """A service that is restarted by chance must not begin a migration."""
    with pytest.raises(DatabaseNotReady, match="run payrelay db upgrade"):
        await bring_up_to_date(connection, target(MAKE), Clock())

    assert LAST.number not in await versions(connection)


async def test_services_that_make_a_database_at_once_all_find_it_whole(empty_postgresql_url: str) -> None:
    """The second must not find a half of it, and take that for an old one."""
    opened = await asyncio.gather(
        *[open_database(empty_postgresql_url, clock=Clock(), owner=False, changes=MAKE) for _ in range(3)]
    )

    for database in opened:
        await database.ping()
        await database.close()


async def test_an_index_is_made_while_others_write(connection: asyncpg.Connection, empty_postgresql_url: str) -> None:
    """It reads a whole table. A stopped one is no index that anything uses, and is made anew."""
    await connection.execute("INSERT INTO places (merchant, slot, free_at_ms) VALUES ('m', 1, 1), ('m', 2, 1)")
    with pytest.raises(asyncpg.UniqueViolationError):
        await connection.execute("CREATE UNIQUE INDEX CONCURRENTLY places_free ON places (free_at_ms)")
    assert not await connection.fetchval(INDEX_IS_VALID)
    await bring_up_to_date(connection, target(), Clock())
    has_begun, told = asyncio.Event(), list[str]()

    def tell(text: str) -> None:
        told.append(text)
        has_begun.set()

    writer, other = await asyncpg.connect(empty_postgresql_url), await asyncpg.connect(empty_postgresql_url)
    async with writer.transaction():
        await writer.execute("UPDATE places SET slot = slot")
        upgrades = asyncio.gather(
            *[
                bring_up_to_date(each, target(SchemaChanges(tell=tell), ONLINE_LAST), Clock())
                for each in (connection, other)
            ]
        )
        await has_begun.wait()
        await writer.execute("UPDATE places SET slot = slot")
    await upgrades

    assert await connection.fetchval(INDEX_IS_VALID)
    assert (await versions(connection))[-1] == ONLINE_LAST.number
    assert len([text for text in told if text.startswith(ONLINE_LAST.shown)]) == 1
    for each in (writer, other):
        await each.close()


async def test_a_new_database_gets_online_migrations_with_all_others(empty_postgresql_url: str) -> None:
    """Nobody uses it yet, so it is made whole or not at all."""
    connection = await asyncpg.connect(empty_postgresql_url)
    await bring_up_to_date(connection, target(MAKE, ONLINE_LAST), Clock())

    assert await connection.fetchval(INDEX_IS_VALID)
    await connection.close()


async def test_a_service_works_on_what_the_next_version_has_added_to(connection: asyncpg.Connection) -> None:
    """It was started before the upgrade, or is started again because the next version failed."""
    await bring_up_to_date(connection, target(ANY, ONLINE_LAST), Clock())
    await bring_up_to_date(connection, target(MAKE), Clock())

    assert (await versions(connection))[-1] == ONLINE_LAST.number


@asynccontextmanager
async def program_of(version: int, url: str) -> AsyncIterator[None]:
    """Lets a program that knows a version of the schema have a session."""
    session = await asyncpg.connect(url, server_settings={"application_name": session_name(version)})
    yield
    await session.close()


async def test_who_can_not_work_with_a_later_one_is_found_before_the_first(
    connection: asyncpg.Connection, empty_postgresql_url: str
) -> None:
    """Found behind the first, an old process would go on, and could not be started again."""
    async with program_of(3, empty_postgresql_url), program_of(1, empty_postgresql_url):
        with pytest.raises(
            StoreUnusable, match=r"1 sessions of a program for version 1, from .*; 1 .* for version 3"
        ) as is_found:
            await bring_up_to_date(connection, target(ANY, ONLINE_LAST, CLOSED), Clock())
    assert "The schema stays at version 1" in str(is_found.value)
    assert await versions(connection) == [1]

    async with program_of(4, empty_postgresql_url), program_of(5, empty_postgresql_url):
        await bring_up_to_date(connection, target(ANY, ONLINE_LAST, CLOSED), Clock())
    assert await versions(connection) == [1, 2, 3, 4]


async def test_who_starts_meanwhile_is_found_before_the_next(
    connection: asyncpg.Connection, empty_postgresql_url: str
) -> None:
    """The migrations until then were for it too: it goes on, and so does the upgrade once it has ended."""
    async with AsyncExitStack() as stack:
        migrating = target(SchemaChanges(), ONLINE_LAST, CLOSED)
        async with dumping(empty_postgresql_url):
            waits = asyncio.Event()
            telling = SchemaChanges(tell=lambda text: waits.set() if text.startswith("waiting") else None)
            upgrade = asyncio.create_task(bring_up_to_date(connection, migrating._replace(changes=telling), Clock()))
            await waits.wait()
            await stack.enter_async_context(program_of(1, empty_postgresql_url))
        with pytest.raises(StoreUnusable, match=r"The schema stays at version [12],"):
            await upgrade

    await bring_up_to_date(connection, migrating, Clock())
    assert await versions(connection) == [1, 2, 3, 4]


async def test_a_migration_that_fails_leaves_those_before_it(connection: asyncpg.Connection) -> None:
    """The operator gets the next build, in which it is mended, and goes on from there."""
    wrong = ONLINE_LAST._replace(text="ALTER TABLE nothing ADD COLUMN lane text;")
    with pytest.raises(asyncpg.UndefinedTableError):
        await bring_up_to_date(connection, target(ANY, wrong, CLOSED), Clock())
    assert await versions(connection) == [1, 2]

    await bring_up_to_date(connection, target(ANY, ONLINE_LAST, CLOSED), Clock())
    assert await versions(connection) == [1, 2, 3, 4]
