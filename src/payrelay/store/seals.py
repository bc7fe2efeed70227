"""Everything that is sealed, with which key, and how it comes under another one while the service runs.

Rules:

1. Every sealed column of the schema stands in ``SEALED``, with the words that bind it to its row; a test compares the
   two. Whoever adds such a column adds it there.
2. A value is exchanged only for itself: the statement names the bytes that were read. What somebody else wrote
   meanwhile stays, and is looked at the next time.
3. What was sealed stays what it was, to the last byte: digests and the audit chain are over the plain values.
4. It may be broken off and begun again at any time; what is under the right key already is not touched.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple

from payrelay.core.notifications.notification import NotificationKind
from payrelay.errors import Outdated, StoreUnusable
from payrelay.store import checkouts, customers, inbox
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import Seal
from payrelay.store.events import endpoints
from payrelay.store.gateways import readings
from payrelay.store.payments.entries import answer_context, call_context
from payrelay.store.statements import seals as statements

PAGE: Final = 50
"""Values that are read and exchanged at once: little enough that a server beside it is held up for milliseconds."""


class SealedColumn(NamedTuple):
    """A column whose values are sealed.

    Attributes:
        table, column: where.
        keys: the texts that name a row; they are its primary key.
        context: gives what binds a value to its row, from the values of the keys.
    """

    table: str
    column: str
    keys: tuple[str, ...]
    context: Callable[..., bytes]

    @property
    def name(self) -> str:
        """Names it for people."""
        return f"{self.table}.{self.column}"


def _meta_context(name: str) -> bytes:
    return f"meta/{name}".encode()


def _access_token_context(account: str) -> bytes:
    return f"access_token/{account}".encode()


def _accepted_token_context(merchant: str, order_id: str, kind: str) -> bytes:
    return inbox.token_context(merchant, order_id, NotificationKind(kind))


SEALED: Final[tuple[SealedColumn, ...]] = (
    SealedColumn("meta", "value", ("name",), _meta_context),
    SealedColumn("operations", "sealed_call", ("id",), call_context),
    SealedColumn("operations", "sealed_answer", ("id",), answer_context),
    SealedColumn("customers", "sealed_token", ("id",), customers.token_context),
    SealedColumn("customers", "sealed_holder", ("id",), customers.holder_context),
    SealedColumn("customers", "sealed_names", ("id",), customers.names_context),
    SealedColumn("checkouts", "sealed", ("id",), checkouts.context_of),
    SealedColumn("notifications", "sealed_body", ("id",), inbox.body_context),
    SealedColumn("accepted_tokens", "sealed_token", ("merchant", "order_id", "kind"), _accepted_token_context),
    SealedColumn("endpoints", "sealed_secret", ("id",), endpoints.secret_context),
    SealedColumn("endpoints", "sealed_older", ("id",), endpoints.secret_context),
    SealedColumn("access_tokens", "sealed_token", ("account",), _access_token_context),
    SealedColumn("readings", "sealed", ("merchant", "subject"), readings.context_of),
)
"""Every sealed column of the schema; what the store can't do without comes first."""


class ReencryptedRows(NamedTuple):
    """What became of one page of values.

    Attributes:
        column: where they lie.
        done: how many are under the first key now.
        passed_over: how many somebody else changed meanwhile.
        unopened: the names of the rows whose values could not be opened with any key; they stay as they are.
    """

    column: SealedColumn
    done: int
    passed_over: int
    unopened: tuple[str, ...]


class Seals:
    """Looks at what is sealed, and brings it under the first key."""

    def __init__(self, database: Database, seal: Seal, *, page: int = PAGE) -> None:
        self._database = database
        self._seal = seal
        self._page = page

    @property
    def key_ids(self) -> tuple[str, ...]:
        """Names the keys that are known here, in hex digits, the one that seals first."""
        return tuple(key_id.hex() for key_id in self._seal.key_ids)

    async def count(self) -> dict[SealedColumn, Counter[str]]:
        """Counts the values of each column by the ids of their keys, in hex digits. Raises StoreUnavailable."""
        counted = {}
        for column in SEALED:
            statement = Statement(statements.count_by_key(column.table, column.column), ())
            rows = await self._database.read(all_rows(statement))
            counted[column] = Counter({blob_of(key_id).hex(): int(number or 0) for key_id, number in rows})
        return counted

    async def rotate(self) -> AsyncIterator[ReencryptedRows]:
        """Brings everything under the first key, a page at a time; tells of each page once it is on disk.

        Each page is a unit of work of its own. Raises StoreUnavailable; it may be begun again then.
        """
        for column in SEALED:
            behind: tuple[Value, ...] = ("",) * len(column.keys)
            while rows := await self._database.read(all_rows(self._page_behind(column, behind))):
                yield await self._exchange(column, rows)
                behind = tuple(rows[-1][1:])

    def _page_behind(self, column: SealedColumn, behind: tuple[Value, ...]) -> Statement:
        query = statements.page_of_others(column.table, column.column, column.keys)
        return Statement(query, (self._seal.key_id, *behind, self._page))

    async def _exchange(self, column: SealedColumn, rows: list[Row]) -> ReencryptedRows:
        wanted, unopened = [], []
        for sealed, *keys in rows:
            context = column.context(*keys)
            try:
                plain = self._seal.open(blob_of(sealed), context)
            except StoreUnusable:
                unopened.append("/".join(map(str, keys)))
                continue
            query = statements.exchange(column.table, column.column, column.keys)
            wanted.append(Statement(query, (self._seal.seal(plain, context), sealed, *keys)))
        done = await self._write(wanted)
        return ReencryptedRows(column, done, len(wanted) - done, tuple(unopened))

    async def _write(self, wanted: list[Statement]) -> int:
        if not wanted:
            return 0
        try:
            return await self._database.write(_exchanged(wanted))
        except Outdated:
            if len(wanted) == 1:
                return 0
        # Somebody else writes one of them at this moment, which undoes all: the others go one by one.
        return sum([await self._write([statement]) for statement in wanted])


def _exchanged(wanted: list[Statement]) -> Unit[int]:
    done = 0
    for statement in wanted:
        done += bool((yield statement))
    return done
