"""The connections of a process: how they are waited for, and which server they may lead to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote

import asyncpg
import pytest

from payrelay.clock import Clock
from payrelay.core.database.schema_changes import AS_IT_IS
from payrelay.errors import StoreDoubtful, StoreUnavailable, StoreUnusable
from payrelay.store import Connecting, open_database, watch_server
from payrelay.store.engine.database import Database, Statement, Unit, Value
from payrelay.store.engine.postgresql.connections import Connections
from payrelay.store.engine.postgresql.faults import OtherServerError, in_doubt
from payrelay.store.engine.postgresql.hosts import hosts_of
from payrelay.store.engine.postgresql.servers import Sighting
from payrelay.store.engine.postgresql.sessions import Access, require_durable, transaction
from payrelay.store.engine.queries import query

pytestmark = pytest.mark.postgresql

PostgresqlServer = Any  # of tests/conftest.py; test folders are not packages, so that it can't be imported
ADD: Final = query("INSERT INTO meta (name, value) VALUES ($1, $2) RETURNING name")
AT_ONCE: Final = 20


def run(sql: str, *parameters: Value) -> Unit[Value]:
    """Runs one statement, and gives the first value."""
    rows = yield Statement(query(sql), parameters)
    return rows[0][0] if rows else None


def begin_effect(name: str) -> Unit[None]:
    """Stores what is about to take effect."""
    yield Statement(ADD, (name, b""), is_whole=True, begins_effect=True)


class Watcher:
    """Hears of other servers, and notes what it hears."""

    def __init__(self) -> None:
        self.behind: str | None = None
        self.changes: list[tuple[str, str]] = []
        self.compared = 0
        self.last: str | None = None
        self.settling: list[str] = []

    def server_changed(self, before: str, now: str) -> None:
        """Hears of another server."""
        self.changes.append((before, now))

    async def is_familiar(self, server: str) -> bool:
        """Tells whether the server is that of the last start."""
        return self.last in {None, server}

    def unsettled(self) -> None:
        """Hears that nothing is compared yet."""
        self.settling.append("unsettled")

    async def settled(self, server: str) -> None:
        """Hears that all is compared."""
        self.settling.append(server)

    async def compare(self) -> None:
        """Compares nothing."""
        self.compared += 1


@pytest.fixture
async def access(postgresql_url: str) -> Access:
    """Gives a way to a migrated database."""
    return Access(postgresql_url, 5.0)


@pytest.fixture
async def sighting(access: Access) -> Sighting:
    """Gives what a look at the database shows."""
    return await access.look(hosts_of(access.url)[0])


@pytest.fixture
async def watcher() -> Watcher:
    """Gives a watcher that has heard nothing."""
    return Watcher()


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Database]:
    database = await open_database(url, clock=Clock(), owner=True)
    try:
        yield database
    finally:
        await database.close()


@pytest.fixture
async def watched(postgresql_url: str, watcher: Watcher) -> AsyncIterator[Database]:
    """Opens a database whose server is watched."""
    database = await open_database(postgresql_url, clock=Clock(), owner=True)
    watch_server(database, watcher)
    yield database
    await database.close()


async def test_a_look_shows_the_server(sighting: Sighting) -> None:
    """A server of the tests' own takes writes, and no pooler stands before it."""
    assert sighting.server is not None
    assert (sighting.server.timeline, sighting.is_pooled, sighting.is_durable) == (1, False, True)
    assert sighting.server.tables is not None


async def test_who_waits_too_long_for_a_connection_hears_why(access: Access, sighting: Sighting) -> None:
    """An operator who reads it can give the service more connections."""
    connections = Connections(access, sighting, size=2, queue_s=0.1)
    await connections.open()
    async with connections.one(), connections.one():
        with pytest.raises(StoreUnavailable, match=r"all 2 connections to the database were in use for 0\.1 s"):
            async with connections.one():
                pass
    async with connections.one() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await connections.close()


@pytest.fixture
async def connections(access: Access, sighting: Sighting) -> AsyncIterator[Connections]:
    """Opens two connections."""
    opened = Connections(access, sighting, size=2, queue_s=5)
    await opened.open()
    yield opened
    await opened.close()


async def _process(connections: Connections) -> Any:  # noqa: ANN401, a number of the driver's
    async with connections.one() as connection:
        return await connection.fetchval("SELECT pg_backend_pid()")


async def test_a_unit_takes_the_connection_of_the_last_one(connections: Connections) -> None:
    """Its statements are prepared, and the way through the pool would cost more than a statement."""
    first = await _process(connections)

    assert [await _process(connections) for _ in range(3)] == [first] * 3
    assert connections.usage.used == 0


async def test_an_idle_connection_that_the_server_ended_is_not_used(
    connections: Connections, postgresql_url: str
) -> None:
    """After a restart of the server the first requests would fail, one for each connection."""
    ended = await _process(connections)
    owner = await asyncpg.connect(postgresql_url)
    await owner.execute("SELECT pg_terminate_backend($1, 5000)", ended)  # waits for its end
    await owner.close()

    assert await _process(connections) != ended
    assert connections.usage.used == 0


