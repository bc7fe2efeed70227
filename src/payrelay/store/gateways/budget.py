"""The budget of calls to a gateway account that all processes share: a row for each permit.

``gateways.pacing.shared_budget`` has the interface.

One statement takes a permit: it sets the time at which the permit is free again, one window after the latest possible
end of its call. So all other processes know at once of each permit that was taken. A process that dies leaves nothing
behind that doesn't end by itself. The rows also name the last consumer of each permit, by which all processes keep to
the same fair shares (``core.gateways.fair_shares``): one at a time decides.
"""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

import secrets
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Final, NamedTuple

from payrelay.clock import Clock
from payrelay.core.gateways.fair_shares import Consumer, Usage, choose
from payrelay.core.gateways.permit_grants import PermitGrant, PermitsGranted
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.gateways.steady_time import steady_ms

PERMIT_MS_MAX: Final = 300_000
"""Longer than any call lasts (the longest time-out is 120 s), and than any pause of a gateway."""
ROUNDING_MS: Final = 2
"""Added to every window: times are kept in whole milliseconds, and two processes may round them differently."""
POLL_AGAIN_S: Final = 0.005
"""The wait where a permit is free, but another process is changing its row."""


def _new_holder() -> str:
    return secrets.token_hex(8)


class StoredBudget:
    """The permits of one merchant account, in the store.

    Args:
        database: stores them.
        clock: gives the embedded database the time; PostgreSQL has its own.
        merchant: the merchant account.
        calls, window_s: how many calls in a window.
        new_holder: makes a random name for each taking of permits.
    """

    is_shared = True

    def __init__(
        self,
        database: Database,
        clock: Clock,
        merchant: str,
        *,
        calls: int,
        window_s: float,
        new_holder: Callable[[], str] = _new_holder,
    ) -> None:
        self._database = database
        self._now_ms = steady_ms(clock)
        self._merchant = merchant
        self._calls = calls
        self._window_ms = _ms(window_s) + ROUNDING_MS
        self._new_holder = new_holder
        self._is_prepared = False

    async def take(self, wanted: Sequence[Consumer], permit_s: float) -> PermitsGranted:
        """Takes free permits; see ``gateways.pacing.shared_budget.Budget``. Raises StoreUnavailable."""
        if not self._is_prepared:
            await self._database.write(self._prepare(self._now_ms()))
            self._is_prepared = True
        unit = self._take(wanted, _ms(permit_s), self._new_holder(), self._now_ms())
        permits = await self._database.write(unit)
        if permits is None:  # the rows are gone: the database was restored, or edited by hand
            self._is_prepared = False
            return PermitsGranted((), POLL_AGAIN_S)
        return permits

    def done(self, grant: PermitGrant) -> Coroutine[object, object, None]:
        """Frees the permit one window from now, whenever the result is awaited."""
        return self._database.write(self._end(grant, self._window_ms, self._now_ms()))

    def release_unused(self, grant: PermitGrant) -> Coroutine[object, object, None]:
        """Frees the permit now."""
        return self._database.write(self._end(grant, 0, self._now_ms()))

    def block(self, for_s: float) -> Coroutine[object, object, None]:
        """Keeps all permits of this budget from all processes for a while."""
        return self._database.write(self._block(_ms(for_s), self._now_ms()))

    def _prepare(self, now_ms: int) -> Unit[None]:
        yield Statement(ADD_PERMITS, (self._merchant, self._calls))
        yield Statement(CUT_PERMITS, (self._merchant, PERMIT_MS_MAX + self._window_ms, now_ms))

    def _take(
        self, wanted: Sequence[Consumer], permit_ms: int, holder: str, now_ms: int
    ) -> Unit[PermitsGranted | None]:
        yield Statement(LOCK_BUDGET, (self._merchant,))
        rows = yield Statement(READ_USAGES, (self._merchant, self._calls, self._window_ms, now_ms))
        state = _state_of(rows)
        if state.permits != self._calls:
            return None
        if state.blocked_ms > 0:
            return PermitsGranted((), state.blocked_ms / 1000)
        given, refused = choose(wanted, state.usages, calls=self._calls)
        grants: list[PermitGrant] = []
        for consumer, count in Counter(given).items():
            parameters = (self._merchant, self._calls, count, holder, permit_ms + self._window_ms, now_ms)
            taken = yield Statement(TAKE_PERMITS, (*parameters, consumer.text))
            grants += (PermitGrant(slot, holder, consumer) for (slot,) in taken if isinstance(slot, int))
        if len(grants) == len(wanted):
            return PermitsGranted(tuple(grants))
        # An end that is being stored may have a row at this moment.
        lost = (Counter(given) - Counter(each.consumer for each in grants)).keys()
        in_use = sum(each.in_use for each in state.usages) + len(given)
        next_in_ms = min(state.next_in_ms, permit_ms + self._window_ms if given else sys.maxsize)
        return PermitsGranted(
            tuple(grants),
            POLL_AGAIN_S if lost else max(POLL_AGAIN_S, next_in_ms / 1000),
            refused | lost,
            is_any_left=in_use < self._calls,
        )

    def _end(self, grant: PermitGrant, free_in_ms: int, now_ms: int) -> Unit[None]:
        parameters = (self._merchant, grant.slot, grant.holder, free_in_ms, now_ms)
        yield Statement(END_PERMIT, parameters, is_whole=True)

    def _block(self, for_ms: int, now_ms: int) -> Unit[None]:
        yield Statement(BLOCK_PERMITS, (self._merchant, for_ms, now_ms), is_whole=True)


