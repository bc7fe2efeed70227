"""The digests of rows.

The names of tables and columns come from ``store.digests``, never from a request.
"""

# ruff: noqa: S608 - only our own tables and columns are put into the texts; values are always parameters

from collections.abc import Sequence
from functools import cache
from typing import Final

from payrelay.store.engine.queries import Query, query

_NUMBERS: Final = frozenset({"seq", "position"})
"""Keys that are numbers; all others are texts."""


@cache
def page_of(table: str, columns: Sequence[str], keys: int, *, is_first: bool) -> Query:
    """Reads rows in the order of their first ``keys`` columns: from the very beginning, or behind $2 and following."""
    return query(_page(table, columns, keys, is_first=is_first))


@cache
def locked_page_of(table: str, columns: Sequence[str], keys: int, *, is_first: bool) -> Query:
    """Reads rows as ``page_of``, and locks them until the transaction ends."""
    return query(f"{_page(table, columns, keys, is_first=is_first)} FOR UPDATE")


def _page(table: str, columns: Sequence[str], keys: int, *, is_first: bool) -> str:
    # The first page has no lower bound: whatever id somebody wrote into the table, even an empty one, is behind none.
    key = ", ".join(columns[:keys])
    after = ", ".join(f"${number}" for number in range(2, keys + 2))
    where = "" if is_first else f" WHERE ({key}) > ({after})"
    return f"SELECT {', '.join(columns)} FROM {table}{where} ORDER BY {key} LIMIT $1"


@cache
def any_digest(tables: Sequence[str]) -> Query:
    """Tells whether a row of one of the tables has a digest."""
    return query(
        "SELECT 1 WHERE " + " OR ".join(f"EXISTS (SELECT 1 FROM {name} WHERE row_digest <> '')" for name in tables)
    )


@cache
def put_digests(table: str, keys: Sequence[str]) -> Query:
    """Stores the digests of rows that were read locked: $1 is a JSON list of keys, ``new_digest`` and ``was``."""
    wanted = " AND ".join(f"{table}.{key} = {{given}}" for key in (*keys, "row_digest"))
    names = [*keys, "was"]
    in_postgresql = wanted.replace("{given}", "given.{}").format(*names)
    in_sqlite = wanted.replace("{given}", "json_extract(given.value, '$.{}')").format(*names)
    columns = ", ".join(f"{name} {'bigint' if name in _NUMBERS else 'text'}" for name in (*names, "new_digest"))
    return query(
        f"""
        UPDATE {table} SET row_digest = given.new_digest
        FROM json_to_recordset($1::json) AS given({columns}) WHERE {in_postgresql}""",
        sqlite=(
            f"""
            UPDATE {table} SET row_digest = json_extract(given.value, '$.new_digest')
            FROM json_each($1) AS given WHERE {in_sqlite}""",
        ),
    )
