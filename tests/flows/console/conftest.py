from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.databases import sqlite_url
from tests.flows.console.desk import Desk

from payrelay.clock import Clock
from payrelay.store import open_database
from payrelay.store.engine.database import Database


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Gives the address of an empty database of each kind."""
    is_shared = request.param == "postgresql"
    return str(request.getfixturevalue("postgresql_url")) if is_shared else sqlite_url(tmp_path / "payrelay.db")


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """Opens an empty database, and closes it."""
    opened = await open_database(url, clock=Clock(), owner=True)
    yield opened
    await opened.close()


@pytest.fixture
async def desk(database: Database) -> AsyncIterator[Desk]:
    """Gives a console on it; whatever operators did, the history must be whole."""
    desk = Desk(database)
    yield desk
    assert await desk.is_whole()
    newest = await desk.parts.acts.before(None, 1)
    assert await desk.parts.acts.newest_named() <= (newest[0].number if newest else 0)
