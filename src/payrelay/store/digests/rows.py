"""Keyed digests on rows that grant something or tell an outcome: who may write to the database can forge none.

Rules:

1. ``store.tables.digested`` lists the tables whose rows have a digest, and every other table with the reason; tests
   compare both with the schema. A digest covers the table, the key, and every column that isn't sealed, nor listed as
   uncovered.
2. A statement that writes a covered column writes the row digest with it, of values that were read with a right digest.
   So no later change makes a forged row right.
3. A row whose digest is missing or wrong counts as not existing, is an alert, once, and a line of each process's log.
   Of an operation nothing is concluded then (``store.payments.journal``), and what such a row names is open to nobody
   (``store.access.owners``).
4. A row that has ended grants nothing, and loses its digest. So nobody can bring it back.
5. A null is left out of the digest. So a nullable column that is added later changes no digest.

What a digest can't show is that a whole row was put back to what it was at an earlier time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from typing import Final, NamedTuple

from payrelay.clock import Clock
from payrelay.core.keyed_digest import DigestKey
from payrelay.store.digests.lookups import Lookups
from payrelay.store.engine.database import Database, Row, Statement, T, Unit, Value, all_rows
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.rows import StructT
from payrelay.store.engine.tables import StructTable, Table
from payrelay.store.statements import alerts

PURPOSE: Final = "stored row"
"""Of the keyed digest; never changed."""
PAGE: Final = 500
"""Rows that are read at once: few enough that a server which reads them delays no request."""
REPORTED_MAX: Final = 10_000
"""Wrong rows that a process remembers to have reported; reporting one again changes nothing."""
ALERT_VERSION: Final = 1
"""Of the one alert about a row."""


class CheckedRow(NamedTuple):
    """A row that the audit has checked: its table and id, and whether its digest is right."""

    name: str
    is_right: bool


class RowKey:
    """Makes and compares the digests of rows, and does nothing else: also in the midst of a unit of work.

    ``secret`` is the key of the audit chain.
    """

    def __init__(self, secret: bytes) -> None:
        self._key = DigestKey(secret, PURPOSE)

    def of(self, table: Table, values: Sequence[Value]) -> str:
        """Gives the digest of a row that has the columns of its table, in their order."""
        return self._key.digest(*_packed(table, values))

    def digested(self, table: Table, values: Sequence[Value]) -> tuple[Value, ...]:
        """Gives a row with its digest behind it, as ``Table.insert`` takes the two."""
        return (*values, self.of(table, values))

    def fits(self, table: Table, row: Row) -> bool:
        """Tells whether the digest behind the columns is right; a row that has ended needs none."""
        values = row[:-1]
        return _has_ended(table, values) or self._key.fits(str(row[-1]), *_packed(table, values))


class RowVerifier:
    """Picks the rows with right digests within a unit of work, where nobody can be told yet.

    Attributes:
        wrong: the names of the others, to be reported once the unit has ended (``RowDigests.report_all``).
    """

    def __init__(self, key: RowKey) -> None:
        self._key = key
        self.wrong: list[str] = []

    def right(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        """Gives the rows whose digest is right, without it; it is the last column, behind the columns."""
        found = []
        for row in rows:
            if self._key.fits(table, row):
                found.append(row[:-1])
            else:
                self.wrong.append(table.name_of(row))
        return found

    def values(self, table: StructTable[StructT], rows: Sequence[Row]) -> list[StructT]:
        """Converts the rows whose digest is right."""
        return list(map(table.value, self.right(table, rows)))


class RowDigests:
    """Makes and checks the digests of rows; reports wrong ones.

    ``secret`` is the key of the audit chain, and ``clock`` dates the reports. ``lookups`` makes hashes by which rows
    are found.
    """

    def __init__(self, database: Database, secret: bytes, clock: Clock) -> None:
        self._database = database
        self.key = RowKey(secret)
        self.lookups = Lookups(secret)
        self._clock = clock
        self._reported: set[str] = set()
        self._tell: Callable[[str], None] = _tell_nobody

    def tell_of_wrong(self, tell: Callable[[str], None]) -> None:
        """Has ``tell`` called once with the name of each wrong row that is met from now on, such as to log it."""
        self._tell = tell

    def of(self, table: Table, row: Sequence[Value]) -> str:
        """Gives the digest of a row that has the columns of its table, in their order."""
        return self.key.of(table, row)

    async def trusted(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        """Gives those rows whose digest is right, without it; it is the last column, behind the columns.

        The others are reported, once for each row. Raises StoreUnavailable.
        """
        return [row[:-1] for row in rows if await self.is_right(table, row)]

    async def values(self, table: StructTable[StructT], rows: Sequence[Row]) -> list[StructT]:
        """Converts those rows whose digest is right, and reports the others. Raises StoreUnavailable."""
        return list(map(table.value, await self.trusted(table, rows)))

    async def is_right(self, table: Table, row: Row) -> bool:
        """Tells whether the digest behind the columns is right; reports the row where it isn't.

        A row that has ended is right without a digest. Raises StoreUnavailable.
        """
        if self.key.fits(table, row):
            return True
        await self.report(table.name_of(row))
        return False

    async def report(self, name: str) -> None:
        """Tells of a wrong row, and stores the alert about it, each once; ``name`` is the table and the key.

        Somebody who writes the row may also write its alert as one that was given: so the log tells of it besides.
        Raises StoreUnavailable.
        """
        if name in self._reported:
            return
        self._tell(name)
        now_ms = self._clock.now_ms()
        added = Statement(alerts.ADD_ROW_ALERT, (name, ALERT_VERSION, now_ms, now_ms), is_whole=True)
        await self._database.write(all_rows(added))
        if len(self._reported) < REPORTED_MAX:
            self._reported.add(name)

    def verifier(self) -> RowVerifier:
        """Gives what picks the right rows within a unit of work."""
        return RowVerifier(self.key)

    async def verified(self, unit: Callable[[RowVerifier], Unit[T]], *, is_page: bool = False) -> T:
        """Carries out a reading unit that picks the right rows, as a list with ``is_page``, and reports the others.

        Raises StoreUnavailable.
        """
        verifier = self.verifier()
        found = await (self._database.read_page if is_page else self._database.read)(unit(verifier))
        await self.report_all(verifier.wrong)
        return found

    async def report_all(self, names: Sequence[str]) -> None:
        """Reports each of some wrong rows, as ``report`` does. Raises StoreUnavailable."""
        for name in names:
            await self.report(name)

    async def check(self, table: Table) -> AsyncIterator[CheckedRow]:
        """Reads all rows of a table, in the order of their keys, and tells of each whether its digest is right.

        Raises StoreUnavailable.
        """
        after: Row = ()
        while rows := await self._database.read(all_rows(_page(table, after))):
            for row in rows:
                yield CheckedRow(table.name_of(row), self.key.fits(table, row))
            after = rows[-1][: table.keys]
            await asyncio.sleep(0)  # the embedded database reads without waiting: a server's requests have their turn


def without(table: Table, values: Sequence[Value], *columns: str) -> list[Value]:
    """Gives the columns of a row with nulls for some of them, as a digest that doesn't cover them has them."""
    return [None if name in columns else value for name, value in zip(table.columns, values, strict=False)]


