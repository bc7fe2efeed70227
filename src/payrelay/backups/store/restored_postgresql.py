"""A backup of a PostgreSQL database on its way back: a draft in a schema of its own, which takes the place at the end.

The dump is read into the draft in one transaction, and the draft takes the place of the database in another one. What
was there before stays in the same database, in a schema of another name.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import asyncpg

from payrelay.backups.store.copied import KEY_CHECK, Moved
from payrelay.backups.store.in_transaction import InTransaction, in_postgresql
from payrelay.backups.store.programs import address_and_password, output_of, pipe_programs
from payrelay.errors import StoreUnusable
from payrelay.store.engine.postgresql.faults import translated
from payrelay.store.engine.postgresql.hosts import unreadable
from payrelay.store.engine.postgresql.sessions import CONNECT_TIMEOUT_S

DRAFT: Final = "payrelay_restoring"
"""The schema of the draft; one that an interrupted restore has left is removed."""
_ASIDE: Final = "payrelay_restore_aside"
"""Never seen outside one transaction: what has the name of the dump's schema, while the dump is read."""
_LISTED_TABLE: Final = re.compile(r"^\d+; \d+ \d+ TABLE (\S+) schema_version ", re.MULTILINE)
"""How ``pg_restore`` lists the table of the migrations, with its schema."""
_UNLIMITED: Final = {"idle_in_transaction_session_timeout": "0", "statement_timeout": "0", "lock_timeout": "10s"}
_OURS: Final = "SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass('schema_version')"
_SESSIONS: Final = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'payrelay%' AND pid <> pg_backend_pid()"""
_RELATIONS: Final = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1)"
_GRANTS: Final = """
    SELECT format('GRANT %s ON SCHEMA %I TO %s', privilege_type, $2::text,
                  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
    FROM pg_namespace, aclexplode(nspacl) WHERE nspname = $1 AND grantee <> nspowner
    UNION ALL
    SELECT format('GRANT %s ON %s %I.%I TO %s', privilege_type, CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                  $2::text, relname, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
    FROM pg_class, aclexplode(relacl)
    WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p', 'S') AND grantee <> relowner
      AND EXISTS (SELECT 1 FROM pg_class AS new WHERE new.relnamespace = to_regnamespace($2)
                    AND new.relname = pg_class.relname)"""
"""The rights that other roles have on what is replaced, as statements that give them the same on what comes instead."""


class Place(NamedTuple):
    """Where a backup is restored to.

    Attributes:
        database: the name of the PostgreSQL database.
        schema: the schema that becomes the restored one.
        is_taken: whether a Payrelay database is there.
    """

    database: str
    schema: str
    is_taken: bool


async def place_of(url: str) -> Place:
    """Looks where a backup would go.

    Raises StoreUnusable where processes of Payrelay use the database, or where the schema holds something else;
    SettingsError for a URL that can't be read; StoreUnavailable.
    """
    async with connected(url) as connection:
        database = await connection.fetchval("SELECT current_database()")
        await require_quiet(connection, database)
        ours = await connection.fetchval(_OURS)
        schema = ours or await connection.fetchval("SELECT current_schema()")
        if schema is None:
            raise StoreUnusable(f"{database}: the schema that the search path names is missing; create it")
        if ours is None and await connection.fetchval(_RELATIONS, schema):
            raise StoreUnusable(f"{database}: the schema {schema} holds something else than a Payrelay database")
        return Place(database, schema, is_taken=ours is not None)


async def load_draft(url: str, dump: Path, moved: Moved, variables: Mapping[str, str]) -> None:
    """Reads a dump into the draft, whole or not at all; ``variables`` are the environment of PostgreSQL's programs.

    Raises StoreUnusable where a program is missing or fails; StoreUnavailable.
    """
    found = _LISTED_TABLE.search(await output_of(variables, "pg_restore", "--list", str(dump)))
    if found is None:
        raise StoreUnusable(f"{dump}: this is no copy of a Payrelay database")
    schema = found[1]
    async with connected(url) as connection:
        with translated():
            await connection.execute(f"DROP SCHEMA IF EXISTS {DRAFT} CASCADE")
            is_taken = await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", quoted(schema))
    # The dump names its schema in every statement. So the draft has that name until the transaction ends.
    aside = (f"ALTER SCHEMA {quoted(schema)} RENAME TO {_ASIDE}",) if is_taken else ()
    back = (f"ALTER SCHEMA {_ASIDE} RENAME TO {quoted(schema)}",) if is_taken else ()
    address, password = address_and_password(url)
    before = "; ".join((*aside, f"CREATE SCHEMA {quoted(schema)}"))
    after = "; ".join((f"ALTER SCHEMA {quoted(schema)} RENAME TO {DRAFT}", *back))
    await pipe_programs(
        variables if password is None else {**variables, "PGPASSWORD": password},
        ("pg_restore", "--no-owner", "--no-privileges", f"--schema={schema}", "--file=-", str(dump)),
        (
            *("psql", "--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1"),
            *(f"--dbname={address}", "--command", before, "--file=-", "--command", after),
        ),
        moved,
    )


@asynccontextmanager
async def changed(url: str) -> AsyncIterator[tuple[InTransaction, bytes | None]]:
    """Opens the database of a URL in one transaction, whatever its schema is; gives it with the check of its key.

    What was written is on disk when the context has ended well. Raises StoreUnavailable, StoreUnusable.
    """
    async with connected(url) as connection, connection.transaction():
        await connection.execute("SET LOCAL synchronous_commit = on")
        with translated():
            check = await connection.fetchval(KEY_CHECK)
        yield in_postgresql(connection), check


async def take_place(url: str, place: Place, kept: str) -> None:
    """Gives the draft the place of the database, at once; what was there before stays in the schema ``kept``.

    Roles keep the rights that they had. Raises StoreUnusable where a process of Payrelay has come meanwhile;
    StoreUnavailable.
    """
    async with connected(url) as connection:
        with translated():
            async with connection.transaction():
                await connection.execute("SET LOCAL synchronous_commit = on")
                await require_quiet(connection, place.database)
                for (grant,) in await connection.fetch(_GRANTS, place.schema, DRAFT):
                    await connection.execute(grant)
                if place.is_taken:
                    await connection.execute(f"ALTER SCHEMA {quoted(place.schema)} RENAME TO {kept}")
                else:
                    await connection.execute(f"DROP SCHEMA {quoted(place.schema)}")
                await connection.execute(f"ALTER SCHEMA {DRAFT} RENAME TO {quoted(place.schema)}")


async def remove_draft(url: str) -> None:
    """Removes the draft, where there is one. Raises StoreUnavailable."""
    async with connected(url) as connection:
        with translated():
            await connection.execute(f"DROP SCHEMA IF EXISTS {DRAFT} CASCADE")


def url_within(url: str, schema: str) -> str:
    """Gives the address of the same database with another schema."""
    parts = urlsplit(url)
    settings = [*(pair for pair in parse_qsl(parts.query) if pair[0] != "search_path"), ("search_path", schema)]
    return urlunsplit(parts._replace(query=urlencode(settings, quote_via=quote)))


def quoted(name: str) -> str:
    """Writes a name for SQL."""
    return '"' + name.strip('"').replace('"', '""') + '"'


async def require_quiet(connection: asyncpg.Connection, database: str) -> None:
    """Raises StoreUnusable where processes of Payrelay have sessions on the database; ``database`` is its name."""
    sessions = await connection.fetchval(_SESSIONS)
    if sessions:
        raise StoreUnusable(f"{database}: processes of Payrelay have {sessions} sessions on it; stop them all first")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Connects as an operator's command, which may take long. Raises SettingsError, StoreUnavailable."""
    try:
        with translated():
            connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S, server_settings=_UNLIMITED)
    except ValueError:
        raise unreadable() from None
    try:
        yield connection
    finally:
        await asyncio.shield(connection.close())
