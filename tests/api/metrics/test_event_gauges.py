from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.databases import sqlite_url
from tests.runtime.receivers import STARTED_MS, SetClock, dispatch_on, event, put, register

from payrelay.api.metrics.event_gauges import EventGauges
from payrelay.api.metrics.gauges import REUSED_S
from payrelay.clock import Clock
from payrelay.store import open_database
from payrelay.store.engine.database import Database


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Opens an empty database."""
    opened = await open_database(sqlite_url(tmp_path / "payrelay.db"), clock=Clock(), owner=True)
    yield opened
    await opened.close()


async def test_what_waits_is_shown_with_its_age(database: Database) -> None:
    """An alarm rings where the oldest waits for long; without the store nothing is made up."""
    clock = SetClock()
    dispatch = dispatch_on(database, clock)
    gauges = EventGauges(dispatch)
    await register(dispatch, "https://shop.example/")
    await put(database, event(1))
    await dispatch.feed.publish(STARTED_MS)
    await put(database, event(2))
    clock.at_ms += 3_000
    await gauges.refresh()

    def value(name: str, **labels: str) -> float | None:
        return gauges.registry.get_sample_value(f"payrelay_{name}", labels)

    assert (value("events_unpublished"), value("deliveries_waiting")) == (1, 1)
    assert value("events_oldest_waiting_seconds") == 3
    assert value("endpoints", state="active") == 1
    assert value("endpoints", state="stopped") == 0
    assert value("event_followers") == 0
    await database.close()
    await gauges.refresh()
    assert value("deliveries_waiting") == 1, "several who scrape cost the store no more than one"
    clock.at_ms += int(REUSED_S * 1000)
    await gauges.refresh()
    assert value("deliveries_waiting") is None
    assert b"payrelay_event_followers" in gauges.text()
