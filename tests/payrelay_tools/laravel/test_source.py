"""laravel-payhere's tables, wherever a shop has them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.laravel_shop import APP_KEY_TEXT, encrypted, mysql_dump, payment, subscription, write_sqlite

from payrelay.core.secret import Secret
from payrelay.imports.rules.items import ImportUnreadableError
from payrelay_tools.laravel.secrets import AppKeys
from payrelay_tools.laravel.source import laravel_source
from payrelay_tools.laravel.sqlite import ROW_BYTES_MAX, sqlite_rows

ROWS = [payment(1), payment(2, customer_token="59AFEE022CC69CA39D325E1B59130862")]
PLANS = [subscription(1, payhere_subscription_id="420075000001")]


async def kinds_in(place: str | Path, *keys: str) -> list[str]:
    """Gives the kinds of the items of a source, which these keys open."""
    source = laravel_source(str(place), AppKeys([Secret(key) for key in keys]), lambda _: True)
    return sorted([type(item).__name__ async for item in source.items()])


EXPECTED = ["CardItem", "PaymentItem", "PaymentItem", "PlanItem"]


async def test_every_kind_of_file_is_known_by_its_beginning(tmp_path: Path) -> None:
    """Whatever it is called; whoever can't reach the database exports a table as CSV."""
    sqlite, dump, table = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.txt"
    write_sqlite(sqlite, [encrypted(row) for row in ROWS], PLANS)
    dump.write_text(mysql_dump(ROWS, PLANS))
    table.write_text(
        "id,payment_id,order_id,payhere_amount,payhere_currency,status_code\n1,320025000001,A,5,LKR,2\n2,3\n"
    )

    assert await kinds_in(sqlite, APP_KEY_TEXT) == EXPECTED
    assert await kinds_in(dump) == EXPECTED
    assert await kinds_in(table) == ["NoItem", "PaymentItem"]
    assert laravel_source(str(dump), AppKeys(), lambda _: True).name.startswith("b.txt (sha256:")


async def test_a_row_of_an_sqlite_file_does_not_fill_the_memory(tmp_path: Path) -> None:
    """Such a file may have values of a gigabyte."""
    path = tmp_path / "shop.sqlite"
    write_sqlite(path, ROWS)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE payhere_payments SET order_id = zeroblob(?)", (ROW_BYTES_MAX,))

    with pytest.raises(ImportUnreadableError, match="too big"):
        await kinds_in(path, APP_KEY_TEXT)


async def test_a_text_that_an_sqlite_file_keeps_as_bytes_is_that_text(tmp_path: Path) -> None:
    """Such a file keeps whatever was written, and the payment of a column of bytes is a payment too."""
    path = tmp_path / "shop.sqlite"
    write_sqlite(path, ROWS[:1])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE payhere_payments SET order_id = CAST(order_id AS blob)")

    assert await kinds_in(path) == ["PaymentItem"]


def test_an_sqlite_file_that_is_gone_is_unreadable(tmp_path: Path) -> None:
    """It was there when the import looked at its beginning."""
    with pytest.raises(ImportUnreadableError, match="unable to open"):
        next(sqlite_rows(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("order_id\n".encode("utf-16"), "isn't UTF-8"),
        (b"\0\0\0", "isn't UTF-8"),
        (b"SQLite format 3\0" + b"x" * 100, "not a database"),
        (b"-- PostgreSQL database dump\n", "postgresql://"),
        (b"CREATE TABLE x (id int);", "no table of laravel-payhere"),
        (b"payment_id,amonut\n", "'amonut'"),
        (b"payment_id,order_id,amount,currency\n", "in Payrelay's own form"),
    ],
)
async def test_what_is_no_table_of_the_package_is_unreadable(tmp_path: Path, content: bytes, why: str) -> None:
    """With a sentence that says what it is."""
    path = tmp_path / "file"
    path.write_bytes(content)

    with pytest.raises(ImportUnreadableError, match=why):
        await kinds_in(path)


async def test_a_database_is_named_without_its_address() -> None:
    """The name is stored, and the address may have a password."""
    place = "postgresql://shop:hunter2@127.0.0.1:9/shop"

    assert laravel_source(place, AppKeys(), lambda _: True).name == "PostgreSQL"
    with pytest.raises(ImportUnreadableError, match="can't be opened"):
        await kinds_in(place)
