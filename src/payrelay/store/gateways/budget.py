"""The budget of calls to a gateway account that all processes share: a row for each permit.

``gateways.pacing.shared_budget`` has the interface.

One statement takes a permit: it sets the time at which the permit is free again, one window after the latest possible
end of its call. So all other processes know at once of each permit that was taken. A process that dies leaves nothing
behind that doesn't end by itself. The rows also name the last consumer of each permit, by which all processes keep to
the same fair shares (``core.gateways.fair_shares``): one at a time decides.
"""

import secrets
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Final, NamedTuple

from payrelay.clock import Clock
from payrelay.core.gateways.fair_shares import Consumer, Usage, choose
from payrelay.core.gateways.permit_grants import PermitGrant, PermitsGranted
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.gateways.steady_time import steady_ms
from payrelay.store.statements.gateways import budget as statements

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
        yield Statement(statements.ADD_PERMITS, (self._merchant, self._calls))
        yield Statement(statements.CUT_PERMITS, (self._merchant, PERMIT_MS_MAX + self._window_ms, now_ms))

    def _take(
        self, wanted: Sequence[Consumer], permit_ms: int, holder: str, now_ms: int
    ) -> Unit[PermitsGranted | None]:
        yield Statement(statements.LOCK_BUDGET, (self._merchant,))
        rows = yield Statement(statements.READ_USAGES, (self._merchant, self._calls, self._window_ms, now_ms))
        state = _state_of(rows)
        if state.permits != self._calls:
            return None
        if state.blocked_ms > 0:
            return PermitsGranted((), state.blocked_ms / 1000)
        given, refused = choose(wanted, state.usages, calls=self._calls)
        grants: list[PermitGrant] = []
        for consumer, count in Counter(given).items():
            parameters = (self._merchant, self._calls, count, holder, permit_ms + self._window_ms, now_ms)
            taken = yield Statement(statements.TAKE_PERMITS, (*parameters, consumer.text))
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
        yield Statement(statements.END_PERMIT, parameters, is_whole=True)

    def _block(self, for_ms: int, now_ms: int) -> Unit[None]:
        yield Statement(statements.BLOCK_PERMITS, (self._merchant, for_ms, now_ms), is_whole=True)


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
