"""How a query is written: once for both databases, or once for each where SQL does not reach that far.

Parameters are ``$1``, ``$2``, … as PostgreSQL has them. SQLite gets ``?`` in their place.
"""

import operator
import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

_PARAMETER: Final = re.compile(r"\$(\d+)")
_NOT_IN_SQLITE: Final = re.compile(r"::[a-z]+|\s+FOR UPDATE(?: SKIP LOCKED)?")
"""Type casts, which it has no need of, and locks of rows: there a unit that writes is alone anyway."""

_Parameters: TypeAlias = tuple[str | int | bytes | None, ...]


class SqliteStep(NamedTuple):
    """One SQLite statement, and how its parameters are picked out of the query's."""

    text: str
    pick: Callable[[_Parameters], _Parameters]


class Query(NamedTuple):
    """A named piece of SQL in both dialects.

    SQLite knows no WITH that writes, so there a query may take several steps. They count as one: the first step writes
    one row, and the query gives one row without columns; or it writes none, the query gives no row, and the other
    steps are not run. (What a step writes is counted, because RETURNING costs SQLite 5 µs and more.)
    """

    name: str
    postgresql: str
    sqlite: tuple[SqliteStep, ...]


def query(name: str, text: str, *, sqlite: tuple[str, ...] = ()) -> Query:
    """Writes a query down; ``sqlite`` only where ``text`` can't serve for both.

    Type casts and locks of rows are left out for SQLite.
    """
    return Query(name, text, tuple(_step(_NOT_IN_SQLITE.sub("", step)) for step in sqlite or (text,)))


def _step(text: str) -> SqliteStep:
    places = [int(number) - 1 for number in _PARAMETER.findall(text)]
    return SqliteStep(_PARAMETER.sub("?", text), _picker(places))


def _picker(places: list[int]) -> Callable[[_Parameters], _Parameters]:
    if len(places) > 1:
        return operator.itemgetter(*places)
    if not places:
        return lambda _: ()
    return operator.itemgetter(slice(places[0], places[0] + 1))
