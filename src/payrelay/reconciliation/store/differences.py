"""Differences and days in the store: what was found, who closed what, and that what is closed stays as it was."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import date
from typing import Final, TypeAlias

import msgspec

from payrelay.core.operators.operator import NewAct
from payrelay.errors import Outdated
from payrelay.reconciliation.rules.days import Closure, SeenDay, differences_changed
from payrelay.reconciliation.rules.verdicts import BooksFinding, Concern, OpenDifferences
from payrelay.reconciliation.store.statements import differences as statements
from payrelay.reconciliation.store.turns import last_closure, newest_turn, take_turn
from payrelay.store.engine.database import Database, Statement, Unit, all_rows, first_row
from payrelay.store.engine.rows import struct_of
from payrelay.store.operators.acts import OperatorActs

PAGE: Final = 500
_DIGEST_DIGITS: Final = 24


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A difference as it is stored. ``finding`` is JSON: what the last run that met it found."""

    merchant: str
    id: str
    account: str
    movement: str
    identity: str
    day: date
    booked_on: date
    currency: str
    content: str
    finding: str
    concern: str | None
    first_found_at_ms: int
    last_found_at_ms: int
    is_open: int
    closed_at_ms: int | None
    closed_by: str | None
    closed_reason: str | None
    alerted_at_ms: int | None

    @property
    def digest(self) -> str:
        """Changes with everything that was found, and with the day in whose list it is."""
        return hashlib.sha256(f"{self.booked_on}/{self.finding}".encode()).hexdigest()[:_DIGEST_DIGITS]


class ReconciledDay(msgspec.Struct, frozen=True, kw_only=True):
    """What a day came to. ``report`` is JSON; ``act`` is the line in the history of who closed it."""

    merchant: str
    day: date
    account: str
    report: str
    ran_at_ms: int
    closed_at_ms: int | None
    closed_by: str | None
    closed_reason: str | None
    act: int | None


_Differences: TypeAlias = list[Difference]


