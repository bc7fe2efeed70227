"""Connections to one host, and the settings of their sessions.

Behind a pooler in transaction mode a session's settings hold for one transaction only, and a prepared statement may be
missing at the next one. So nothing is prepared there, and a transaction brings its settings along, in the same round
trip as its beginning.
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import asyncpg

from payrelay.errors import StoreUnusable
from payrelay.store.engine import migrations
from payrelay.store.engine.postgresql.faults import OtherServerError
from payrelay.store.engine.postgresql.hosts import Host
from payrelay.store.engine.postgresql.migrating import session_name
from payrelay.store.engine.postgresql.servers import LOOK, Server, Sighting, server_of

CONNECT_TIMEOUT_S: Final = 5.0
"""How long a connection may take to be made. Each of several hosts has as much, all at the same time."""
STATEMENT_TIMEOUT_S: Final = 5.0
"""Our statements take milliseconds. One that takes longer waits for a lock or a failing disk."""
LOCK_TIMEOUT_S: Final = 2.0
"""Equals the wait of the embedded database for another process."""
IDLE_IN_TRANSACTION_TIMEOUT_S: Final = 10.0
"""After this the server releases the locks of a process that hangs in the middle of a unit."""

_SESSION: Final = {
    "lock_timeout": str(int(LOCK_TIMEOUT_S * 1000)),
    "idle_in_transaction_session_timeout": str(int(IDLE_IN_TRANSACTION_TIMEOUT_S * 1000)),
    "default_transaction_isolation": "read committed",
    "jit": "off",
}
_ENSURE_DURABLE: Final = """
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"""
_NOT_DURABLE: Final = (
    "synchronous_commit is off behind the pooler, so that an answer could be given before it is on disk;"
    " turn it on there: ALTER ROLE … SET synchronous_commit = on"
)
_MAY_NOT_LOOK: Final = (
    "the role may not read which server this is; a superuser of the server can permit it:"
    " GRANT EXECUTE ON FUNCTION pg_control_system() TO …"
)


class PlainConnection(asyncpg.Connection):  # type: ignore[misc] # asyncpg is shipped without types
    """A connection that our units leave as they found it."""

    def get_reset_query(self) -> str:
        """Gives no reset query, which saves a round trip for each unit."""
        return ""


class Access(NamedTuple):
    """How the database is reached.

    Attributes:
        url: the setting PAYRELAY_DATABASE_URL.
        timeout_s: how long a statement may take.
    """

    url: str
    timeout_s: float

    async def connect(self, host: Host, *, is_pooled: bool, timeout_s: float = CONNECT_TIMEOUT_S) -> Any:  # noqa: ANN401 - asyncpg is shipped without types
        """Connects to one host. Raises what the driver raises."""
        connection = await asyncpg.connect(
            self.url,
            **_place(host),
            timeout=timeout_s,
            command_timeout=self.timeout_s + 1,
            statement_cache_size=0 if is_pooled else 100,
            server_settings=_named() if is_pooled else self._session(),
            connection_class=PlainConnection,
            target_session_attrs="any",  # which of the hosts takes writes is decided by what each of them shows
        )
        try:
            if not is_pooled:
                await connection.execute(_ENSURE_DURABLE)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def look(self, host: Host, timeout_s: float = CONNECT_TIMEOUT_S) -> Sighting:
        """Makes a connection of its own to see which server is there, and closes it. Raises what the driver raises."""
        # A session of this kind works with a pooler and without; only the look itself shows which it is.
        connection = await self.connect(host, is_pooled=True, timeout_s=timeout_s)
        try:
            return await sighting_of(connection, host)
        finally:
            await connection.close(timeout=timeout_s)

    def beginning(self, server: Server | None) -> str:
        """Gives the statements that begin a transaction behind a pooler, as one text.

        With ``server`` the transaction fails unless it is carried out by that server.
        """
        settings = {**_SESSION, "statement_timeout": str(int(self.timeout_s * 1000))}
        del settings["default_transaction_isolation"]
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
        texts = [begin, *(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())]
        if server is not None:
            texts.append(
                f"SELECT 1 / (system_identifier = {int(server.system)}"  # noqa: S608, numbers of our own
                f" AND pg_walfile_name(pg_current_wal_lsn()) LIKE '{server.timeline:08X}%')::int"
                " FROM pg_control_system()"
            )
        return ";".join(texts)

    def _session(self) -> dict[str, str]:
        return _SESSION | _named() | {"statement_timeout": str(int(self.timeout_s * 1000))}


async def sighting_of(connection: asyncpg.Connection, host: Host) -> Sighting:
    """Reads which server a connection leads to. Raises StoreUnusable where our role may not read it."""
    try:
        row = await connection.fetchrow(LOOK)
    except asyncpg.InsufficientPrivilegeError as error:
        raise StoreUnusable(_MAY_NOT_LOOK) from error
    return Sighting(
        host=host,
        server=server_of(row["system"], row["wal_file"], row["database"], row["tables"]),
        started=row["started"],
        # A pooler tells its clients numbers of its own, with which they can cancel.
        is_pooled=row["process"] != connection.get_server_pid(),
        is_durable=row["is_durable"],
    )


def require_durable(sighting: Sighting) -> None:
    """Raises StoreUnusable where a pooler's sessions would answer before a commit is on disk."""
    if sighting.is_pooled and not sighting.is_durable:
        raise StoreUnusable(_NOT_DURABLE)


@contextlib.asynccontextmanager
async def transaction(connection: asyncpg.Connection, beginning: str | None) -> AsyncIterator[None]:
    """Carries out what is done meanwhile as one transaction, which begins with ``beginning``; None for none."""
    if beginning is None:
        async with connection.transaction():
            yield
        return
    try:
        try:
            await connection.execute(beginning)
        except asyncpg.DivisionByZeroError as error:
            raise OtherServerError("the pooler carried this out on another server; nothing was stored") from error
        yield
    except BaseException:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        raise
    await connection.execute("COMMIT")


def _place(host: Host) -> dict[str, str | int]:
    return {name: value for name, value in host._asdict().items() if value is not None}


def _named() -> dict[str, str]:
    """Gives a session the name of our schema's version, so that other versions can be told."""
    return {"application_name": session_name(migrations.shipped("postgresql")[-1].number)}
