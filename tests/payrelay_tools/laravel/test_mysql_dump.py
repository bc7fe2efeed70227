# ruff: noqa: S608 - nothing here is a query

"""Dumps of MySQL: read whatever their quoting and wherever they are cut, or refused."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draws import examples
from tests.laravel_shop import mysql_dump, payment, subscription

from payrelay.imports.rules.items import ImportUnreadableError, NoItem, SourceRow
from payrelay_tools.laravel.mysql_dump import COLUMNS_MAX, TOKEN_MAX, dump_rows

HEAD = (
    "CREATE TABLE `t` (`id` int, `order_id` text, `payhere_amount` double, `payhere_currency` text,"
    " `status_code` text);"
)


def rows_in(text: str, piece: int = 7) -> list[SourceRow | NoItem]:
    """Reads a dump that comes in small pieces."""
    return list(dump_rows(text[at : at + piece] for at in range(0, len(text), piece)))


def values_in(text: str) -> list[dict[str, str | None]]:
    """Gives the values of all rows."""
    return [row.values for row in rows_in(text) if isinstance(row, SourceRow)]


def test_the_tables_of_the_package_are_read_and_no_others() -> None:
    """A text of another table that looks like a statement is a text."""
    payments = [payment(1), payment(2, card_holder_name="a\nb', '; -- \\", refund_reason=None)]
    read = rows_in(mysql_dump(payments, [subscription(1, payhere_subscription_id=420075000001)]))

    assert [row.table for row in read if isinstance(row, SourceRow)] == [
        "payhere_payments",
        "payhere_payments",
        "payhere_subscriptions",
    ]
    for row, given_row in zip(read, payments, strict=False):
        assert isinstance(row, SourceRow)
        assert row.values == {name: None if value is None else str(value) for name, value in given_row.items()}
    assert read[1].place.startswith("line ")
    assert read[1].place.endswith(", payhere_payments 2")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("'it''s'", "it's"),
        (r"'it\'s \\ \n\0\Z\q'", "it's \\ \n\0\x1aq"),
        ("_binary 'x'", "x"),
        ("_utf8mb4'x'", "x"),
        ("0x416", "\x04\x16"),
        ("0xFF", "\udcff"),
        ("-12.50e1", "-12.50e1"),
        ("NULL", None),
        ("TRUE", "1"),
        ("false", "0"),
        ("/* no */ 'x' -- no\n", "x"),
        ("'a), (2' # no\n", "a), (2"),
    ],
)
def test_a_value_is_read_as_mysql_means_it(written: str, meant: str | None) -> None:
    """The package's columns hold names, which have quotes and backslashes in them."""
    insert = f"INSERT INTO `t` VALUES (1,{written},1,'LKR','2');"

    assert [row["order_id"] for row in values_in(HEAD + insert)] == [meant]


def test_a_statement_may_name_its_columns_and_its_database() -> None:
    """Exports of tools other than mysqldump do, and come without the table's own statement."""
    names = '(status_code, "order_id", `payhere_currency`, payhere_amount)'
    text = f"REPLACE INTO `shop`.`pay``ments` {names} VALUE ('2','A','LKR',5.5),('2','B','LKR',6);"

    assert [row["order_id"] for row in values_in(text)] == ["A", "B"]
    assert rows_in(text)[0].place == "line 1, pay`ments"