class Differences:
    """Stores differences and days; ``acts`` is the history of what people did."""

    def __init__(self, database: Database, acts: OperatorActs) -> None:
        self._database = database
        self.acts = acts

    async def put(
        self, merchant: str, account: str, found: Sequence[BooksFinding], booked_on: date, now_ms: int
    ) -> None:
        """Stores what was found, each once; one that a person closed stays closed, unless it says another thing.

        Raises StoreError.
        """
        await self._database.write(_put(merchant, account, found, booked_on, now_ms))

    async def get(self, merchant: str, difference_id: str) -> Difference | None:
        """Reads one difference. Raises StoreError."""
        row = await self._database.read(first_row(Statement(statements.GET_DIFFERENCE, (merchant, difference_id))))
        return None if row is None else struct_of(row, Difference)

    async def open(self, merchant: str, *, limit: int, after: tuple[str, str] = ("", "")) -> _Differences:
        """Reads open differences, the oldest first, behind a day and an id. Raises StoreError."""
        return await self._list(Statement(statements.OPEN_DIFFERENCES, (merchant, *after, limit)))

    async def of_day(self, merchant: str, day: date, *, after: str = "", limit: int = PAGE) -> _Differences:
        """Reads the differences that are booked on a day, open or not, behind an id. Raises StoreError."""
        return await self._list(Statement(statements.DIFFERENCES_OF_DAY, (merchant, day.isoformat(), after, limit)))

    async def close(self, difference: Difference, act: NewAct) -> None:
        """Closes a difference, with its line in the history.

        Raises Outdated where it says something else by now, or is closed; StoreError.
        """

        def closed() -> Unit[None]:
            parameters = (
                difference.merchant,
                difference.id,
                difference.finding,
                act.at_ms,
                act.name,
                act.reason,
                difference.booked_on.isoformat(),
            )
            if not (yield Statement(statements.CLOSE_DIFFERENCE, parameters)):
                raise Outdated("the difference was closed, or says something else by now")
            yield from self.acts.appended(act)

        await self.acts.written(closed)

    async def put_day(self, day: ReconciledDay) -> bool:
        """Stores what a day came to; False, and nothing changes, where the day is closed. Raises StoreError."""
        parameters = (day.merchant, day.day.isoformat(), day.account, day.report, day.ran_at_ms)
        return bool(await self._database.write(all_rows(Statement(statements.PUT_RAN_DAY, parameters, is_whole=True))))

    async def day(self, merchant: str, day: date) -> ReconciledDay | None:
        """Reads what a day came to. Raises StoreError."""
        row = await self._database.read(first_row(Statement(statements.GET_RAN_DAY, (merchant, day.isoformat()))))
        return None if row is None else struct_of(row, ReconciledDay)

    async def days(self, merchant: str, first: date, last: date) -> list[ReconciledDay]:
        """Reads the days that were compared, from the first to the last. Raises StoreError."""
        parameters = (merchant, first.isoformat(), last.isoformat())
        rows = await self._database.read_page(all_rows(Statement(statements.RAN_DAYS, parameters)))
        return [struct_of(row, ReconciledDay) for row in rows]

    async def open_by_day(self, merchant: str, first: date, last: date) -> dict[date, int]:
        """Counts the open differences of each day that has any, from the first to the last. Raises StoreError."""
        parameters = (merchant, first.isoformat(), last.isoformat())
        rows = await self._database.read_page(all_rows(Statement(statements.OPEN_BY_DAY, parameters)))
        return {date.fromisoformat(str(day)): int(str(number)) for day, number in rows}

    async def turn(self, merchant: str) -> int:
        """Gives a number that grows with each reading of statements and each closing. Raises StoreError."""
        return await newest_turn(self._database, merchant)

    async def count_open(self) -> OpenDifferences:
        """Counts the open differences of all merchants. Raises StoreError."""
        rows = await self._database.read_page(all_rows(Statement(statements.COUNT_OPEN, ())))
        return OpenDifferences(
            by_concern={None if name is None else Concern(str(name)): int(number or 0) for name, number, _ in rows},
            oldest_ms=min((int(since or 0) for _, _, since in rows), default=None),
        )

    async def close_day(
        self, day: ReconciledDay, act: NewAct, *, shown: SeenDay, before: Closure | None, turn: int
    ) -> bool:
        """Closes a day with its report, with its line in the history; ``before`` was the newest closed day.

        False, and nothing is closed, where a statement was read or a day was closed behind ``turn``. Raises Refusal
        (conflict) where another number of its differences is open than was shown; Outdated where it was compared anew
        or closed; StoreError.
        """

        def closed() -> Unit[bool]:
            is_alone = (yield from take_turn(day.merchant)) == turn + 1
            if not is_alone or (yield from last_closure(day.merchant)) != before:
                return False
            line = yield from self.acts.appended(act)
            name = day.day.isoformat()
            # Read behind the line: whoever closes a difference writes a line, too, and so has committed or comes later.
            opened = yield Statement(statements.OPEN_BY_DAY, (day.merchant, name, name))
            if sum(int(str(number)) for _, number in opened) != shown.open_differences:
                raise differences_changed(day.day)
            parameters = (
                day.merchant,
                name,
                day.report,
                day.ran_at_ms,
                act.at_ms,
                act.name,
                act.reason,
                line.number,
                shown.ran_at_ms,
            )
            if not (yield Statement(statements.CLOSE_DAY, parameters)):
                raise Outdated("the day is closed, or was compared anew")
            return True

        return await self.acts.written(closed)

    async def last_closed(self, merchant: str) -> Closure | None:
        """Gives the newest closed day; None where none is. Raises StoreError."""
        return await self._database.read(last_closure(merchant))

    async def write(self, unit: Callable[[], Unit[None]]) -> None:
        """Carries out a unit of work with a line of the history in it. Raises StoreError."""
        await self.acts.written(unit)

    async def _list(self, statement: Statement) -> _Differences:
        return [struct_of(row, Difference) for row in await self._database.read_page(all_rows(statement))]


def _put(merchant: str, account: str, found: Sequence[BooksFinding], booked_on: date, now_ms: int) -> Unit[None]:
    for each in found:
        yield Statement(
            statements.PUT_DIFFERENCE,
            (
                merchant,
                each.id,
                account,
                each.movement,
                each.identity,
                each.day.isoformat(),
                booked_on.isoformat(),
                each.currency,
                each.content,
                msgspec.json.encode(each).decode(),
                each.concern,
                now_ms,
            ),
        )
