"""Counts for the overview of the console: from indexes, of a bounded number of rows, beside what charges need.

Digests of rows are not checked here: a row that was changed by something else is counted as it is now. Whoever opens
it is told.
"""

from collections.abc import Iterator

import msgspec

from payrelay.console.rules.trends import (
    ENDPOINTS_MAX,
    LOOKED_MAX,
    PACES,
    SLOWEST,
    WAITING_MAX,
    TrendTally,
    TrendWindow,
)
from payrelay.console.store.statements import trends as statements
from payrelay.core.payments.operation import OpenCount, State
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.payments.counts import Counts


class TrendSum(msgspec.Struct, frozen=True):
    """What succeeded of one kind in one currency: how many, how many of these with an amount, and the sum of those."""

    kind: str
    currency: str | None
    count: int
    with_amount: int
    amount_minor: int | None


class OperationTrends(msgspec.Struct, frozen=True, kw_only=True):
    """How operations went: by part and state; what succeeded; how long it took, by step; all as of one moment."""

    tallies: list[TrendTally]
    sums: list[TrendSum]
    paces: list[tuple[str, int]]


class EndpointTrends(msgspec.Struct, frozen=True):
    """The newest deliveries to each endpoint by part and state, and how many wait, by the endpoint's id."""

    tallies: dict[str, list[TrendTally]]
    waiting: dict[str, int]


class Trends:
    """Counts for the overview. Every method raises StoreUnavailable, also where it takes longer than a list may."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counts = Counts(database)

    async def open_operations(self) -> dict[State, OpenCount]:
        """Counts what is open."""
        return await self._counts.open_operations()

    async def operations(self, window: TrendWindow) -> OperationTrends:
        """Counts the newest operations of a time."""
        return await self._database.read_page(_operations(window))

    async def checkouts(self, window: TrendWindow) -> list[TrendTally]:
        """Counts the newest pages for customers of a time."""
        statement = Statement(statements.CHECKOUTS_BY_TIME, _parameters("chk", window))
        return list(_tallies(await self._database.read_page(all_rows(statement))))

    async def notifications(self, window: TrendWindow) -> list[TrendTally]:
        """Counts the newest notifications of a time."""
        statement = Statement(statements.NOTIFICATIONS_BY_TIME, _parameters("ntf", window))
        return list(_tallies(await self._database.read_page(all_rows(statement))))

    async def deliveries(self, endpoints: list[str], window: TrendWindow) -> EndpointTrends:
        """Counts the newest deliveries to some endpoints: an equal share of ``LOOKED_MAX`` for each."""
        return await self._database.read_page(_deliveries(endpoints[:ENDPOINTS_MAX], window))


def share_of(endpoints: int) -> int:
    """Gives how many deliveries of one endpoint are counted where so many are."""
    return LOOKED_MAX // max(1, min(endpoints, ENDPOINTS_MAX))


def _first_id(prefix: str, window: TrendWindow) -> str:
    return f"{prefix}_{max(window.since_ms, 0):012x}"


def _parameters(prefix: str, window: TrendWindow) -> tuple[str, int, int, int]:
    return (_first_id(prefix, window), LOOKED_MAX, window.since_ms, window.part_ms)


def _operations(window: TrendWindow) -> Unit[OperationTrends]:
    first_id = _first_id("op", window)
    by_time = yield Statement(statements.OPERATIONS_BY_TIME, _parameters("op", window))
    sums = yield Statement(statements.SUMS, (first_id, LOOKED_MAX))
    paces = yield Statement(statements.PACES_OF, (first_id, LOOKED_MAX))
    known = dict(msgspec.convert([tuple(row) for row in paces], list[tuple[int, int]]))
    names = [name for _, name in PACES]
    return OperationTrends(
        tallies=list(_tallies(by_time)),
        sums=[msgspec.convert(row, TrendSum) for row in map(_by_name, sums)],
        paces=[(name, known.get(number, 0)) for number, name in enumerate([*names, SLOWEST])],
    )


def _by_name(row: Row) -> dict[str, object]:
    return dict(zip(TrendSum.__struct_fields__, row, strict=True))


def _deliveries(endpoints: list[str], window: TrendWindow) -> Unit[EndpointTrends]:
    tallies: dict[str, list[TrendTally]] = {}
    waiting: dict[str, int] = {}
    for endpoint in endpoints:
        parameters = (endpoint, share_of(len(endpoints)), window.since_ms, window.part_ms)
        tallies[endpoint] = list(_tallies((yield Statement(statements.DELIVERIES_BY_TIME, parameters))))
        [[count]] = yield Statement(statements.WAITING_OF, (endpoint, WAITING_MAX + 1))
        waiting[endpoint] = msgspec.convert(count, int)
    return EndpointTrends(tallies, waiting)


def _tallies(rows: list[Row]) -> Iterator[TrendTally]:
    for row in rows:
        yield msgspec.convert(tuple(row), TrendTally)
