"""Pages: the rows of a table that are equal in some columns, newest first, from an id downwards."""

# ruff: noqa: S608 - only tables and columns named here are put into the texts; values are always parameters

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from payrelay.store.engine.database import Statement, Value
from payrelay.store.engine.queries import Query, query

PAGE_MAX: Final = 1_000
"""Rows of one page, whatever the caller asks for."""


class Listing(NamedTuple):
    """A table that is read page by page, and the columns that are read. Its ids sort by time."""

    table: str
    columns: str


def page_of(listing: Listing, equal: Mapping[str, Value], *, before: str | None, limit: int) -> Statement:
    """Reads one page: at most ``limit`` rows that are equal in these columns, with ids below ``before``.

    None is for the first page. The names of the columns come from our own code, never from a request.
    """
    last = () if before is None else (before,)
    composed = _page(listing, tuple(equal), is_continued=before is not None)
    return Statement(composed, (*equal.values(), *last, min(limit, PAGE_MAX)))


def columns_of(filters: msgspec.Struct) -> dict[str, Value]:
    """Gives the fields of a filter that are set, which have the names of their columns."""
    return {name: value for name in filters.__struct_fields__ if (value := getattr(filters, name)) is not None}


@lru_cache(maxsize=1_024)  # of operations alone there are 2 to the 9th combinations
def _page(listing: Listing, columns: tuple[str, ...], *, is_continued: bool) -> Query:
    clauses = [f"{column} = ${number}" for number, column in enumerate(columns, 1)]
    if is_continued:
        clauses.append(f"id < ${len(clauses) + 1}")
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    return query(
        f"SELECT {listing.columns} FROM {listing.table} {where} ORDER BY id DESC LIMIT ${len(clauses) + 1}",
    )
