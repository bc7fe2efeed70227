"""Lists everything that is sealed, and seals it anew under another key while the service runs.

What can be erased is sealed with data keys (``store.data_keys.keys``). The data keys are sealed anew, and the values
under them stay as they are.

Rules:

1. Each ``Table`` names its sealed columns, with the context that binds a value to its row. ``SEALED`` has them all, and
   those of tables without digests; a test compares it with the schema.
2. A value is replaced only by itself: the statement names the bytes that were read. A value that another process wrote
   meanwhile stays, and is read again the next time.
3. The plain values don't change, because digests and the audit chain are over them.
4. A rotation may be stopped and begun again at any time. A value under the right key is not written again.
5. The check of the encryption key comes last of all, once everything else is under the first key. Until then no process
   starts without the older key, so nobody removes it too early without noticing.
"""

# ruff: noqa: S608 - only tables and columns named in ``store.tables.seals`` are put into the texts; values are parameters

from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Final, NamedTuple

from payrelay.errors import Outdated, StoreUnusable
from payrelay.store.data_keys.keys import key_context
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import FORMAT, KEY_CHECK, Seal
from payrelay.store.gateways import readings
from payrelay.store.tables.digested import DIGESTED

PAGE: Final = 50
"""Values that are read and exchanged at once: few enough to delay a server on the database by milliseconds."""


class SealedColumn(NamedTuple):
    """A column whose values are sealed.

    Attributes:
        table, column: their names.
        keys: the text columns of its primary key.
        context: gives the seal context of a value, from the values of the keys.
        owner: for values that are sealed with data keys, gives the name of the data key's owner, from the values of the
            keys. A rotation finds nothing to do in such a column.
    """

    table: str
    column: str
    keys: tuple[str, ...]
    context: Callable[..., bytes]
    owner: Callable[..., str] | None = None

    @property
    def name(self) -> str:
        """Names it for operators."""
        return f"{self.table}.{self.column}"


def _meta_context(name: str) -> bytes:
    return f"meta/{name}".encode()


def _access_token_context(account: str) -> bytes:
    return f"access_token/{account}".encode()


_META: Final = SealedColumn("meta", "value", ("name",), _meta_context)
SEALED: Final = (
    SealedColumn("data_keys", "sealed_key", ("owner",), key_context),
    *(
        SealedColumn(table.name, column, table.key, *binding)
        for table in DIGESTED
        for column, binding in table.sealed.items()
    ),
    SealedColumn("access_tokens", "sealed_token", ("account",), _access_token_context),
    SealedColumn("readings", "sealed", ("merchant", "subject"), readings.context_of, readings.owner_of),
    _META,
)
"""Every sealed column of the schema, in the order in which they are sealed anew."""


class ReencryptedRows(NamedTuple):
    """The result for one page of values.

    Attributes:
        column: their column.
        done: the number of values that are under the first key now.
        passed_over: the number of values that another process changed meanwhile.
        unopened: the names of the rows whose values no key opens; they stay unchanged.
    """

    column: SealedColumn
    done: int
    passed_over: int
    unopened: tuple[str, ...]


class Seals:
    """Counts values that are sealed with the store's keys, and seals them anew under the first key."""

    def __init__(self, database: Database, seal: Seal, *, page: int = PAGE) -> None:
        self._database = database
        self._seal = seal
        self._page = page

    @property
    def key_ids(self) -> tuple[str, ...]:
        """Names the keys that this process has, in hex digits, the sealing one first."""
        return tuple(key_id.hex() for key_id in self._seal.key_ids)

    async def count(self) -> dict[SealedColumn, Counter[str]]:
        """Counts the values of each column by the ids of their keys, in hex digits. Raises StoreUnavailable."""
        counted = {}
        for column in SEALED:
            statement = Statement(count_by_key(column.table, column.column), (FORMAT,))
            rows = await self._database.read(all_rows(statement))
            counted[column] = Counter({blob_of(key_id).hex(): int(number or 0) for key_id, number in rows})
        return counted

    async def rotate(self) -> AsyncIterator[ReencryptedRows]:
        """Seals everything under the first key, a page at a time; gives each page's result once it is on disk.

        Each page is a unit of work of its own. Raises StoreUnavailable, after which the rotation may be begun again.
        """
        is_left, checks = False, list[Row]()
        for column in SEALED:
            after: tuple[Value, ...] = ("",) * len(column.keys)
            while rows := await self._database.read(all_rows(self._page_after(column, after))):
                after = tuple(rows[-1][1:])
                checks += [row for row in rows if _is_check(column, row)]
                if others := [row for row in rows if not _is_check(column, row)]:
                    exchanged = await self._exchange(column, others)
                    is_left = is_left or exchanged.passed_over > 0
                    yield exchanged
        if checks and not is_left:
            yield await self._exchange(_META, checks)

    def _page_after(self, column: SealedColumn, after: tuple[Value, ...]) -> Statement:
        query = page_of_others(column.table, column.column, column.keys)
        return Statement(query, (FORMAT, self._seal.key_id, *after, self._page))

    async def _exchange(self, column: SealedColumn, rows: list[Row]) -> ReencryptedRows:
        exchanges, unopened = [], []
        for sealed, *keys in rows:
            context = column.context(*keys)
            try:
                plain = self._seal.open(blob_of(sealed), context)
            except StoreUnusable:
                unopened.append("/".join(map(str, keys)))
                continue
            query = exchange(column.table, column.column, column.keys)
            exchanges.append(Statement(query, (self._seal.seal(plain, context), sealed, *keys)))
        done = await self._write(exchanges)
        return ReencryptedRows(column, done, len(exchanges) - done, tuple(unopened))

    async def _write(self, exchanges: list[Statement]) -> int:
        if not exchanges:
            return 0
        try:
            return await self._database.write(_exchanged(exchanges))
        except Outdated:
            if len(exchanges) == 1:
                return 0
        # Another process writes one of the rows at this moment, which undoes all: the rest is written one by one.
        return sum([await self._write([statement]) for statement in exchanges])


def _is_check(column: SealedColumn, row: Row) -> bool:
    return column is _META and row[1] == KEY_CHECK


def _exchanged(exchanges: list[Statement]) -> Unit[int]:
    done = 0
    for statement in exchanges:
        done += bool((yield statement))
    return done


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
