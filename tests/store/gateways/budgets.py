"""Budgets of each kind with a hand on their time, so that one suite of tests runs against all of them."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import asyncpg
from tests.gateways.pacing.hand_clock import HandClock

from payrelay.clock import Clock
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.gateways.pacing.shared_budget import Budget, MemoryBudget, Rest
from payrelay.store import open_database
from payrelay.store.engine.database import Database
from payrelay.store.engine.sqlite import InlineExecutor
from payrelay.store.gateways.budget import StoredBudget

MERCHANT: Final = "0123456789abcdef"

Pass = Callable[[float], Awaitable[None]]


class Bench(NamedTuple):
    """A way to make budgets that share their permits, and to let time pass for them."""

    make: Callable[[RateLimit], Budget]
    pass_time: Pass
    database: Database | None


async def finish(rest: Rest) -> None:
    """Waits for what is left of a change."""
    if rest is not None:
        await rest


async def bench_in(place: str) -> Bench:
    """Gives the bench for the address of a database, or for none."""
    if not place:
        return memory_bench()
    return await (sqlite_bench(place) if place.startswith("sqlite") else postgresql_bench(place))


def memory_bench() -> Bench:
    """A budget of one process."""
    clock = HandClock()
    return Bench(lambda limit: MemoryBudget(limit, clock), clock.run, None)


async def sqlite_bench(url: str) -> Bench:
    """Budgets in the embedded database, which goes by our clock."""
    clock = HandClock()
    database = await open_database(url, clock=clock, owner=True, executor=InlineExecutor())
    return Bench(lambda limit: stored(database, clock, limit), clock.run, database)


async def postgresql_bench(url: str) -> Bench:
    """Budgets on a server, which goes by a clock of its own: there time passes by moving what is stored."""
    database = await open_database(url, clock=Clock(), owner=True)

    async def pass_time(seconds: float) -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute("UPDATE places SET free_at_ms = free_at_ms - $1", round(seconds * 1000))
        finally:
            await connection.close()

    return Bench(lambda limit: stored(database, Clock(), limit), pass_time, database)


def stored(database: Database, clock: Clock, limit: RateLimit) -> StoredBudget:
    """Makes a budget in a store."""
    return StoredBudget(database, clock, MERCHANT, calls=limit.calls, window_s=limit.window_s)
