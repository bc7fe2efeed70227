"""Statements in the store: lines, each once whatever files have it, the files, and what was said to be complete."""

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import date
from typing import Final

import msgspec

from payrelay.reconciliation.rules.days import Closure, booked_on
from payrelay.reconciliation.rules.entries import Movement, StatementLine, days_between
from payrelay.reconciliation.rules.payouts_compared import PayoutParts
from payrelay.reconciliation.store.statements import lines as statements
from payrelay.reconciliation.store.turns import last_closure, take_turn
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows, first_row
from payrelay.store.engine.rows import struct_of

BATCH: Final = 500
"""Lines of one unit of work: it holds the embedded database for some milliseconds."""
PAYOUTS_MAX: Final = 20_000
"""Payouts and lines of the bank's account in the three weeks around a day: a thousand a day."""
_CONTENT_DIGITS: Final = 24
_DAYS_MAX: Final = 1_000
_KEPT: Final = tuple(statements.LINE_COLUMNS.split(", "))
_ELSEWHERE: Final = frozenset({"place", "known_at_ms", "expected_fee_minor", "source"})
"""What differs between two files that say the same."""


class StatementFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was read.

    ``summary`` is JSON: what it came to. ``is_whole`` is 1 once every line was stored.
    """

    merchant: str
    digest: str
    name: str
    profile: str
    is_guess: int
    summary: str
    imported_by: str
    imported_at_ms: int
    is_whole: int


class CompleteDay(msgspec.Struct, frozen=True):
    """That a person said of a day that the files have everything of a movement; and on what that rests."""

    movement: Movement
    day: date
    said_by: str
    said_at_ms: int
    rests_on: str


class Lines:
    """Stores and reads the lines of statements."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, merchant: str, lines: Sequence[StatementLine]) -> int:
        """Stores lines, each once; gives how many are new. Raises StoreError.

        A line of a day that is closed by now is booked on the day behind the last closed one, and known since then.
        """

        def added() -> Unit[int]:
            yield from take_turn(merchant)
            last = yield from last_closure(merchant)
            rows = [_row(merchant, each, last) for each in lines]
            return len((yield Statement(statements.ADD_LINES, (msgspec.json.encode(rows).decode(),))))

        return await self._database.write(added())

    async def booked_on(self, merchant: str, day: date) -> AsyncIterator[list[StatementLine]]:
        """Gives, in pages, the lines that are booked on a day; equal identities in a row. Raises StoreError."""
        place = ("", "", "")
        while True:
            parameters = (merchant, day.isoformat(), *place, BATCH)
            rows = await self._page(Statement(statements.LINES_BOOKED_ON, parameters))
            if not rows:
                return
            place = (str(rows[-1][0]), str(rows[-1][1]), str(rows[-1][-1]))
            yield [_line(row[:-1]) for row in rows]

    async def of(self, merchant: str, payments: Iterable[str], orders: Iterable[str]) -> list[StatementLine]:
        """Gives all lines about some payments and some orders. Raises StoreError."""
        parameters = (merchant, _json(payments), _json(orders))
        return [_line(row) for row in await self._page(Statement(statements.LINES_OF, parameters))]

    async def payouts(self, merchant: str, first: date, last: date) -> list[StatementLine]:
        """Gives the payouts and the lines of the bank's account between two days; at most PAYOUTS_MAX and one.

        Raises StoreError.
        """
        days = _json(each.isoformat() for each in days_between(first, last))
        parameters = (merchant, days, PAYOUTS_MAX + 1)
        return [_line(row) for row in await self._page(Statement(statements.PAYOUTS_ON, parameters))]

    async def parts(self, merchant: str, payouts: Iterable[str]) -> Mapping[str, PayoutParts]:
        """Gives what the lines come to that name some payouts. Raises StoreError."""
        rows = await self._page(Statement(statements.PARTS_OF, (merchant, _json(payouts))))
        return {str(name): PayoutParts(int(str(net)), int(str(lines))) for name, net, lines in rows}

    async def file(self, merchant: str, digest: str) -> StatementFile | None:
        """Finds a file by the digest of its content. Raises StoreError."""
        row = await self._database.read(first_row(Statement(statements.GET_FILE, (merchant, digest))))
        return None if row is None else struct_of(row, StatementFile)

    async def put_file(self, file: StatementFile) -> None:
        """Stores a file, or that all of it was read. Raises StoreError."""
        values = msgspec.structs.astuple(file)
        await self._database.write(all_rows(Statement(statements.PUT_FILE, values, is_whole=True)))

    async def files(self, merchant: str) -> list[StatementFile]:
        """Lists the files of a merchant, the newest first. Raises StoreError."""
        found: list[StatementFile] = []
        last = ""
        while rows := await self._page(Statement(statements.LIST_FILES, (merchant, last, BATCH))):
            found += [struct_of(row, StatementFile) for row in rows]
            last = found[-1].digest
        return sorted(found, key=lambda each: (-each.imported_at_ms, each.digest))

    def complete_days(
        self, merchant: str, movements: Iterable[Movement], days: Iterable[date], said: tuple[str, int, str]
    ) -> Unit[None]:
        """Stores, within a unit of work, that files are complete for days; ``said`` is by whom, when, and on what."""
        yield from take_turn(merchant)
        wanted = list(days)
        for movement in movements:
            for day in wanted:
                yield Statement(statements.PUT_DAY, (merchant, movement, day.isoformat(), *said))

    async def complete(self, merchant: str, movement: Movement, first: date, last: date) -> list[CompleteDay]:
        """Gives the days of a movement that were said to be complete, between two days. Raises StoreError."""
        parameters = (merchant, movement, first.isoformat(), last.isoformat(), _DAYS_MAX)
        rows = await self._database.read(all_rows(Statement(statements.DAYS_BETWEEN, parameters)))
        return [struct_of(row, CompleteDay) for row in rows]

    async def put_search(self, merchant: str, order_id: str, searched_at_ms: int) -> None:
        """Stores that the gateway was asked for an order. Raises StoreError."""

        def put() -> Unit[None]:
            yield from take_turn(merchant)
            yield Statement(statements.PUT_SEARCH, (merchant, order_id, searched_at_ms))

        await self._database.write(put())

    async def searches(self, merchant: str, orders: Iterable[str]) -> dict[str, int]:
        """Gives when the gateway was last asked for some orders; those that it never was are left out."""
        rows = await self._page(Statement(statements.SEARCHES_OF, (merchant, _json(orders))))
        return {str(order_id): int(str(at_ms)) for order_id, at_ms in rows}

    async def _page(self, statement: Statement) -> list[Row]:
        return await self._database.read_page(all_rows(statement))


def _row(merchant: str, line: StatementLine, last: Closure | None) -> list[object]:
    if last is not None and line.day <= last.day:
        line = msgspec.structs.replace(line, known_at_ms=max(line.known_at_ms, last.closed_at_ms))
    values = {name: getattr(line, name) for name in _KEPT}
    said = [str(value) for name, value in values.items() if name not in _ELSEWHERE]
    content = hashlib.sha256("\x00".join(said).encode()).hexdigest()[:_CONTENT_DIGITS]
    booked = booked_on(line.day, last)
    return [merchant, content, booked.isoformat(), *values.values()]


def _line(row: Row) -> StatementLine:
    return msgspec.convert(dict(zip(_KEPT, row, strict=True)), StatementLine)


def _json(members: Iterable[str]) -> str:
    return msgspec.json.encode(sorted(set(members))).decode()
