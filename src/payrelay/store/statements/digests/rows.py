"""The digests of rows.

The names of tables and columns come from ``store.digests``, never from a request.
"""

# ruff: noqa: S608 - only our own tables and columns are put into the texts; values are always parameters

from collections.abc import Sequence
from functools import cache

from payrelay.store.engine.queries import Query, query


@cache
def page_of(table: str, columns: Sequence[str]) -> Query:
    """Reads rows in the order of their ids, from an id on."""
    return query(f"SELECT {', '.join(columns)} FROM {table} WHERE id > $1 ORDER BY id LIMIT $2")


@cache
def locked_page_of(table: str, columns: Sequence[str]) -> Query:
    """Reads rows as ``page_of``, and locks them until the transaction ends."""
    return query(f"SELECT {', '.join(columns)} FROM {table} WHERE id > $1 ORDER BY id LIMIT $2 FOR UPDATE")


@cache
def add_digests(table: str) -> Query:
    """Stores the digests of rows that have none, from a JSON object of ids and digests."""
    fits = f"{table}.id = found.key AND {table}.row_digest = ''"
    return query(
        f"UPDATE {table} SET row_digest = found.value FROM jsonb_each_text($1::jsonb) AS found WHERE {fits}",
        sqlite=(f"UPDATE {table} SET row_digest = found.value FROM json_each($1) AS found WHERE {fits}",),
    )


@cache
def any_digest(tables: Sequence[str]) -> Query:
    """Tells whether a row of one of the tables has a digest."""
    return query(
        "SELECT 1 WHERE " + " OR ".join(f"EXISTS (SELECT 1 FROM {name} WHERE row_digest <> '')" for name in tables)
    )
