"""Pages: the rows of a table that are equal in some columns, newest first, from an id downwards.

Each page is read by an index that leads to its rows in their order, named by the ``Listing``. A filter for a rare value
has a partial index of the rare values alone, which a database uses where the statement says that the value is one.

For SQLite each value has a ``+`` before it. Otherwise SQLite compares it with those of a partial index's condition, and
prepares the statement anew for each other value (docs/decisions/0098).
"""

# ruff: noqa: S608 - only tables and columns named here are put into the texts; values are always parameters

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows
from payrelay.store.engine.queries import Query, query

PAGE_MAX: Final = 1_000
"""Rows of one page, whatever the caller asks for."""


class Among(NamedTuple):
    """Some values of a column that has few: the rare ones, which have an index of their own."""

    column: str
    values: tuple[str, ...]

    @classmethod
    def all_but(cls, column: str, frequent: Iterable[str], values: Iterable[str]) -> "Among":
        """Gives all values but those that are frequent."""
        return cls(column, tuple(sorted({str(each) for each in values} - {str(each) for each in frequent})))

    @property
    def text(self) -> str:
        """The condition as it is in PostgreSQL's partial indexes.

        In SQLite's it is as ``query`` writes it for SQLite, word by word: otherwise SQLite doesn't recognise it.
        """
        members = ", ".join(f"'{value}'" for value in self.values)
        return f"{self.column} IN ({members})" if len(self.values) > 1 else f"{self.column} = {members}"


class ListIndex(NamedTuple):
    """An index that leads to the rows which are equal in its columns; with ``among`` a partial one.

    ``is_sorted`` says whether the ids are in it behind the columns. Where they aren't, the rows are few. ``is_narrow``
    says that it leads to what belongs to one thing: to few rows, whatever else is asked for.
    """

    columns: tuple[str, ...]
    among: Among | None = None
    is_sorted: bool = True
    is_narrow: bool = False


class Listing(NamedTuple):
    """A table that is read page by page, the columns that are read, and its indexes, the most selective first.

    Its ids sort by time.
    """

    table: str
    columns: str
    indexes: tuple[ListIndex, ...]


def page_of(listing: Listing, equal: Mapping[str, Value], *, before: str | None, limit: int) -> Statement:
    """Reads one page: at most ``limit`` rows that are equal in these columns, with ids below ``before``.

    None is for the first page. The names of the columns come from our own code, never from a request.
    """
    last = () if before is None else (before,)
    index = _index_of(listing, equal)
    composed = _page(listing, tuple(equal), index, is_continued=before is not None)
    return Statement(composed, (*equal.values(), *last, min(limit, PAGE_MAX)))


async def read_page(
    database: Database, listing: Listing, equal: Mapping[str, Value], *, before: str | None, limit: int
) -> list[Row]:
    """Reads the rows of one page, as ``page_of``: beside what charges need, unless they surely are few.

    What belongs to one order, payment or customer is asked for by charges themselves. Raises StoreUnavailable.
    """
    unit = all_rows(page_of(listing, equal, before=before, limit=limit))
    index = _index_of(listing, equal)
    is_narrow = index is not None and index.is_narrow
    return await (database.read(unit) if is_narrow else database.read_page(unit))


class ListWindow(NamedTuple):
    """A part of a list: the ids from ``first`` on and below ``before``; None where there is no such end."""

    first: str | None = None
    before: str | None = None


class WindowPage(NamedTuple):
    """What one look through a part of a list found.

    Attributes:
        rows: those that fit, newest first.
        edge: the id of the last row that was looked at, where more rows may be behind it; None where none is.
    """

    rows: list[Row]
    edge: str | None


async def read_window(
    database: Database, listing: Listing, equal: Mapping[str, Value], within: ListWindow, *, looked_max: int, limit: int
) -> WindowPage:
    """Looks through at most ``looked_max`` rows by the index of the filter, newest first, for those that fit.

    So a filter that has no index of its own takes a bounded time, and its caller can say how far it looked and go on
    from there. Raises StoreUnavailable.
    """
    return await database.read_page(_window(*window_of(listing, equal, within, looked_max=looked_max, limit=limit)))


