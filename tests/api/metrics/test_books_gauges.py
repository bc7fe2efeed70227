"""What an alarm about the books rings by: open differences by what makes them urgent, and the age of the oldest."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.core.reconciliation.worlds import COMPLETE, DAY, line, payment
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.runtime.receivers import STARTED_MS, SetClock

from payrelay.api.metrics.gauges import REUSED_S
from payrelay.clock import Clock
from payrelay.core.operators.operator import NewAct
from payrelay.core.operators.roles import Act
from payrelay.reconciliation.gauges import BooksGauges
from payrelay.reconciliation.rules.entries import EntryStanding
from payrelay.reconciliation.rules.judging import judge
from payrelay.reconciliation.store.stores import reconciliation_stores
from payrelay.store import open_database
from payrelay.store.engine.database import Database


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Opens an empty database."""
    opened = await open_database(sqlite_url(tmp_path / "payrelay.db"), clock=Clock(), owner=True)
    yield opened
    await opened.close()


async def test_open_differences_are_shown_until_a_person_closes_them(database: Database) -> None:
    """Of all accounts, each by its concern; without the store nothing is made up."""
    clock = SetClock()
    differences = reconciliation_stores(database, digests_of(database), b"c" * 32).differences
    gauges = BooksGauges(clock, differences.count_open)

    async def values() -> dict[str, float | None]:
        clock.at_ms += int(REUSED_S * 1000)
        await gauges.refresh()
        shown = {
            name: gauges.registry.get_sample_value("payrelay_books_differences_open", {"concern": name})
            for name in ("none", "not_made_here", "taken_though_failed")
        }
        return shown | {"age": gauges.registry.get_sample_value("payrelay_books_oldest_difference_seconds")}

    assert await values() == {"none": 0, "not_made_here": 0, "taken_though_failed": 0, "age": 0}
    failed = payment(2, standing=EntryStanding.FAILED)
    found = [each for each in judge([payment(1), failed], [line(2), line(3)], COMPLETE) if each.is_difference]
    await differences.put("a" * 16, "shop", found, DAY, STARTED_MS)
    await differences.put("b" * 16, "other", found[:1], DAY, STARTED_MS + 1_000)
    assert await values() == {"none": 2, "not_made_here": 1, "taken_though_failed": 1, "age": 10}
    for merchant in ("a" * 16, "b" * 16):
        for each in await differences.open(merchant, limit=10):
            act = NewAct(at_ms=6, operator_id="", name="ann", act=Act.CLOSE_DIFFERENCE, subject=each.id, reason="known")
            await differences.close(each, act)
    assert await values() == {"none": 0, "not_made_here": 0, "taken_though_failed": 0, "age": 0}
    await database.close()
    assert set((await values()).values()) == {None}