def _tell_nobody(_: str) -> None:
    """Takes the name of a wrong row where nobody is told of it."""


def _page(table: Table, after: Row) -> Statement:
    """Reads the rows behind a key; the first ones for an empty key."""
    return Statement(_page_of(table, is_first=not after), (PAGE, *after))


@cache
def _page_of(table: Table, *, is_first: bool) -> Query:
    """Reads rows in the order of their keys: from the very beginning, or behind $2 and following."""
    # The first page has no lower bound: whatever id somebody wrote into the table, even an empty one, is behind none.
    key = ", ".join(table.key)
    after = ", ".join(f"${number}" for number in range(2, table.keys + 2))
    where = "" if is_first else f" WHERE ({key}) > ({after})"
    return query(f"{table.select}{where} ORDER BY {key} LIMIT $1")


def _has_ended(table: Table, values: Sequence[Value]) -> bool:
    return table.ended_by is not None and values[table.columns.index(table.ended_by)] is not None


def _packed(table: Table, values: Sequence[Value]) -> list[Value]:
    """Gives the table, and the name and value of each covered column that isn't null."""
    # Once for each row that is read or written: a list of pairs that is flattened takes twice the time.
    packed: list[Value] = [table.name]
    for name, value in zip(table.covered, values, strict=False):
        if value is not None and name is not None:
            packed += name, value
    return packed
