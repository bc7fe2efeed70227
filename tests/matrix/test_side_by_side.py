"""This version and the next one serve one database, under load: forward, and back again, or not at all."""

import asyncio
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.matrix.books import read_books
from tests.matrix.deeds import plant_customer
from tests.matrix.gateway import Gateway, simulating
from tests.matrix.load import Callers, Heard, callers, charging_on
from tests.matrix.next_version import ADDED, CLOSED, COMMAND, THIS, next_version
from tests.matrix.stores import SEALING_KEY
from tests.matrix.verdict import faults_of
from tests.needed import lacking
from tests.postgresql_server import PostgresqlServer, ProgramsMissing, running_postgresql
from tests.scenarios.program import PAYRELAY, Program, run, surroundings
from tests.scenarios.waiting import until

pytestmark = pytest.mark.postgresql

CLIENTS: Final = 4
CHARGES: Final = 40
"""Answers that are waited for at each stage."""
WITHIN_S: Final = 60.0


class Fleet:
    """Services of both versions on one database, each in a folder of its own."""

    def __init__(self, folder: Path, server: PostgresqlServer, gateway: Gateway, newer: dict[str, str]) -> None:
        name = folder.name
        server.create(name)
        limit = {"PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT": "off", "PAYRELAY_ENCRYPTION_KEY": SEALING_KEY}
        self.folder = folder
        self.environment = gateway.account | limit | {"PAYRELAY_DATABASE_URL": server.url(name)}
        self.newer = newer
        self.running: list[Program] = []
        folder.mkdir()

    def start(self, *, is_newer: bool) -> Program:
        """Starts a service of this version, or of the next one."""
        folder = self.folder / f"service-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        program = Program(
            folder, self.environment | (self.newer if is_newer else {}), COMMAND if is_newer else (PAYRELAY,)
        )
        self.running.append(program)
        return program.start()

    def upgrade(self) -> subprocess.CompletedProcess[str]:
        """Upgrades the database with the next version."""
        return subprocess.run(
            [*COMMAND, "db", "upgrade"],
            cwd=self.folder,
            env=surroundings(self.environment | self.newer),
            capture_output=True,
            text=True,
            check=False,
        )

    def version(self) -> int:
        """Gives the version of the schema, as this version reads it."""
        return int(run(self.folder, self.environment, "db", "version").stdout or 0)


class Story:
    """What clients hear while the services are exchanged beneath them."""

    def __init__(self, fleet: Fleet, group: Callers, heard: list[Heard]) -> None:
        self.fleet = fleet
        self.group = group
        self.heard = heard

    async def charged(self) -> None:
        """Waits until the services of now have answered a while."""
        enough = len(self.heard) + CHARGES
        await asyncio.to_thread(until, lambda: len(self.heard) >= enough, f"{enough} answers", deadline_s=WITHIN_S)

    async def begin(self, *, is_newer: bool) -> Program:
        """Starts a service beside the others."""
        program = await asyncio.to_thread(self.fleet.start, is_newer=is_newer)
        self.group.ports = [*self.group.ports, program.port]
        await self.charged()
        return program

    async def end(self, leaving: Program) -> None:
        """Sends nobody to a service any more, as a proxy does, and stops it once it has answered what it had."""
        self.group.ports = [port for port in self.group.ports if port != leaving.port]
        await asyncio.to_thread(
            until, lambda: not self.group.under_way[leaving.port], "the last answers", deadline_s=WITHIN_S
        )
        assert await asyncio.to_thread(leaving.stop) == 0
        await self.charged()


async def roll_forward_and_back(fleet: Fleet, key: str) -> list[Heard]:
    """Exchanges all services for those of the next version, and these again; gives what clients heard."""
    heard: list[Heard] = []
    first = await asyncio.to_thread(fleet.start, is_newer=False)
    async with callers([first.port], key) as group, charging_on(group, CLIENTS, heard):
        story = Story(fleet, group, heard)
        await story.charged()
        upgraded = await asyncio.to_thread(fleet.upgrade)
        assert upgraded.returncode == 0, upgraded.stderr
        newer = await story.begin(is_newer=True)
        await story.end(first)
        again = await story.begin(is_newer=False)
        await story.end(newer)
        assert again.port in group.ports
    return heard


async def wait_for_the_end(fleet: Fleet, key: str) -> list[Heard]:
    """Tries an upgrade that the running services can't work with; they go on, and are started again."""
    heard: list[Heard] = []
    first = await asyncio.to_thread(fleet.start, is_newer=False)
    async with callers([first.port], key) as group, charging_on(group, CLIENTS, heard):
        story = Story(fleet, group, heard)
        await story.charged()
        refused = await asyncio.to_thread(fleet.upgrade)
        assert refused.returncode == 2
        assert f"sessions of a program for version {THIS}, from" in refused.stderr
        assert f"The schema stays at version {THIS}," in refused.stderr
        assert "migration" not in refused.stderr
        assert await asyncio.to_thread(fleet.version) == THIS
        second = await story.begin(is_newer=False)
        await story.end(first)
        assert second.port in group.ports
    return heard


@contextmanager
def fleet_of(folder: Path, *migrations: Mapping[str, str]) -> Iterator[tuple[Fleet, Gateway, str]]:
    """Gives a fleet whose next version has these migrations, with its gateway and a key."""
    newer = next_version(folder / "next", *migrations)
    try:
        with running_postgresql() as server, simulating() as gateway:
            plant_customer(gateway)
            fleet = Fleet(folder / "services", server, gateway, newer)
            made = run(fleet.folder, fleet.environment, "keys", "create", "--name", "shop")
            assert made.returncode == 0, made.stderr
            try:
                yield fleet, gateway, made.stdout.strip()
            finally:
                for program in fleet.running:
                    program.kill()
    except ProgramsMissing as missing:
        lacking(str(missing))


def check(fleet: Fleet, gateway: Gateway, heard: list[Heard]) -> None:
    """No client heard an error, and nobody was charged twice."""
    assert faults_of(heard, gateway, read_books(fleet.environment, fleet.folder)) == []
    assert Counter(each.status for each in heard).keys() == {200}
    assert len(heard) >= 3 * CHARGES


def test_this_version_and_the_next_serve_side_by_side(tmp_path: Path) -> None:
    """An upgrade, and the way back where it disappoints, costs no client an error and nobody a second charge."""
    with fleet_of(tmp_path, ADDED) as (fleet, gateway, key):
        check(fleet, gateway, asyncio.run(roll_forward_and_back(fleet, key)))


def test_an_upgrade_that_this_version_can_not_work_with_waits_for_its_end(tmp_path: Path) -> None:
    """Once its first migration was done, none of the old processes could be started again."""
    with fleet_of(tmp_path, ADDED, CLOSED) as (fleet, gateway, key):
        check(fleet, gateway, asyncio.run(wait_for_the_end(fleet, key)))