class _State(NamedTuple):
    """The rows of a budget: how many there are, who uses them, when that changes, and how long all are blocked."""

    permits: int
    usages: tuple[Usage, ...]
    next_in_ms: int
    blocked_ms: int


def _state_of(rows: Iterable[Row]) -> _State:
    permits, blocked_ms, usages, changes_ms = 0, 0, list[Usage](), list[int]()
    for consumer, *numbers in rows:
        count, in_use, recent, change_ms, blocked = (each if isinstance(each, int) else None for each in numbers)
        permits += count or 0
        blocked_ms = blocked or 0
        usages.append(Usage(Consumer.parse(consumer), in_use or 0, recent or 0))
        changes_ms += [] if change_ms is None else [change_ms]
    return _State(permits, tuple(usages), min(changes_ms, default=sys.maxsize), blocked_ms)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


SERVER_NOW_MS: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
"""One clock for all processes that share a budget or a token. SQLite has no clock that never jumps: there the last
parameter is the time. PostgreSQL gets it too, and doesn't use it."""

ADD_PERMITS: Final = query(
    """
    INSERT INTO places (merchant, slot, free_at_ms)
    SELECT $1, slot, 0 FROM generate_series(0, $2::bigint - 1) AS slot
    ON CONFLICT DO NOTHING""",
    sqlite=(
        """
        WITH RECURSIVE slots (slot) AS (SELECT 0 UNION ALL SELECT slot + 1 FROM slots WHERE slot + 1 < $2)
        INSERT INTO places (merchant, slot, free_at_ms) SELECT $1, slot, 0 FROM slots WHERE true
        ON CONFLICT DO NOTHING""",
    ),
)
"""Adds the missing permits of a merchant's budget; they are free at once."""

CUT_PERMITS: Final = query(
    f"""
    UPDATE places SET free_at_ms = {SERVER_NOW_MS} + $2::bigint
    WHERE merchant = $1 AND free_at_ms > {SERVER_NOW_MS} + $2::bigint AND $3::bigint IS NOT NULL""",
    sqlite=("UPDATE places SET free_at_ms = $3 + $2 WHERE merchant = $1 AND free_at_ms > $3 + $2",),
)
"""Shortens the wait for permits that would be free later than any permit can be, because the clock was set back."""

LOCK_BUDGET: Final = query("SELECT pg_advisory_xact_lock(hashtextextended('budget/' || $1, 0))", sqlite=("SELECT $1",))
"""Lets one process at a time give permits of a merchant's, so that each sees what the others gave before."""

READ_USAGES: Final = query(
    f"""
    WITH permits AS (
        SELECT consumer, free_at_ms - {SERVER_NOW_MS} AS free_in_ms FROM places
        WHERE merchant = $1 AND slot >= 0 AND slot < $2::bigint AND $4::bigint IS NOT NULL
    )
    SELECT consumer, count(*), sum((free_in_ms > 0)::int), sum((free_in_ms BETWEEN 1 - $3::bigint AND 0)::int),
        min(CASE WHEN free_in_ms > 0 THEN free_in_ms WHEN free_in_ms > -$3::bigint THEN free_in_ms + $3::bigint END),
        (SELECT free_at_ms - {SERVER_NOW_MS} FROM places WHERE merchant = $1 AND slot = -1)
    FROM permits GROUP BY consumer""",
    sqlite=(
        """
        WITH permits AS (
            SELECT consumer, free_at_ms - $4 AS free_in_ms FROM places
            WHERE merchant = $1 AND slot >= 0 AND slot < $2
        )
        SELECT consumer, count(*), sum(free_in_ms > 0), sum(free_in_ms BETWEEN 1 - $3 AND 0),
            min(CASE WHEN free_in_ms > 0 THEN free_in_ms WHEN free_in_ms > -$3 THEN free_in_ms + $3 END),
            (SELECT free_at_ms - $4 FROM places WHERE merchant = $1 AND slot = -1)
        FROM permits GROUP BY consumer""",
    ),
)
"""Counts the permits by their last consumers.

Gives for each how many there are, how many are not free, and how many were free for less than a window. Then in how
many milliseconds one of these numbers changes, and for how many the whole budget is blocked.
"""

