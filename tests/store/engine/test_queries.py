from payrelay.store.engine.queries import query


def test_parameters_are_picked_in_the_order_of_their_use() -> None:
    """SQLite gets them by place, PostgreSQL by number, and both mean the same."""
    step = query("SELECT $2, $1, $2 WHERE $3").sqlite[0]

    assert step.text == "SELECT ?, ?, ? WHERE ?"
    assert step.pick(("a", "b", "c")) == ("b", "a", "b", "c")


def test_one_parameter_is_still_a_row_of_parameters() -> None:
    """A text alone would be taken for a row of characters."""
    assert query("SELECT $2").sqlite[0].pick(("a", "bc")) == ("bc",)
    assert query("SELECT 1").sqlite[0].pick(("a",)) == ()


def test_sqlite_is_spared_the_casts() -> None:
    """It has no such syntax, and no need of it."""
    assert query("SELECT $1::bigint").sqlite[0].text == "SELECT ?"
    assert query("SELECT $1::bigint").postgresql == "SELECT $1::bigint"


def test_sqlite_is_spared_the_locks_of_rows() -> None:
    """It has no such syntax either: a unit of work that writes has the whole file to itself."""
    locking = query("SELECT 1 FROM t ORDER BY id LIMIT $1\n    FOR UPDATE SKIP LOCKED")

    assert locking.sqlite[0].text == "SELECT 1 FROM t ORDER BY id LIMIT ?"
    assert locking.postgresql.endswith("FOR UPDATE SKIP LOCKED")
    assert query("SELECT 1 FROM t FOR UPDATE").sqlite[0].text == "SELECT 1 FROM t"


def test_sqlite_compares_with_each_of_several_values() -> None:
    """It makes a table of three values or more whenever a statement runs, and knows partial indexes by their words."""
    among = query("SELECT 1 FROM t WHERE a = $1 AND NOT t.kind IN ('x', 'y', 'z')")

    assert among.sqlite[0].text == "SELECT 1 FROM t WHERE a = ? AND NOT (t.kind = 'x' OR t.kind = 'y' OR t.kind = 'z')"
    assert among.postgresql.endswith("t.kind IN ('x', 'y', 'z')")


def test_two_values_and_a_refusal_of_several_stay_as_they_are() -> None:
    """SQLite makes no table of two, and what no index knows by its words reads better as it was written."""
    for text in ("SELECT 1 FROM t WHERE kind IN ('x', 'y')", "SELECT 1 FROM t WHERE kind NOT IN ('x', 'y', 'z')"):
        assert query(text).sqlite[0].text == text
