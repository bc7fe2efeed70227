"""Two services under load, and the database server is killed beneath them."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from tests.matrix.books import UNDER_WAY, Books, read_books
from tests.matrix.gateway import simulating
from tests.matrix.load import Heard, callers, charging_on
from tests.matrix.stores import Postgresql
from tests.matrix.storm import Fleet, fleet
from tests.matrix.verdict import faults_of
from tests.needed import lacking
from tests.postgresql_server import PostgresqlServer, ProgramsMissing, running_postgresql
from tests.scenarios.waiting import until

pytestmark = pytest.mark.postgresql

CLIENTS = 12
CHARGES_BEFORE = 60
"""Answers that are waited for before the server is killed, and again after it is back."""
SENT_WITHIN_S = 60.0
TAKEN_UP_WITHIN_S = 60.0  # sending and time-out, some grace, and the worker's turn
ALLOWED = {200, 202, 409, 503}


async def charge_through_a_kill(services: Fleet, server: PostgresqlServer) -> list[Heard]:
    """Gives everything that the clients heard before, during and after it."""
    heard: list[Heard] = []
    async with callers(services.ports, services.key) as group, charging_on(group, CLIENTS, heard):
        await answered(heard, 200, CHARGES_BEFORE)
        await asyncio.to_thread(server.kill)
        await answered(heard, 503, CLIENTS)
        await asyncio.to_thread(server.start)
        await answered(heard, 200, sum(each.status == 200 for each in heard) + CHARGES_BEFORE)
    return heard


async def answered(heard: list[Heard], status: int, count: int) -> None:
    """Waits until so many answers had the status."""

    def is_enough() -> bool:
        return sum(each.status == status for each in heard) >= count

    await asyncio.to_thread(until, is_enough, f"{count} answers {status}", deadline_s=SENT_WITHIN_S)


def final_books(services: Fleet) -> Books:
    """Gives the books, once nothing is left that died with the database."""
    service = services.services[0]
    books = read_books(service.environment, service.folder)

    def is_final() -> bool:
        nonlocal books
        books = read_books(service.environment, service.folder)
        return not any(operation.state in UNDER_WAY for operation in books.operations)

    until(is_final, "what was left is taken up", deadline_s=TAKEN_UP_WITHIN_S)
    return books


def test_a_killed_database_loses_no_intent_and_doubles_nothing(tmp_path: Path) -> None:
    """What arrived at the gateway is in the books, nothing was done twice, and who could not be served heard 503."""
    try:
        with running_postgresql() as server, simulating() as gateway:
            with fleet(Postgresql(tmp_path, server), gateway, tmp_path, count=2, timeout_s=2) as services:
                heard = asyncio.run(charge_through_a_kill(services, server))
                books = final_books(services)
            assert faults_of(heard, gateway, books) == []
    except ProgramsMissing as missing:
        lacking(str(missing))
    assert Counter(each.status for each in heard).keys() <= ALLOWED
