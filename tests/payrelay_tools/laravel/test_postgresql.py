"""laravel-payhere's tables in a shop's PostgreSQL."""

from typing import TYPE_CHECKING

import asyncpg
import pytest
from tests.draws import drawn_uuid
from tests.laravel_shop import payment, postgresql_statements, subscription

from payrelay.imports.rules.items import ImportUnreadableError
from payrelay_tools.laravel.postgresql import postgresql_rows

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer


async def made(server: "PostgresqlServer", *statements: str) -> str:
    """Makes a database by statements; gives its address."""
    name = f"shop_{drawn_uuid().hex}"
    server.run("createdb", "-h", str(server.folder), "-U", "payrelay", name)
    url = f"postgresql://payrelay@/{name}?host={server.folder}"
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()
    return url


@pytest.mark.postgresql
@pytest.mark.process
async def test_the_rows_are_those_of_the_tables(postgresql_server: "PostgresqlServer") -> None:
    """As texts, the payments first; another table of the shop's is left alone."""
    url = await made(
        postgresql_server,
        *postgresql_statements([payment(2), payment(1, refunded=1)], [subscription(1)]),
        "CREATE TABLE users (id bigint, order_id text, status text)",
    )

    rows = [row async for row in postgresql_rows(url)]

    assert [row.place for row in rows] == ["payhere_payments 1", "payhere_payments 2", "payhere_subscriptions 1"]
    assert rows[0].values["refunded"] == "true"
    assert rows[1].values["payhere_amount"] == "1250.5"


@pytest.mark.postgresql
@pytest.mark.process
async def test_a_table_that_cannot_be_read_is_unreadable(postgresql_server: "PostgresqlServer") -> None:
    """With the server's own sentence; what came before it stays imported."""
    columns = "1 AS order_id, 1/0 AS payhere_amount, 1 AS payhere_currency, 2 AS status_code"
    url = await made(postgresql_server, f"CREATE VIEW payments AS SELECT {columns}")

    with pytest.raises(ImportUnreadableError, match="can't be read: division by zero"):
        [row async for row in postgresql_rows(url)]


async def test_a_database_that_cannot_be_opened_is_unreadable() -> None:
    """The sentence goes to a terminal, and has no password in it."""
    with pytest.raises(ImportUnreadableError, match="can't be opened") as raised:
        [row async for row in postgresql_rows("postgresql://shop:hunter2@127.0.0.1:9/shop")]

    assert "hunter2" not in str(raised.value)
