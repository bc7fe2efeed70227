"""What tests of apps' requests share."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from structlog.typing import FilteringBoundLogger
from tests.databases import sqlite_url
from tests.flows.world import HandClock
from tests.gateways.still_gateway import StillGateway
from tests.relays import relay_over
from tests.samples import OPERATION

from payrelay.core.payments.operation import Retention
from payrelay.flows.relay import Relay
from payrelay.store import open_database


@pytest.fixture
async def relay(tmp_path: Path) -> AsyncIterator[Relay]:
    """Gives a relay over an empty store; its gateway is never called."""
    clock = HandClock()
    database = await open_database(sqlite_url(tmp_path / "payrelay.db"), clock=clock, owner=True)
    yield relay_over(
        database,
        {"gateway": StillGateway(clock, merchant=OPERATION.merchant)},
        clock=clock,
        log=cast("FilteringBoundLogger", None),
        retention=Retention(keyed_ms=1, unkeyed_ms=1),
    )
    await database.close()
