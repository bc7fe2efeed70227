"""What a process does while the address of its database leads to one server and then to another."""

import asyncio
from pathlib import Path
from typing import Final
from urllib.parse import quote

import asyncpg
import pytest
from tests.postgresql_server import PostgresqlServer, running_standby

from payrelay.clock import Clock
from payrelay.errors import StoreUnavailable
from payrelay.store import open_database, watch_server
from payrelay.store.engine.database import Database, Statement, Unit
from payrelay.store.engine.queries import query

pytestmark = [pytest.mark.postgresql, pytest.mark.integration]

WITHIN_S: Final = 30
ADD: Final = query("INSERT INTO meta (name, value) VALUES ($1, $2) RETURNING name")
NAMES: Final = "SELECT array_agg(name ORDER BY name)::text FROM meta WHERE name LIKE 'effect/%'"


def begin_effect(name: str) -> Unit[None]:
    """Stores what is about to take effect."""
    yield Statement(ADD, (f"effect/{name}", b""), is_whole=True, begins_effect=True)


class Watcher:
    """Hears of other servers."""

    behind: str | None = None

    def __init__(self) -> None:
        self.changes: list[tuple[str, str]] = []
        self.changed = asyncio.Event()
        self.compared = 0
        self.last: str | None = None
        self.settling: list[str] = []

    def server_changed(self, before: str, now: str) -> None:
        """Hears of another server."""
        self.changes.append((before, now))
        self.changed.set()

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
        """Finds nothing missing."""
        self.compared += 1


async def until(database: Database, name: str, *, is_stored: bool) -> None:
    """Begins effects until one is stored, or until one is refused."""
    async with asyncio.timeout(WITHIN_S):
        for number in range(1_000_000):
            try:
                await database.write(begin_effect(f"{name}/{number}"))
            except StoreUnavailable:
                if not is_stored:
                    return
            else:
                if is_stored:
                    return
            await asyncio.sleep(0)


async def names_on(server: PostgresqlServer) -> str:
    """Reads which effects a server has, past the address."""
    return str(await _asked(server, NAMES))


async def _asked(server: PostgresqlServer, sql: str) -> object:
    connection = await asyncpg.connect(server.url("moving"))
    try:
        answer: object = await connection.fetchval(sql)
        return answer
    finally:
        await connection.close()


def lead(link: Path, server: PostgresqlServer) -> None:
    """Has the address lead to a server from now on, at once."""
    new = link.with_name("new")
    new.symlink_to(server.folder)
    new.replace(link)


async def test_a_process_follows_the_promoted_server_and_never_goes_back(
    tmp_path: Path, postgresql_server: PostgresqlServer
) -> None:
    """The earlier server stays writable all the while: whoever wrote there would charge orders a second time."""
    postgresql_server.create("moving")
    link, watcher = tmp_path / "address", Watcher()
    lead(link, postgresql_server)
    url = f"postgresql://payrelay@/moving?host={quote(str(link))}"
    with running_standby(postgresql_server) as standby:
        database = await open_database(url, clock=Clock(), owner=True)
        watch_server(database, watcher)
        await until(database, "before", is_stored=True)

        standby.promote()
        lead(link, standby)
        async with asyncio.timeout(WITHIN_S):
            await watcher.changed.wait()
        earlier = await names_on(postgresql_server)
        await until(database, "after", is_stored=True)
        assert (len(watcher.changes), watcher.compared > 0) == (1, True)
        assert "timeline 1" in watcher.changes[0][0]
        assert "timeline 2" in watcher.changes[0][1]
        assert "effect/after" in await names_on(standby)

        lead(link, postgresql_server)
        await until(database, "back", is_stored=False)
        with pytest.raises(StoreUnavailable, match="left behind"):
            await database.ping()
        assert await names_on(postgresql_server) == earlier

        lead(link, standby)
        await until(database, "again", is_stored=True)
        await _asked(standby, "ALTER SYSTEM SET default_transaction_read_only = on")
        await _asked(standby, "SELECT pg_reload_conf()")
        await until(database, "read only", is_stored=False)
        await _asked(standby, "ALTER SYSTEM RESET default_transaction_read_only")
        await _asked(standby, "SELECT pg_reload_conf()")
        await until(database, "writable", is_stored=True)
        assert len(watcher.changes) == 1
        await database.close()
    postgresql_server.drop("moving")
