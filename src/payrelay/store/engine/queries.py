"""How a query is written: once for both databases, or once for each where they need different SQL.

Parameters are ``$1``, ``$2``, … as PostgreSQL has them. SQLite gets ``?`` in their place.
"""

# ruff: noqa: S608 - only tables and columns of our own code are put into the texts; values are always parameters

import operator
import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

_PARAMETER: Final = re.compile(r"\$(\d+)")
_MEMBERS: Final = re.compile(r"@(\d+)")
_NOT_IN_SQLITE: Final = re.compile(r'::[a-z]+|\s+COLLATE "default"|\s+FOR UPDATE(?: SKIP LOCKED)?')
"""Type casts and collations, which SQLite doesn't need, and row locks: a unit that writes has the SQLite file to itself
anyway."""
_AMONG_MANY: Final = re.compile(r"(?<![\w.])(?!NOT\b)([\w.]+) IN \(('[^']*'(?:, '[^']*'){2,})\)")
"""A column among three values or more: of so many SQLite makes a table whenever the statement runs."""

_Parameters: TypeAlias = tuple[str | int | bytes | None, ...]


class SqliteStep(NamedTuple):
    """One SQLite statement, and the function that picks its parameters from the query's."""

    text: str
    pick: Callable[[_Parameters], _Parameters]


class Query(NamedTuple):
    """One piece of SQL in both dialects.

    SQLite knows no WITH that writes, so there a query may take several steps. They count as one: the first step writes
    one row, and the query gives one row without columns; or it writes none, the query gives no row, and the other
    steps are not run. (What a step writes is counted, because RETURNING costs SQLite 5 µs and more.)
    """

    postgresql: str
    sqlite: tuple[SqliteStep, ...]
    batch: str | None = None
    """What carries out several of it at once on PostgreSQL, where that is worth it. Each parameter is an array. Each
    row has its place in these arrays, from 1, behind its columns."""
    is_for_each: bool = False
    """Whether SQLite carries its step out for each row of the JSON list in $1. It gives no rows."""


def query_for_each(text: str, *, sqlite: str) -> Query:
    """Makes a query that writes many rows, which come as a JSON list of lists in ``$1``, and gives none.

    ``sqlite`` writes one row, with its values as ``$1``, ``$2``, …. To take each value out of the list takes SQLite
    twice the time.
    """
    return query(text, sqlite=(sqlite,))._replace(is_for_each=True)


def query(text: str, *, sqlite: tuple[str, ...] = (), batch: str | None = None) -> Query:
    """Makes a query; ``sqlite`` only where ``text`` can't serve for both databases.

    Type casts and row locks are left out for SQLite, which also has another name for the function that makes arrays. A
    column that is among several values is compared with each of them there.
    """
    return Query(text, tuple(_step(in_sqlite(step)) for step in sqlite or (text,)), batch)


def batched_query(text: str, *types: str) -> Query:
    """Makes a query that only reads, and of which PostgreSQL carries out several at once; its parameters have types."""
    batch = f"SELECT found.*, asked.place FROM {asked(types)} CROSS JOIN LATERAL ({in_batch(text)}) AS found"
    return query(text, batch=batch)


def asked(types: Iterable[str]) -> str:
    """Writes the table of a batch's parameters: a row for each place, with the columns ``p1``, ``p2``, …, ``place``."""
    arrays = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(types, 1))
    names = ", ".join(f"p{number}" for number in range(1, arrays.count("[]") + 1))
    return f"unnest({arrays}) WITH ORDINALITY AS asked ({names}, place)"


def in_batch(text: str) -> str:
    """Puts the columns of ``asked`` into the place of parameters."""
    return _PARAMETER.sub(r"asked.p\1", text)


def query_among(text: str) -> Query:
    """Makes a query in which ``@2`` compares the column before it with the texts of the JSON list in ``$2``."""
    return query(
        _MEMBERS.sub(r"= ANY (ARRAY(SELECT wanted FROM json_array_elements_text($\1::json) AS wanted))", text),
        sqlite=(_MEMBERS.sub(r"IN (SELECT value FROM json_each($\1))", text),),
    )


def distinct(table: str, column: str, where: str = "true") -> str:
    """Writes a query for the different values of a column, each found by one step in an index that begins with it.

    SELECT DISTINCT reads every row instead. ``where`` is the condition of a partial index.
    """
    return f"""
    SELECT value FROM (
      WITH RECURSIVE each_once (value) AS (
        SELECT min({column}) FROM {table} WHERE {where}
        UNION ALL
        SELECT (SELECT min({column}) FROM {table} WHERE {column} > each_once.value AND {where})
        FROM each_once WHERE each_once.value IS NOT NULL
      )
      SELECT value FROM each_once WHERE value IS NOT NULL
    ) AS different_{table}"""


def in_sqlite(text: str) -> str:
    """Writes for SQLite what is written for PostgreSQL, but for parameters."""
    text = _NOT_IN_SQLITE.sub("", text).replace("json_build_array(", "json_array(")
    return _AMONG_MANY.sub(_compared, text)


def _compared(among: re.Match[str]) -> str:
    """Compares a column with each of the values: so the conditions of SQLite's partial indexes are written too."""
    column, values = among.groups()
    return f"({' OR '.join(f'{column} = {value}' for value in values.split(', '))})"


def _step(text: str) -> SqliteStep:
    indexes = [int(number) - 1 for number in _PARAMETER.findall(text)]
    return SqliteStep(_PARAMETER.sub("?", text), _picker(indexes))


def _picker(indexes: list[int]) -> Callable[[_Parameters], _Parameters]:
    if len(indexes) > 1:
        return operator.itemgetter(*indexes)
    if not indexes:
        return lambda _: ()
    return operator.itemgetter(slice(indexes[0], indexes[0] + 1))
