"""SIGTERM under load: no new work, what is under way is finished or truthfully left, and nobody is turned away."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.matrix.books import read_books
from tests.matrix.deeds import Ask, charging
from tests.matrix.gateway import Gateway, simulating
from tests.matrix.load import Heard, callers, charging_on
from tests.matrix.service import Service
from tests.matrix.stores import Postgresql, Sqlite
from tests.matrix.storm import Fleet, fleet
from tests.matrix.verdict import faults_of
from tests.scenarios.stories import fresh
from tests.scenarios.waiting import until

from payrelay.core.payments.operation import State

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

STOPS_WITHIN_S = 25.0
CLIENTS = 12
ANSWERS = 40
SENT_WITHIN_S = 60.0
UNHEARD = {"ClientConnectorError", "ClientOSError", "ServerDisconnectedError"}
"""Nobody listens there any more, or nobody does by the time that the connection's turn comes."""


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    """A simulator of the test's own."""
    with simulating() as running:
        yield running


async def answered(heard: list[Heard], more: int) -> None:
    """Waits for so many more successes."""
    enough = sum(each.status == 200 for each in heard) + more

    def is_enough() -> bool:
        return sum(each.status == 200 for each in heard) >= enough

    await asyncio.to_thread(until, is_enough, f"{enough} charges", deadline_s=SENT_WITHIN_S)


def stopped(service: Service) -> float:
    """Stops it; gives how long that took."""
    began_s = time.monotonic()
    service.ask_to_stop()
    until(service.is_dead, "it has stopped", deadline_s=STOPS_WITHIN_S)
    assert service.exit_code() == 0, service.log()
    return time.monotonic() - began_s


async def replaced_under_load(services: Fleet) -> list[Heard]:
    """Starts a new service beside the old one, and stops the old one; gives all that the clients heard."""
    old, new = services.services
    heard: list[Heard] = []
    async with callers([old.port, new.port], services.key) as group, charging_on(group, CLIENTS, heard):
        await answered(heard, ANSWERS)
        await asyncio.to_thread(stopped, old)
        await answered(heard, ANSWERS)
    return heard


@pytest.mark.postgresql
def test_a_new_process_takes_over_from_an_old_one(
    tmp_path: Path, postgresql_server: "PostgresqlServer", gateway: Gateway
) -> None:
    """No request fails but by the closed door, which a client tries again elsewhere; each order is charged once.

    A connection that the kernel had taken, and the service not yet, is reset; nothing was read of it.
    """
    store = Postgresql(tmp_path, postgresql_server)
    with fleet(store, gateway, tmp_path, count=2) as services:
        heard = asyncio.run(replaced_under_load(services))
        books = read_books(services.services[1].environment, services.services[1].folder)
        assert faults_of(heard, gateway, books) == []
    failed = Counter(each.error.partition(":")[0] or each.status for each in heard if each.status != 200)
    assert failed.keys() <= UNHEARD, failed


async def stopped_under_load(services: Fleet) -> list[Heard]:
    """Stops the only service, and starts it again on its port."""
    service = services.services[0]
    heard: list[Heard] = []
    async with callers(services.ports, services.key) as group, charging_on(group, CLIENTS, heard):
        await answered(heard, ANSWERS)
        await asyncio.to_thread(stopped, service)
        await asyncio.to_thread(service.start, service.port)
        await answered(heard, ANSWERS)
    return heard


def test_a_stop_under_load_leaves_nothing_half_done(tmp_path: Path, gateway: Gateway) -> None:
    """On the embedded database the next process finds every operation finished, and nobody was told otherwise."""
    with fleet(Sqlite(tmp_path), gateway, tmp_path, count=1) as services:
        heard = asyncio.run(stopped_under_load(services))
        service = services.services[0]
        assert "operation_recovered" not in service.log()
    books = read_books(service.environment, service.folder)
    assert faults_of(heard, gateway, books) == []
    assert {each.status for each in heard} <= {200, 0}


async def stopped_beside_a_hanging_gateway(services: Fleet) -> tuple[Heard, Heard, float]:
    """Stops the service while the gateway answers neither a charge, which it has done, nor a search."""
    service, gateway = services.services[0], services.gateway
    gateway.fail_once("hang_after", "charge")
    gateway.fail_once("hang_after", "search")
    search = Ask(method="GET", path=f"payments/{fresh('order')}", body=None, key=fresh("key"))
    async with callers(services.ports, services.key) as group:
        asked = [asyncio.ensure_future(group.send(ask, 0)) for ask in (charging(), search)]
        await asyncio.to_thread(until, lambda: has_begun(gateway), "the gateway has both")
        took_s = await asyncio.to_thread(stopped, service)
        return await asked[0], await asked[1], took_s


def has_begun(gateway: Gateway) -> bool:
    """Whether the gateway has done the charge, and was asked for payments."""
    return bool(gateway.ledger()) and any(call["endpoint"] == "search" for call in gateway.calls())


def test_a_stop_does_not_wait_for_a_gateway_that_hangs(tmp_path: Path, gateway: Gateway) -> None:
    """Within 25 s it is gone; clients are told what is known, and the next process finds what became of the charge."""
    with fleet(Sqlite(tmp_path), gateway, tmp_path, count=1, timeout_s=60) as services:
        charge, search, took_s = asyncio.run(stopped_beside_a_hanging_gateway(services))
        service = services.services[0]
        left = read_books(service.environment, service.folder)
        assert [operation.state for operation in left.operations] in ([State.SENDING], [State.UNKNOWN])
        service.start()
        until(lambda: settled(service) == [State.SUCCEEDED], "the next process proves it")
    assert took_s < STOPS_WITHIN_S
    assert faults_of([charge], gateway, read_books(service.environment, service.folder)) == []
    assert (charge.status, json.loads(charge.body)["error"]["code"]) == (202, "outcome_unknown")
    assert (search.status, json.loads(search.body)["error"]["code"]) == (503, "unavailable")


def settled(service: Service) -> list[State]:
    """Gives the states of all operations."""
    return [operation.state for operation in read_books(service.environment, service.folder).operations]
