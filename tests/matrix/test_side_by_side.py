"""The version before and this one serve one database, under load: forward, and back again."""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from tests.matrix.books import read_books
from tests.matrix.deeds import plant_customer
from tests.matrix.gateway import Gateway, simulating
from tests.matrix.load import Callers, Heard, callers, charging_on
from tests.matrix.stores import SEALING_KEY
from tests.matrix.verdict import faults_of
from tests.matrix.version_before import VersionMissing, version_before
from tests.needed import lacking
from tests.postgresql_server import PostgresqlServer, ProgramsMissing, running_postgresql
from tests.scenarios.program import PAYRELAY, Program, run
from tests.scenarios.waiting import until

pytestmark = pytest.mark.postgresql

CLIENTS: Final = 4
CHARGES: Final = 40
"""Answers that are waited for at each stage."""
WITHIN_S: Final = 60.0


@pytest.fixture
def older(tmp_path: Path) -> dict[str, str]:
    """Puts the sources of the version before into a folder; gives the settings with which they are what is run."""
    try:
        return version_before(tmp_path / "before")
    except VersionMissing as missing:
        lacking(str(missing))


class Fleet:
    """Services of both versions on one database, each in a folder of its own."""

    def __init__(self, folder: Path, environment: dict[str, str], older: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.older = older
        self.running: list[Program] = []

    def start(self, *, is_older: bool) -> Program:
        """Starts a service of the version before, or of this one."""
        folder = self.folder / f"service-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        command = (sys.executable, "-m", "payrelay") if is_older else (PAYRELAY,)
        program = Program(folder, self.environment | (self.older if is_older else {}), command)
        self.running.append(program)
        return program.start()

    def upgrade(self) -> str:
        """Upgrades the database with this version; gives what it said."""
        done = run(self.folder, self.environment, "db", "upgrade")
        assert done.returncode == 0, done.stderr
        return done.stderr


def environment_of(server: PostgresqlServer, gateway: Gateway) -> dict[str, str]:
    """Gives the settings of all services."""
    server.create("side_by_side")
    limit = {"PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT": "off", "PAYRELAY_ENCRYPTION_KEY": SEALING_KEY}
    return gateway.account | limit | {"PAYRELAY_DATABASE_URL": server.url("side_by_side")}


async def roll_forward_and_back(fleet: Fleet, key: str) -> list[Heard]:
    """Gives everything that the clients heard while the services were exchanged beneath them."""
    heard: list[Heard] = []
    older = await asyncio.to_thread(fleet.start, is_older=True)

    async def charged() -> None:
        enough = len(heard) + CHARGES
        await asyncio.to_thread(until, lambda: len(heard) >= enough, f"{enough} answers", deadline_s=WITHIN_S)

    async with callers([older.port], key) as group, charging_on(group, CLIENTS, heard):
        await charged()
        await asyncio.to_thread(fleet.upgrade)
        await charged()
        newer = await asyncio.to_thread(fleet.start, is_older=False)
        group.ports = [older.port, newer.port]
        await charged()
        await exchange(group, older, newer)
        await charged()
        older = await asyncio.to_thread(fleet.start, is_older=True)
        group.ports = [newer.port, older.port]
        await charged()
        await exchange(group, newer, older)
        await charged()
    return heard


async def exchange(group: Callers, leaving: Program, staying: Program) -> None:
    """Sends nobody to a service any more, as a proxy does, and stops it once it has answered what it had."""
    group.ports = [staying.port]
    await asyncio.to_thread(until, lambda: not group.under_way[leaving.port], "the last answers", deadline_s=WITHIN_S)
    assert await asyncio.to_thread(leaving.stop) == 0


def test_the_version_before_and_this_one_serve_side_by_side(tmp_path: Path, older: dict[str, str]) -> None:
    """An upgrade, and the way back where it disappoints, costs no client an error and nobody a second charge."""
    try:
        with running_postgresql() as server, simulating() as gateway:
            plant_customer(gateway)
            services = tmp_path / "services"
            services.mkdir()
            fleet = Fleet(services, environment_of(server, gateway), older)
            made = run(services, fleet.environment | older, "keys", "create", "--name", "shop")
            assert made.returncode == 0, made.stderr
            try:
                heard = asyncio.run(roll_forward_and_back(fleet, made.stdout.strip()))
            finally:
                for program in fleet.running:
                    program.kill()
            books = read_books(fleet.environment, services)
            faults = faults_of(heard, gateway, books)
    except ProgramsMissing as missing:
        lacking(str(missing))
    assert faults == []
    assert Counter(each.status for each in heard).keys() == {200}
    assert len(heard) >= 6 * CHARGES