def window_of(
    listing: Listing, equal: Mapping[str, Value], within: ListWindow, *, looked_max: int, limit: int
) -> tuple[Statement, Statement]:
    """Gives the statement that looks through a part of a list, and the one that tells where a full look ends."""
    index = _index_of(listing, equal)
    ends = tuple(end for end in ("first", "before") if getattr(within, end) is not None)
    look, edge = _window_queries(listing, tuple(equal), index, ends)
    values = (*equal.values(), *(getattr(within, end) for end in ends))
    chosen = () if index is None else index.columns
    of_index = (*(equal[name] for name in chosen), *(getattr(within, end) for end in ends))
    return (
        Statement(look, (*values, looked_max, min(limit, PAGE_MAX))),
        Statement(edge, (*of_index, looked_max - 1)),
    )


def _window(look: Statement, edge: Statement) -> Unit[WindowPage]:
    rows = yield look
    edges = yield edge
    return WindowPage(rows, str(edges[0][0]) if edges else None)


@lru_cache(maxsize=1_024)
def _window_queries(
    listing: Listing, columns: tuple[str, ...], index: ListIndex | None, ends: tuple[str, ...]
) -> tuple[Query, Query]:
    chosen = () if index is None else index.columns
    numbers = {name: f"${number}" for number, name in enumerate((*columns, *ends), 1)}
    others = [column for column in columns if column not in chosen]
    among = [] if index is None or index.among is None else [index.among.text]
    shown = ", ".join(["id", *others])

    def inner(what: str, names: Mapping[str, str], plain_id: str, bound: str) -> str:
        compared = {"first": ">=", "before": "<"}
        ranges = [f"{plain_id} {compared[end]} {names[end]}" for end in ends]
        where = " AND ".join([*(f"{column} = {bound}{names[column]}" for column in chosen), *ranges, *among])
        return f"SELECT {what} FROM {listing.table} {f'WHERE {where}' if where else ''} ORDER BY {plain_id} DESC"

    def look(plain_id: str, bound: str) -> str:
        fitting = " AND ".join(f"{column} = {bound}{numbers[column]}" for column in others)
        return f"""
        SELECT {listing.columns} FROM {listing.table} WHERE id IN (
            SELECT id FROM ({inner(shown, numbers, plain_id, bound)} LIMIT ${len(numbers) + 1}) AS looked_at
            {f"WHERE {fitting}" if fitting else ""} ORDER BY id DESC LIMIT ${len(numbers) + 2}
        )
        ORDER BY id DESC"""

    of_index = {name: f"${number}" for number, name in enumerate((*chosen, *ends), 1)}

    def edge(plain_id: str, bound: str) -> str:
        return f"{inner('id', of_index, plain_id, bound)} LIMIT 1 OFFSET ${len(of_index) + 1}"

    in_sqlite = "id" if index is None or index.is_sorted else "+id"
    return (
        query(look("id", ""), sqlite=(look(in_sqlite, "+"),)),
        query(edge("id", ""), sqlite=(edge(in_sqlite, "+"),)),
    )


def columns_of(filters: msgspec.Struct) -> dict[str, Value]:
    """Gives the fields of a filter that are set, which have the names of their columns."""
    return {name: value for name in filters.__struct_fields__ if (value := getattr(filters, name)) is not None}


def _index_of(listing: Listing, equal: Mapping[str, Value]) -> ListIndex | None:
    """Chooses the index that a page is read by; None for the order of all rows."""
    for index in listing.indexes:
        if equal.keys() >= set(index.columns) and _is_among(index.among, equal):
            return index
    return None


def _is_among(among: Among | None, equal: Mapping[str, Value]) -> bool:
    return among is None or str(equal.get(among.column)) in among.values


@lru_cache(maxsize=1_024)  # of operations alone there are 2 to the 9th combinations
def _page(listing: Listing, columns: tuple[str, ...], index: ListIndex | None, *, is_continued: bool) -> Query:
    clauses = [(column, "=", f"${number}") for number, column in enumerate(columns, 1)]
    if is_continued:
        clauses.append(("id", "<", f"${len(clauses) + 1}"))
    limit = f"${len(clauses) + 1}"
    among = [] if index is None or index.among is None else [index.among.text]

    def text(other: str) -> str:
        """Composes the statement; ``other`` is put before values, and before columns that no index may be chosen by."""
        chosen = ("id",) if index is None else (*index.columns, *(["id"] if index.is_sorted else []))
        conditions = [
            f"{column if column in chosen else other + column} {compared} {other}{value}"
            for column, compared, value in clauses
        ]
        where = " AND ".join([*conditions, *among])
        return (
            f"SELECT {listing.columns} FROM {listing.table} {f'WHERE {where}' if where else ''}"
            f" ORDER BY {'id' if 'id' in chosen else other + 'id'} DESC LIMIT {limit}"
        )

    return query(text(""), sqlite=(text("+"),))
