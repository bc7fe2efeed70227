"""The digests of rows.

The names of tables and columns come from ``store.digests``, never from a request.
"""

# ruff: noqa: S608 - only our own tables and columns are put into the texts; values are always parameters

from collections.abc import Sequence
from functools import cache

from payrelay.store.engine.queries import Query, query


@cache
def page_of(table: str, columns: Sequence[str], keys: int, *, is_first: bool) -> Query:
    """Reads rows in the order of their first ``keys`` columns: from the very beginning, or behind $2 and following."""
    # The first page has no lower bound: whatever id somebody wrote into the table, even an empty one, is behind none.
    key = ", ".join(columns[:keys])
    after = ", ".join(f"${number}" for number in range(2, keys + 2))
    where = "" if is_first else f" WHERE ({key}) > ({after})"
    return query(f"SELECT {', '.join(columns)} FROM {table}{where} ORDER BY {key} LIMIT $1")
