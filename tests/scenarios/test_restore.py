"""A backup that takes the place of the database that a service had, with real processes."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.draws import drawn_uuid
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import PAYRELAY, Program, surroundings
from tests.scenarios.restoring import commands_of_page, typed
from tests.scenarios.stories import Scene, charge_body, fresh
from tests.scenarios.test_backup import DATABASE, serving

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer


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


def test_a_backup_takes_the_place_of_a_database_and_begins_the_recovery(tmp_path: Path, gateway: GatewayDouble) -> None:
    """It has what was there at the backup and nothing later. What was there before can still be looked into."""
    name = "payrelay.db"
    with serving(tmp_path, gateway) as scene:
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
            kept = scene.program.environment | {DATABASE: f"sqlite:///{told['replaced']}"}
            assert orders_in(Program(tmp_path, kept), before, after) == [1, 1]


def restore(program: Program, folder: Path, name: str | None) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end."""
    return program.run(*arguments(folder, name))


def arguments(folder: Path, name: str | None) -> list[str]:
    """What an operator types."""
    replace = [] if name is None else ["--replace", name]
    return ["restore", str(folder), *replace, "--note", "the disk broke", "--yes", "--json"]


def test_a_running_database_is_left_alone(tmp_path: Path, gateway: GatewayDouble) -> None:
    """Its service would go on with what nobody sees any more."""
    with serving(tmp_path, gateway) as scene:
        order = fresh("after")
        assert scene.program.run("backup", str(tmp_path / "backup")).returncode == 0
        assert scene.client.charge(charge_body(order), key=order).status == 200
        ran = restore(scene.program, tmp_path / "backup", "payrelay.db")

        assert (ran.returncode, "running on this database" in ran.stderr) == (2, True)
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
def test_a_dump_is_brought_back_as_the_page_says_and_not_served_before(
    tmp_path: Path, gateway: GatewayDouble, postgresql_server: "PostgresqlServer"
) -> None:
    """Whoever stops in the middle has a database that no service serves; at the end nothing is charged twice."""
    name = f"restore_{drawn_uuid().hex}"
    postgresql_server.create(name)
    url = postgresql_server.url(name)
    with (
        serving(tmp_path, gateway, **{DATABASE: url}) as scene,
        stopped_after(scene, tmp_path / "backup") as (before, after),
    ):
        *restoring, recovering = commands_of_page(url, tmp_path / "backup")
        assert typed(scene.program, restoring) == 0
        refused, checked = scene.program.run("serve"), scene.program.run("check")
        assert (refused.returncode, "run payrelay recover" in refused.stderr) == (2, True)
        assert "a copy was restored" in checked.stdout + checked.stderr
        assert typed(scene.program, [recovering]) == 0
        assert orders_in(scene.program, before, after) == [1, 0]
        assert scene.program.run("audit", "verify").returncode == 0
        kept = scene.program.environment | {DATABASE: f"{url}&search_path=payrelay_replaced"}
        assert orders_in(Program(tmp_path, kept), before, after) == [1, 1]
        scene.program.start(scene.program.port)
        again = scene.client.charge(charge_body(after), key=after)
        assert (again.status, again.code) == (503, "unavailable"), "it is looked for at the gateway first"


@pytest.mark.postgresql
@pytest.mark.integration
def test_a_dump_that_is_brought_back_twice_gives_no_number_twice(
    tmp_path: Path, gateway: GatewayDouble, postgresql_server: "PostgresqlServer"
) -> None:
    """A late repeat of an acknowledgement names its number: it would let what the second loss took be charged again."""
    name = f"restore_{drawn_uuid().hex}"
    postgresql_server.create(name)
    url, numbers = postgresql_server.url(name), []
    with (
        serving(tmp_path, gateway, **{DATABASE: url}) as scene,
        stopped_after(scene, tmp_path / "backup"),
    ):
        for kept in ("first", "second"):
            again = [each.replace("payrelay_replaced", kept) for each in commands_of_page(url, tmp_path / "backup")]
            assert typed(scene.program, again) == 0
            numbers.append(json.loads(scene.program.run("recover", "status", "--json").stdout)["incarnation"])

    assert numbers == [2, 3]
