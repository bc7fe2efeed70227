from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.console.browsing import console_on
from tests.databases import sqlite_url
from tests.flows.console.desk import Desk

from payrelay.clock import Clock
from payrelay.console.dispatch import Console
from payrelay.store import open_database


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """Gives the flows on an empty database; whatever was done, the history must be whole."""
    database = await open_database(sqlite_url(tmp_path / "payrelay.db"), clock=Clock(), owner=True)
    desk = Desk(database)
    yield desk
    assert await desk.is_whole()
    await database.close()


@pytest.fixture
def console(desk: Desk) -> Console:
    """Gives the console on them."""
    return console_on(desk)