async def test_a_connection_whose_unit_failed_is_used_again(connections: Connections) -> None:
    """A refused statement is no fault of the connection, and making another one takes ten times as long."""
    first = await _process(connections)
    with pytest.raises(StoreUnavailable):
        async with connections.one() as connection, transaction(connection, None):
            await connection.execute("SET LOCAL statement_timeout = 1; SELECT pg_sleep(1)")
    async with connections.one() as again:
        assert not again.is_in_transaction()
        assert again.get_server_pid() == first


async def test_a_statement_of_a_caller_that_goes_away_disturbs_nobody(connections: Connections) -> None:
    """The server is told to end it, and its connection is free after that."""

    async def wait() -> None:
        async with connections.one() as connection:
            await connection.execute("SELECT pg_sleep(60)")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wait(), 0.1)
    async with asyncio.timeout(20), connections.one() as one, connections.one() as other:
        assert [await each.fetchval("SELECT 1") for each in (one, other)] == [1, 1]
    assert connections.usage.used == 0


class Wire:
    """Stands between a process and its server, and passes everything on until it falls silent."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self._server = server
        self._may_pass = asyncio.Event()
        self._may_pass.set()
        self._passing: set[asyncio.Task[None]] = set()
        self._ends: list[asyncio.StreamWriter] = []

    def fall_silent(self) -> None:
        """Passes nothing on any more, and closes nothing: as a server that hangs, or a network that drops all."""
        self._may_pass.clear()

    @asynccontextmanager
    async def laid(self) -> AsyncIterator["Wire"]:
        """Takes connections meanwhile, and cuts them off in the end."""
        server = await asyncio.start_unix_server(self._connected, self.folder / self._server.name)
        yield self
        server.close()
        for passing in self._passing:
            passing.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)
        for end in self._ends:
            end.transport.abort()
        await asyncio.gather(*[end.wait_closed() for end in self._ends], return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(self._server)
        self._ends += [writer, to_server]
        for source, sink in ((reader, to_server), (from_server, writer)):
            self._passing.add(asyncio.create_task(self._pass_on(source, sink)))

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while piece := await source.read(65_536):
            await self._may_pass.wait()
            sink.write(piece)
        sink.close()


@pytest.fixture
async def wire(postgresql_server: PostgresqlServer) -> AsyncIterator[Wire]:
    """Lays a wire to the server."""
    with TemporaryDirectory(prefix="payrelay-wire-") as folder:  # the path of a socket has 107 bytes at most
        async with Wire(Path(folder), Path(postgresql_server.folder) / ".s.PGSQL.5432").laid() as laid:
            yield laid


@pytest.fixture
async def only_one(wire: Wire, postgresql_url: str, postgresql_server: PostgresqlServer) -> AsyncIterator[Connections]:
    """Opens one connection through the wire, which gives up soon."""
    url = postgresql_url.replace(quote(str(postgresql_server.folder)), quote(str(wire.folder)))
    access = Access(url, 5.0)
    opened = Connections(access, await access.look(hosts_of(access.url)[0]), size=1, queue_s=0.1)
    await opened.open()
    yield opened
    opened.cut_off()


async def test_a_doubt_stays_one_where_the_server_hangs(wire: Wire, only_one: Connections) -> None:
    """The connection can't be given back then. Who heard that nothing is stored would do it again."""

    async def write() -> None:
        async with only_one.one() as connection:
            with in_doubt():
                wire.fall_silent()
                await connection.execute("SELECT 1", timeout=0.1)

    with pytest.raises(StoreDoubtful):
        await write()


async def test_who_waits_gets_the_connection_that_is_given_back(connections: Connections) -> None:
    """It isn't kept for the next unit then, which may never come."""
    async with connections.one():
        async with connections.one():
            waiting = asyncio.create_task(_process(connections))
            await asyncio.sleep(0)
            assert connections.usage.waiting == 1
        assert await waiting
    assert connections.usage == (2, 2, 0, 0)


async def test_connections_that_were_cut_off_are_not_used(connections: Connections) -> None:
    """They lead to a server that takes the writes no more."""
    await _process(connections)
    connections.cut_off()

    with pytest.raises(StoreUnavailable):
        await _process(connections)


async def test_where_the_server_has_no_room_callers_take_turns(postgresql_url: str) -> None:
    """A limit on the server below our own must not refuse requests that could wait a moment."""
    owner = await asyncpg.connect(postgresql_url)
    schema = await owner.fetchval("SELECT current_schema()")
    await owner.execute(
        f"CREATE ROLE few LOGIN CONNECTION LIMIT 3; GRANT USAGE ON SCHEMA {schema} TO few;"
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO few"
    )
    url = postgresql_url.replace("payrelay@", "few@")
    database = await open_database(url, clock=Clock(), owner=True, changes=AS_IT_IS, connecting=Connecting(pool_size=8))
    try:
        reads = [database.read(run("SELECT $1::bigint", number)) for number in range(AT_ONCE)]
        assert await asyncio.gather(*reads) == list(range(AT_ONCE))
    finally:
        await database.close()
        await owner.execute("DROP OWNED BY few; DROP ROLE few")
        await owner.close()


