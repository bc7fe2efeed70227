"""Sealed values of all tables: counted by key, read page by page, and replaced by themselves under another key.

The first byte of a sealed value is its format. In a value that is sealed with the store's key the next four name it.
"""

# ruff: noqa: S608 - only tables and columns named in ``store.tables.seals`` are put into the texts; values are parameters

from functools import cache

from payrelay.store.engine.queries import Query, query


@cache
def count_by_key(table: str, column: str) -> Query:
    """Composes the query that counts the values of a column with format $1 by the ids of their keys."""
    return query(f"SELECT substr({column}, 2, 4), count(*) FROM {table} WHERE substr({column}, 1, 1) = $1 GROUP BY 1")


@cache
def page_of_others(table: str, column: str, keys: tuple[str, ...]) -> Query:
    """Composes the query of one page: values with format $1 and another key than $2, behind a row; then limit.

    The row is named by $3, …
    """
    names, last = ", ".join(keys), len(keys) + 2
    behind = ", ".join(f"${number}" for number in range(3, last + 1))
    return query(
        f"""
        SELECT {column}, {names} FROM {table}
        WHERE substr({column}, 1, 1) = $1 AND substr({column}, 2, 4) <> $2 AND ({names}) > ({behind})
        ORDER BY {names} LIMIT ${last + 1}""",
    )


@cache
def exchange(table: str, column: str, keys: tuple[str, ...]) -> Query:
    """Composes the statement that replaces $2 by $1 in the row named by $3, …; no row where the value has changed."""
    named = " AND ".join(f"{key} = ${number}" for number, key in enumerate(keys, 3))
    return query(f"UPDATE {table} SET {column} = $1 WHERE {column} = $2 AND {named} RETURNING {keys[0]}")
