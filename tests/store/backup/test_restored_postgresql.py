"""How a restored PostgreSQL database takes the place of another one."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.draws import drawn_uuid
from tests.postgresql_server import PostgresqlServer

from payrelay.backups.store.restored_postgresql import Place, place_of, remove_draft, take_place, url_within
from payrelay.errors import StoreUnusable

pytestmark = pytest.mark.postgresql

MADE = "CREATE TABLE {0}.schema_version (number int); CREATE TABLE {0}.meta (name text, value text)"


@pytest.fixture
async def url(postgresql_server: PostgresqlServer) -> AsyncIterator[str]:
    """The address of a database of our own."""
    name = f"place_{drawn_uuid().hex}"
    await asyncio.to_thread(postgresql_server.create, name)
    yield postgresql_server.url(name)
    await asyncio.to_thread(postgresql_server.drop, name)


async def execute(url: str, *statements: str) -> None:
    """Runs statements as an operator would."""
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def asked(url: str, question: str) -> object:
    """Asks the database for one value."""
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


async def test_both_are_renamed_and_roles_keep_their_rights(url: str) -> None:
    """A service whose role may not read what was restored would be down until somebody finds out why."""
    role = f"service_{drawn_uuid().hex}"
    await execute(
        url,
        MADE.format("public"),
        "INSERT INTO meta VALUES ('it is', 'old')",
        f"CREATE ROLE {role}",
        f"GRANT USAGE ON SCHEMA public TO {role}",
        f"GRANT SELECT, UPDATE ON meta TO {role}",
        "CREATE SCHEMA payrelay_restoring",
        MADE.format("payrelay_restoring"),
        "INSERT INTO payrelay_restoring.meta VALUES ('it is', 'new')",
    )
    place = await place_of(url)
    await take_place(url, place, "payrelay_replaced_1")

    assert place.schema == "public"
    assert await asked(url, "SELECT value FROM meta") == "new"
    assert await asked(url_within(url, "payrelay_replaced_1"), "SELECT value FROM meta") == "old"
    assert await asked(url, f"SELECT has_table_privilege('{role}', 'meta', 'UPDATE')") is True
    assert await asked(url, f"SELECT has_table_privilege('{role}', 'meta', 'DELETE')") is False
    assert await asked(url, f"SELECT has_schema_privilege('{role}', 'public', 'USAGE')") is True
    await execute(url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


async def test_a_service_that_comes_meanwhile_stops_it(url: str) -> None:
    """It has begun to work with the old one, and would go on with the new one without knowing."""
    await execute(url, MADE.format("public"), "CREATE SCHEMA payrelay_restoring")
    place = await place_of(url)
    service = await asyncpg.connect(url, server_settings={"application_name": "payrelay schema 22"})
    try:
        with pytest.raises(StoreUnusable, match="1 sessions"):
            await place_of(url)
        with pytest.raises(StoreUnusable, match="1 sessions"):
            await take_place(url, place, "payrelay_replaced_1")
    finally:
        await service.close()

    assert await asked(url, "SELECT to_regclass('public.meta') IS NOT NULL") is True
    await remove_draft(url)
    await remove_draft(url)
    assert await asked(url, "SELECT to_regnamespace('payrelay_restoring') IS NULL") is True


async def test_a_database_of_somebody_else_is_no_place(url: str) -> None:
    """Its tables would get another schema, and their program would not find them."""
    assert (await place_of(url)) == Place((await place_of(url)).database, "public", is_taken=False)
    await execute(url, "CREATE TABLE strange (id int)")

    with pytest.raises(StoreUnusable, match="holds something else"):
        await place_of(url)
    with pytest.raises(StoreUnusable, match="search path names is missing"):
        await place_of(url_within(url, "nowhere"))