async def test_a_connection_to_another_server_is_not_used(access: Access, sighting: Sighting) -> None:
    """A pool with connections to two servers charged orders on both."""
    assert sighting.server is not None
    other = sighting._replace(server=sighting.server._replace(timeline=7))
    connections = Connections(access, other, size=2)

    with pytest.raises(OtherServerError, match="leads to another server"):
        await connections.open()


async def test_a_transaction_fails_on_another_server_than_it_names(access: Access, sighting: Sighting) -> None:
    """Behind a pooler nobody knows to which server the next transaction goes."""
    assert sighting.server is not None
    connection = await access.connect(sighting.host, is_pooled=True)
    async with transaction(connection, access.beginning(sighting.server)):
        await connection.execute("INSERT INTO meta (name, value) VALUES ('here', '')")
    for other in (sighting.server._replace(timeline=2), sighting.server._replace(system="1")):
        with pytest.raises(OtherServerError):
            async with transaction(connection, access.beginning(other)):
                await connection.execute("INSERT INTO meta (name, value) VALUES ('elsewhere', '')")

    assert await connection.fetchval("SELECT string_agg(name, ' ') FROM meta WHERE name LIKE '%here'") == "here"
    await connection.close()


def test_a_pooler_whose_commits_wait_for_no_disk_is_refused(sighting: Sighting) -> None:
    """No session behind it is ours to set."""
    require_durable(sighting)
    require_durable(sighting._replace(is_durable=False))
    with pytest.raises(StoreUnusable, match="synchronous_commit"):
        require_durable(sighting._replace(is_durable=False, is_pooled=True))


async def test_a_role_that_may_not_know_the_server_is_told_what_it_lacks(postgresql_url: str) -> None:
    """Without the identifier one server can't be told from another, so nothing is served."""
    owner = await asyncpg.connect(postgresql_url)
    await owner.execute("CREATE ROLE blind LOGIN; REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    url = postgresql_url.replace("payrelay@", "blind@")
    try:
        with pytest.raises(StoreUnusable, match=r"GRANT EXECUTE ON FUNCTION pg_control_system\(\)"):
            await open_database(url, clock=Clock(), owner=True)
    finally:
        await owner.execute("DROP ROLE blind; GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
        await owner.close()


async def test_an_effect_begins_after_a_look(watched: Database, watcher: Watcher) -> None:
    """The first one waits for the first look, and nobody hears of a change."""
    await watched.write(begin_effect("seen"))
    await watched.ping()

    assert (watcher.changes, watcher.compared) == ([], 0)


async def test_nothing_begins_where_the_server_is_not_that_of_the_last_start(
    postgresql_url: str, watcher: Watcher
) -> None:
    """The process was started just after a promotion: others may still have to tell what is missing."""
    watcher.last = "system 1, timeline 1"
    async with asyncio.timeout(20), _opened(postgresql_url) as database:
        watch_server(database, watcher)
        with pytest.raises(StoreUnavailable, match="not compared yet"):
            await database.write(begin_effect("early"))

    assert (watcher.settling, len(watcher.changes)) == (["unsettled"], 1)


async def test_nothing_begins_on_a_database_that_is_behind(watched: Database, watcher: Watcher) -> None:
    """Also a request that asked before the database fell behind, and stores its intent after that."""
    watcher.behind = "op_1 is missing"

    with pytest.raises(StoreUnavailable, match="op_1 is missing"):
        await watched.write(begin_effect("late"))
    await watched.write(run("DELETE FROM meta WHERE name = 'nothing'"))


@pytest.mark.process
async def test_a_server_that_comes_late_is_waited_for(postgresql_server: PostgresqlServer, postgresql_url: str) -> None:
    """After a power cut both start at once, and nobody is there to start the service again."""
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        postgresql_server.start()

    postgresql_server.stop()
    connecting = Connecting(wait_s=30, told=tell)
    database = await open_database(postgresql_url, clock=Clock(), owner=True, connecting=connecting)
    await database.ping()
    await database.close()
    assert len(told) == 1
    assert told[0].startswith("postgresql:///postgres: ")


async def test_a_server_that_never_comes_is_waited_for_no_longer_than_was_said(tmp_path: Path) -> None:
    """A mistyped address must end the start, with a line that names it."""
    told: list[str] = []
    connecting = Connecting(wait_s=1.5, told=told.append)

    with pytest.raises(StoreUnusable, match=r"postgresql:///payrelay: the server can't be reached"):
        await open_database(
            f"postgresql://u@/payrelay?host={tmp_path}", clock=Clock(), owner=True, connecting=connecting
        )
    assert len(told) == 1
