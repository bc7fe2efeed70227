"""Reads laravel-payhere's tables in a shop's PostgreSQL database, as they were at one moment; changes nothing there."""

from collections.abc import AsyncIterator

import asyncpg

from payrelay.imports.rules.items import ImportUnreadableError, SourceRow
from payrelay_tools.laravel.rows import PAYMENTS, is_of_laravel

_TABLES = """
    SELECT table_schema, table_name, array_agg(column_name::text ORDER BY ordinal_position)
    FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema')
    GROUP BY table_schema, table_name ORDER BY table_schema, table_name"""
_PAGE = 500
_CONNECT_TIMEOUT_S = 10.0


async def postgresql_rows(url: str) -> AsyncIterator[SourceRow]:
    """Gives the rows of all such tables, the payments first. Raises ImportUnreadableError."""
    try:
        connection = await asyncpg.connect(url, timeout=_CONNECT_TIMEOUT_S)
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise ImportUnreadableError(f"the database can't be opened: {error}") from None
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            for schema, name, columns in await _tables(connection):
                quoted = ", ".join(f"{_quoted(column)}::text" for column in columns)
                order = f" ORDER BY {_quoted('id')}" if "id" in columns else ""
                query = f"SELECT {quoted} FROM {_quoted(schema)}.{_quoted(name)}{order}"  # noqa: S608  names that it gave
                number = 0
                async for row in connection.cursor(query, prefetch=_PAGE):
                    number += 1
                    values = {column.lower(): value for column, value in zip(columns, row, strict=True)}
                    place = f"{name} {values.get('id') or f'row {number}'}"
                    yield SourceRow(table=name, place=place, values=values)
    except asyncpg.PostgresError as error:
        raise ImportUnreadableError(f"the database can't be read: {error}") from None
    finally:
        await connection.close()


async def _tables(connection: "asyncpg.Connection") -> list[tuple[str, str, list[str]]]:
    found = [tuple(row) for row in await connection.fetch(_TABLES)]
    known = [each for each in found if is_of_laravel(frozenset(column.lower() for column in each[2]))]
    return sorted(known, key=lambda each: (not frozenset(column.lower() for column in each[2]) >= PAYMENTS, each[:2]))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
