"""A backup that takes the place of the database that a service had, on both databases, with real processes."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tests.draws import drawn_uuid
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import PAYRELAY, Program, surroundings
from tests.scenarios.stories import Scene, charge_body, fresh
from tests.scenarios.test_backup import DATABASE, serving

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

KINDS: Final = [
    "sqlite",
    pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.integration]),
]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The address of a database of each kind, and the name that --replace takes."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/payrelay.db", "payrelay.db"
    server: PostgresqlServer = request.getfixturevalue("postgresql_server")
    name = f"restore_{drawn_uuid().hex}"
    server.create(name)
    return server.url(name), name


@contextmanager
def stopped_after(scene: Scene, folder: Path) -> Iterator[tuple[str, str]]:
    """A charge before a backup and one after it, and then a service that is killed; gives both orders."""
    before, after = fresh("before"), fresh("after")
    assert scene.client.charge(charge_body(before), key=before).status == 200
    made = scene.program.run("backup", str(folder))
    assert made.returncode == 0, made.stderr
    assert scene.client.charge(charge_body(after), key=after).status == 200
    scene.program.kill()
    yield before, after


def orders_in(program: Program, *orders: str) -> list[int]:
    """How many operations of each order a database has."""
    return [len(json.loads(program.run("operations", "list", "--json", "--order", order).stdout)) for order in orders]


def test_a_backup_takes_the_place_of_a_database_and_begins_the_recovery(
    tmp_path: Path, gateway: GatewayDouble, store: tuple[str, str]
) -> None:
    """It has what was there at the backup and nothing later. What was there before can still be looked into."""
    url, name = store
    with serving(tmp_path, gateway, **{DATABASE: url}) as scene:
        running = restore(scene.program, tmp_path / "backup", name)
        with stopped_after(scene, tmp_path / "backup") as (before, after):
            refused = restore(scene.program, tmp_path / "backup", None)
            ran = restore(scene.program, tmp_path / "backup", name)
            told = json.loads(ran.stdout)

            assert running.returncode == 2
            assert (refused.returncode, f"add --replace {name}" in refused.stderr) == (2, True)
            assert (ran.returncode, told["incarnation"], told["operations"]) == (0, 2, 1)
            assert orders_in(scene.program, before, after) == [1, 0]
            assert scene.program.run("audit", "verify").returncode == 0
            kept = scene.program.environment | {DATABASE: kept_at(url, told["replaced"])}
            assert orders_in(Program(tmp_path, kept), before, after) == [1, 1]


def kept_at(url: str, replaced: str) -> str:
    """The address of the database that was replaced, from what the command said."""
    if url.startswith("sqlite"):
        return f"sqlite:///{replaced}"
    return f"{url}&search_path={replaced.split()[2]}"


def restore(program: Program, folder: Path, name: str | None) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end."""
    return program.run(*arguments(folder, name))


def arguments(folder: Path, name: str | None) -> list[str]:
    """What an operator types."""
    replace = [] if name is None else ["--replace", name]
    return ["restore", str(folder), *replace, "--note", "the disk broke", "--yes", "--json"]


def test_a_running_database_is_left_alone(tmp_path: Path, gateway: GatewayDouble, store: tuple[str, str]) -> None:
    """Its service would go on with what nobody sees any more."""
    url, name = store
    with serving(tmp_path, gateway, **{DATABASE: url}) as scene:
        order = fresh("after")
        assert scene.program.run("backup", str(tmp_path / "backup")).returncode == 0
        assert scene.client.charge(charge_body(order), key=order).status == 200
        ran = restore(scene.program, tmp_path / "backup", name)

        assert ran.returncode == 2
        assert "running on this database" in ran.stderr or "stop them all first" in ran.stderr
        assert orders_in(scene.program, order) == [1]


@pytest.mark.integration
def test_a_restore_that_is_killed_leaves_the_old_database_or_the_new_one(
    tmp_path: Path, gateway: GatewayDouble
) -> None:
    """Power fails at the worst time. A database that is neither would be served, and charge its orders again.

    It is killed once its draft is there, and once the database of before has its second name.
    """
    with (
        serving(tmp_path, gateway) as scene,
        stopped_after(scene, tmp_path / "backup") as (before, after),
    ):
        for sign in (".payrelay.db.restoring", "payrelay.db.replaced-*"):
            kill_at(scene.program, arguments(tmp_path / "backup", "payrelay.db"), sign)
            assert orders_in(scene.program, before, after) in ([1, 1], [1, 0])
            assert scene.program.run("audit", "verify").returncode == 0
        assert restore(scene.program, tmp_path / "backup", "payrelay.db").returncode == 0
        assert orders_in(scene.program, before, after) == [1, 0]
        assert list(tmp_path.glob(".payrelay.db.*")) == []


def kill_at(program: Program, typed: list[str], sign: str) -> None:
    """Runs a command, and kills it as soon as there is a file of that name."""
    process = subprocess.Popen(
        [PAYRELAY, *typed],
        cwd=program.folder,
        env=surroundings(program.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and not list(program.folder.glob(sign)):
        pass
    process.kill()
    process.wait()


@pytest.mark.postgresql
@pytest.mark.integration
def test_a_program_that_fails_leaves_everything_as_it_was(
    tmp_path: Path, gateway: GatewayDouble, postgresql_server: "PostgresqlServer"
) -> None:
    """Half a dump must not take the place, and nothing of it may stay."""
    name = f"restore_{drawn_uuid().hex}"
    postgresql_server.create(name)
    url = postgresql_server.url(name)
    with (
        serving(tmp_path, gateway, **{DATABASE: url}) as scene,
        stopped_after(scene, tmp_path / "backup") as (before, after),
    ):
        real = shutil.which("pg_restore")
        (tmp_path / "programs").mkdir()
        script = tmp_path / "programs" / "pg_restore"
        script.write_text(
            f'#!/bin/sh\ncase "$1" in --list) exec {real} "$@";; esac\n{real} "$@" | head -c 20000\n'
            "echo torn >&2\nexit 1\n"
        )
        script.chmod(0o700)
        path = f"{tmp_path}/programs:{os.environ['PATH']}"
        broken = Program(tmp_path, scene.program.environment | {"PATH": path})
        ran = restore(broken, tmp_path / "backup", name)

        assert (ran.returncode, ran.stderr) == (2, "payrelay: pg_restore failed: torn\n")
        assert orders_in(scene.program, before, after) == [1, 1]
        assert restore(scene.program, tmp_path / "backup", name).returncode == 0