TAKE_PERMITS: Final = query(
    f"""
    WITH free AS (
        SELECT slot FROM places
        WHERE merchant = $1 AND slot >= 0 AND slot < $2::bigint AND free_at_ms <= {SERVER_NOW_MS}
          AND $6::bigint IS NOT NULL
          AND NOT EXISTS (
              SELECT 1 FROM places AS block
              WHERE block.merchant = $1 AND block.slot = -1 AND block.free_at_ms > {SERVER_NOW_MS})
        ORDER BY CASE WHEN consumer = $7 THEN 0 ELSE 1 END, free_at_ms
        LIMIT $3::bigint FOR UPDATE SKIP LOCKED
    )
    UPDATE places SET free_at_ms = {SERVER_NOW_MS} + $5::bigint, holding = $4, consumer = $7
    FROM free WHERE places.merchant = $1 AND places.slot = free.slot
    RETURNING places.slot""",
    sqlite=(
        """
        UPDATE places SET free_at_ms = $6 + $5, holding = $4, consumer = $7
        WHERE merchant = $1 AND slot IN (
            SELECT slot FROM places
            WHERE merchant = $1 AND slot >= 0 AND slot < $2 AND free_at_ms <= $6
              AND NOT EXISTS (SELECT 1 FROM places WHERE merchant = $1 AND slot = -1 AND free_at_ms > $6)
            ORDER BY CASE WHEN consumer = $7 THEN 0 ELSE 1 END, free_at_ms
            LIMIT $3)
        RETURNING slot""",
    ),
)
"""Gives a consumer free permits of the first so many slots, until one window after the latest possible end of a call.

Takes those that it had last before others, and then those that are free for longest, so that the budget goes on showing
what each consumer used. The slot -1 is no permit: until it is free, no permit is.
"""

END_PERMIT: Final = query(
    f"""
    UPDATE places SET free_at_ms = {SERVER_NOW_MS} + $4::bigint, holding = NULL,
        consumer = CASE WHEN $4::bigint > 0 THEN consumer END
    WHERE merchant = $1 AND slot = $2 AND holding = $3 AND $5::bigint IS NOT NULL""",
    sqlite=(
        """
        UPDATE places SET free_at_ms = $5 + $4, holding = NULL, consumer = CASE WHEN $4 > 0 THEN consumer END
        WHERE merchant = $1 AND slot = $2 AND holding = $3""",
    ),
)
"""Stores when a permit is free again, unless another taking holds it by now. What is free at once was not used."""

BLOCK_PERMITS: Final = query(
    f"""
    INSERT INTO places (merchant, slot, free_at_ms)
    SELECT $1, -1, {SERVER_NOW_MS} + $2::bigint WHERE $3::bigint IS NOT NULL
    ON CONFLICT (merchant, slot) DO UPDATE SET free_at_ms = GREATEST(places.free_at_ms, excluded.free_at_ms)""",
    sqlite=(
        """
        INSERT INTO places (merchant, slot, free_at_ms) VALUES ($1, -1, $3 + $2)
        ON CONFLICT (merchant, slot) DO UPDATE SET free_at_ms = max(places.free_at_ms, excluded.free_at_ms)""",
    ),
)
"""Keeps all permits of a merchant's from being taken for a while."""

_MERCHANTS: Final = (
    "SELECT merchant FROM places UNION SELECT merchant FROM operations UNION SELECT merchant FROM checkouts"
)
BLOCK_ALL_PERMITS: Final = query(
    f"""
    INSERT INTO places (merchant, slot, free_at_ms)
    SELECT merchant, -1, {SERVER_NOW_MS} + $1::bigint FROM ({_MERCHANTS}) AS known WHERE $2::bigint IS NOT NULL
    ON CONFLICT (merchant, slot) DO UPDATE SET free_at_ms = GREATEST(places.free_at_ms, excluded.free_at_ms)
    RETURNING merchant""",
    sqlite=(
        f"""
        INSERT INTO places (merchant, slot, free_at_ms) SELECT merchant, -1, $2 + $1 FROM ({_MERCHANTS}) WHERE true
        ON CONFLICT (merchant, slot) DO UPDATE SET free_at_ms = max(places.free_at_ms, excluded.free_at_ms)
        RETURNING merchant""",
    ),
)
"""Keeps the permits of every merchant that anything is known of from being taken for a while."""