def test_a_row_of_another_length_is_refused_and_the_others_are_read() -> None:
    """Values that stand under the wrong names would be somebody else's payment."""
    first, second = rows_in(HEAD + "INSERT INTO `t` VALUES (1,'A'),(2,'B',1,'LKR','2');")

    assert isinstance(first, NoItem)
    assert "2 values" in first.reason
    assert isinstance(second, SourceRow)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO `u` VALUES (1);",
        "INSERT INTO `t` VALUES (1,'A',1,'LKR','2') ON DUPLICATE KEY UPDATE id = 1;",
        "CREATE VIEW v AS SELECT 1;",
        "CREATE TABLE v LIKE t;",
        "CREATE TABLE IF NOT EXISTS `v` (a int, PRIMARY KEY (`a`), CHECK (a > 1), b decimal(8,2)) COMMENT='x';",
        "ALTER TABLE t ADD INDEX (id);",
        ";;",
        "SELECT 1",
    ],
)
def test_other_statements_are_passed_over(statement: str) -> None:
    """A dump has many, and none of them is a reason to stop."""
    found = rows_in(
        HEAD + statement + ("" if statement == "SELECT 1" else "INSERT INTO `t` VALUES (9,'Z',1,'LKR','2');")
    )

    assert statement == "SELECT 1" or found[-1].place.endswith("t 9")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("INSERT INTO `t` VALUES (1,'A", "'A"),
        ("INSERT INTO `t` VALUES (1,'A',", "ends in the midst"),
        ("INSERT INTO `t` VALUES (1,X'41',1,'LKR','2');", "'X' is no value"),
        ("INSERT INTO `t` VALUES (1,now(),1,'LKR','2');", "'now' is no value"),
        ("INSERT INTO `t` VALUES (1,+,1,'LKR','2');", "'+' is no value"),
        ("INSERT INTO `t` SELECT * FROM x;", "don't follow VALUES"),
        ("SET sql_mode='NO_BACKSLASH_ESCAPES';", "NO_BACKSLASH_ESCAPES"),
        ("SELECT \x01;", "can't be read"),
        (f"INSERT INTO `t` VALUES ({'1,' * COLUMNS_MAX}1);", "a row has more than"),
        (f"INSERT INTO `t` ({','.join(f'c{n}' for n in range(COLUMNS_MAX + 1))}) VALUES", "an INSERT has more than"),
        (f"INSERT INTO `t` VALUES ({'x' * 50});", f"'{'x' * 20}' is no value"),
        (f"CREATE TABLE x ({','.join(f'c{n} int' for n in range(COLUMNS_MAX + 1))});", "more than"),
    ],
)
def test_what_nobody_can_read_ends_the_reading_with_its_line(text: str, why: str) -> None:
    """Behind it, texts could be taken for statements."""
    with pytest.raises(ImportUnreadableError, match="line 1: ") as raised:
        rows_in(HEAD + text)

    assert why in str(raised.value)


def test_a_text_without_an_end_does_not_fill_the_memory() -> None:
    """A file of gigabytes that is no dump."""

    def endless() -> Iterator[str]:
        yield HEAD + "INSERT INTO `t` VALUES (1,'"
        while True:
            yield "x" * 100_000

    with pytest.raises(ImportUnreadableError, match=f"more than {TOKEN_MAX} characters"):
        list(dump_rows(endless()))


@pytest.mark.parametrize("piece", [1_000, 65_536, TOKEN_MAX])
def test_a_value_may_be_as_long_as_one_can_be(piece: int) -> None:
    """However it is cut; and one that is longer is refused."""
    value = "x" * (TOKEN_MAX - 2)
    [row] = rows_in(f"{HEAD}INSERT INTO `t` VALUES (1,'{value}',1,'LKR','2');", piece)
    assert isinstance(row, SourceRow)
    assert row.values["order_id"] == value

    with pytest.raises(ImportUnreadableError, match=f"more than {TOKEN_MAX} characters"):
        rows_in(f"{HEAD}INSERT INTO `t` VALUES (1,'{value * 3}',1,'LKR','2');", piece)


def test_a_long_file_is_let_go_as_it_is_read() -> None:
    """Some pieces that are longer than the longest value."""
    row = "INSERT INTO `t` VALUES (1,'A',1,'LKR','2');\n"
    piece = row * (TOKEN_MAX // len(row) + 10)

    assert sum(1 for _ in dump_rows([HEAD, piece, piece])) == 2 * (TOKEN_MAX // len(row) + 10)


@settings(max_examples=examples(60))
@given(st.text(max_size=30), st.integers(min_value=1, max_value=9))
def test_every_text_comes_back_as_it_was(text: str, piece: int) -> None:
    """Whatever a customer is called, and wherever the file is cut."""
    read = rows_in(mysql_dump([payment(1, card_holder_name=text)]), piece)

    assert isinstance(read[0], SourceRow)
    assert read[0].values["card_holder_name"] == text
