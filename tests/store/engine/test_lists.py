"""Lists beside everything else: they take nobody's connection, nobody's time, and not for ever."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from tests.databases import sqlite_url

from payrelay.clock import Clock
from payrelay.errors import StoreFault, StoreUnavailable
from payrelay.store import open_database
from payrelay.store.engine.database import Connecting, Database, Statement, all_rows
from payrelay.store.engine.postgresql.database import LIST_SHARE
from payrelay.store.engine.queries import query
from payrelay.store.engine.sqlite import InlineExecutor
from payrelay.store.opening import status_of

FOR_EVER = Statement(
    query(
        "SELECT pg_sleep(60)::text",
        sqlite=("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",),
    ),
    (),
)
ONE = Statement(query("SELECT 1"), ())
PUT = Statement(query("INSERT INTO bumps (merchant, version) VALUES ($1, 1)"), ("m",))

Open = Callable[[float], AbstractAsyncContextManager[Database]]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def engine(request: pytest.FixtureRequest) -> str:
    """Names the engine; on the inline one, which simulations use, lists are read as everything else."""
    return str(request.param)


@pytest.fixture
def opened(url: str) -> Open:
    """Opens the empty database with a time for lists, in seconds; gives lists one connection of those of a pool."""

    @asynccontextmanager
    async def open_with(list_timeout_s: float) -> AsyncIterator[Database]:
        connecting = Connecting(pool_size=LIST_SHARE, list_timeout_s=list_timeout_s)
        database = await open_database(url, clock=Clock(), owner=True, connecting=connecting)
        yield database
        await database.close()

    return open_with


async def test_a_list_gives_what_any_reading_gives(opened: Open) -> None:
    """Also where the unit has no statement."""
    async with opened(5.0) as database:
        await database.write(all_rows(PUT))
        bumps = Statement(query("SELECT merchant, version FROM bumps"), ())
        assert [tuple(row) for row in await database.read_page(all_rows(bumps))] == [("m", 1)]


async def test_charges_go_on_beside_lists_that_would_never_end(opened: Open) -> None:
    """As many as there are connections: one client that lists what is rare may ask for all of them at once."""
    async with opened(0.5) as database:
        lists = [asyncio.create_task(database.read_page(all_rows(FOR_EVER))) for _ in range(LIST_SHARE)]
        await database.write(all_rows(PUT))
        assert [tuple(row) for row in await database.read(all_rows(ONE))] == [(1,)]
        assert not any(each.done() for each in lists)

        outcomes = await asyncio.gather(*lists, return_exceptions=True)

        assert [getattr(each, "fault", each) for each in outcomes] == [StoreFault.TIMEOUT] * LIST_SHARE
        assert all(isinstance(each, StoreUnavailable) for each in outcomes)
        assert "longer than 0.5 s" in str(outcomes[0])


async def test_after_a_list_that_took_too_long_the_next_one_is_read(opened: Open) -> None:
    """The connection is as it was, and what was missed is counted for the metrics."""
    async with opened(0.2) as database:
        with pytest.raises(StoreUnavailable):
            await database.read_page(all_rows(FOR_EVER))
        assert [tuple(row) for row in await database.read_page(all_rows(ONE))] == [(1,)]
        status = status_of(database)
        assert status is not None
        assert status.failed[StoreFault.TIMEOUT] == 1


async def test_a_list_that_nobody_waits_for_ends(opened: Open) -> None:
    """A client that hangs up, again and again, would keep all others from their lists."""
    async with opened(600.0) as database:
        for _ in range(3):
            gone = asyncio.create_task(database.read_page(all_rows(FOR_EVER)))
            await database.read(all_rows(ONE))
            gone.cancel()
            await asyncio.wait([gone])
        assert [tuple(row) for row in await database.read_page(all_rows(ONE))] == [(1,)]


async def test_a_file_closes_beside_lists(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A stop would otherwise take as long as a list may; whoever waits for one, or for its turn, is told."""
    path = tmp_path_factory.mktemp("stopped") / "payrelay.db"
    connecting = Connecting(list_timeout_s=600.0)
    database = await open_database(sqlite_url(path), clock=Clock(), owner=True, connecting=connecting)
    lists = [asyncio.create_task(database.read_page(all_rows(FOR_EVER))) for _ in range(2)]
    await database.read(all_rows(ONE))
    await database.write(all_rows(PUT))

    await database.close()

    outcomes = await asyncio.gather(*lists, return_exceptions=True)
    assert [str(each) for each in outcomes] == ["the database is closed"] * 2


async def test_a_failing_list_is_told_as_any_failing_reading(opened: Open) -> None:
    """A statement that the database refuses is no timeout."""
    async with opened(5.0) as database:
        with pytest.raises(Exception, match="refused a statement"):
            await database.read_page(all_rows(Statement(query("SELECT nothing"), ())))


async def test_a_closed_file_has_no_lists(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whoever asks gets the same error as for all else; the inline engine reads lists in the calling thread."""
    path = tmp_path_factory.mktemp("closed") / "payrelay.db"
    for executor in (None, InlineExecutor()):
        database = await open_database(sqlite_url(path), clock=Clock(), owner=True, executor=executor)
        assert [tuple(row) for row in await database.read_page(all_rows(ONE))] == [(1,)]
        await database.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await database.read_page(all_rows(ONE))
