"""What an upgrade to the next version does on both databases, and what it doesn't: refused, mistaken, gone on with."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.draws import drawn_uuid
from tests.matrix.next_version import ADDED, BROKEN, CLOSED, COMMAND, SOURCES, THIS, next_version
from tests.matrix.stores import NOBODY, SEALING_KEY
from tests.scenarios.program import Program, run, surroundings

REFUSED = 2


class Builds(NamedTuple):
    """Builds of the next version, by the settings that run them."""

    broken: dict[str, str]
    mended: dict[str, str]
    closed: dict[str, str]


class Place(NamedTuple):
    """A folder with a database, and what finds it."""

    folder: Path
    environment: dict[str, str]

    def __call__(self, build: dict[str, str] | None, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of a build, or of this version."""
        if build is None:
            return run(self.folder, self.environment, *arguments)
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=surroundings(self.environment | build),
            capture_output=True,
            text=True,
            check=False,
        )

    def upgrading(self, build: dict[str, str]) -> Program:
        """Gives a service of a build that brings the database up to date."""
        return Program(self.folder, self.environment | build, (*COMMAND, "serve"), "--upgrade")


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """Makes the builds."""
    folder = tmp_path_factory.mktemp("builds")
    return Builds(
        next_version(folder / "broken", ADDED, BROKEN),
        next_version(folder / "mended", ADDED),
        next_version(folder / "closed", ADDED, CLOSED),
    )


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Gives a place without a database as yet, of each kind."""
    environment = NOBODY | {"PAYRELAY_ENCRYPTION_KEY": SEALING_KEY}
    if request.param == "sqlite":
        yield Place(tmp_path, environment | {"PAYRELAY_DATABASE_URL": f"sqlite:///{tmp_path}/payrelay.db"})
        return
    server, name = request.getfixturevalue("postgresql_server"), f"next_{drawn_uuid().hex}"
    server.create(name)
    yield Place(tmp_path, environment | {"PAYRELAY_DATABASE_URL": server.url(name)})
    server.drop(name)


def test_an_upgrade_that_a_running_service_can_not_work_with_changes_nothing(place: Place, builds: Builds) -> None:
    """The service goes on and can be started again; once it has ended, the upgrade is done, and shuts it out."""
    assert place(None, "db", "upgrade").returncode == 0
    service = Program(*place).start()
    try:
        refused = place(builds.closed, "db", "upgrade")
        version = place(None, "db", "version").stdout
        assert service.stop() == 0
        service.start()
    finally:
        service.stop()
    done = place(builds.closed, "db", "upgrade")
    shut_out = place(None, "db", "version")

    assert refused.returncode == REFUSED
    assert (
        "another Payrelay process (pid" in refused.stderr or f"of a program for version {THIS}, from" in refused.stderr
    )
    assert ("migration" in refused.stderr, version) == (False, f"{THIS}\n")
    assert (done.returncode, f"at version {THIS + 3}." in done.stderr) == (0, True)
    assert (shut_out.returncode, "install a newer Payrelay" in shut_out.stderr) == (REFUSED, True)


def test_an_upgrade_goes_on_where_a_mistaken_build_ended(place: Place, builds: Builds) -> None:
    """What was done stays done, this version works on it meanwhile, and a service upgrades only when it is told to."""
    assert place(None, "db", "upgrade").returncode == 0
    ended = place(builds.broken, "db", "upgrade")
    assert (ended.returncode, f"migration {THIS + 1} (" in ended.stderr) == (REFUSED, True)
    assert "no such table: lanes" in ended.stderr or 'relation "lanes" does not exist' in ended.stderr
    assert place(None, "db", "version").stdout == f"{THIS + 1}\n"
    for command in (("serve", "--port", "0"), ("keys", "list")):
        refused = place(builds.mended, *command)
        assert (refused.returncode, f"needs version {THIS + 2}; run payrelay db upgrade" in refused.stderr) == (2, True)

    service = place.upgrading(builds.mended).start()
    assert service.stop() == 0
    told = [line["text"] for line in service.log_lines() if line["event"] == "upgrading"]
    assert [text.partition(" (")[0] for text in told] == [f"migration {THIS + 2}", "upgrade step 'lanes'"]
    assert "up to date" in place(builds.mended, "db", "upgrade").stderr
    back = Program(*place).start()
    assert back.stop() == 0


def test_a_new_database_has_had_every_step(place: Place, builds: Builds) -> None:
    """There is nothing in it that a step could change."""
    made = place(builds.mended, "db", "upgrade")

    assert (made.returncode, made.stderr) == (0, f"The database is up to date, at version {THIS + 2}.\n")
    assert place(builds.mended, "keys", "list").returncode == 0


TYPED = """
import json, sys
from pathlib import Path
from tests.cli.commands import run_inside
from tests.cli.test_main import READING

for typed in [*READING, ("keys", "create", "--name", "shop")]:
    print(json.dumps([typed, *run_inside(Path.cwd(), {}, *typed)]))
"""
"""Runs each command that opens a database in one process, and tells what it came to."""


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_only_an_upgrade_migrates(place: Place, builds: Builds) -> None:
    """A look from a newer program must not change the database of the server that is running, nor must a start."""
    assert place(None, "db", "upgrade").returncode == 0
    paths = {"PYTHONPATH": f"{builds.mended['PYTHONPATH']}:{SOURCES.parent}"}
    typed = subprocess.run(
        [sys.executable, "-c", TYPED],
        cwd=place.folder,
        env=surroundings(place.environment | paths),
        capture_output=True,
        text=True,
        check=True,
    )
    came_to = [json.loads(line) for line in typed.stdout.splitlines()]
    refusal = f"the schema has version {THIS}, this program needs version {THIS + 2}; run payrelay db upgrade, or start"
    others = [each for each in came_to if each[1:3] != [REFUSED, ""] or refusal not in each[3]]

    assert (bool(came_to), others) == (True, [])
    assert place(None, "db", "version").stdout == f"{THIS}\n"


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_backup_of_before_is_made_and_restored_by_the_next_version(place: Place, builds: Builds) -> None:
    """Before an upgrade is when most backups are made, by the new program too; its recovery is begun just the same."""
    assert place(None, "db", "upgrade").returncode == 0
    made = place(builds.mended, "backup", "before")
    replaced = ("--replace", "payrelay.db", "--note", "the disk broke", "--yes")
    restored = place(builds.mended, "restore", "before", *replaced)
    old = place(builds.mended, "db", "version")
    upgraded = place(builds.mended, "db", "upgrade")
    status = place(builds.mended, "recover", "status")

    assert (made.returncode, restored.returncode, old.returncode, upgraded.returncode) == (0, 0, REFUSED, 0)
    assert "run payrelay db upgrade" in restored.stderr
    assert "the disk broke" in status.stdout, status
