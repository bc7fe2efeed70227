"""A backup that is made beside a running service, and what can be done with it afterwards."""

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tests.draws import drawn_uuid
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import ENCRYPTION_KEY_NAME, Program
from tests.scenarios.stories import Scene, charge_body, fresh, settings_for

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

SEALING_KEY: Final = base64.b64encode(bytes(range(32))).decode()
DATABASE: Final = "PAYRELAY_DATABASE_URL"


@contextmanager
def serving(folder: Path, gateway: GatewayDouble, **store: str) -> Iterator[Scene]:
    """A service with a key that encrypts, and a key of a shop; it is killed at the end."""
    program = Program(folder, settings_for(gateway) | {ENCRYPTION_KEY_NAME: SEALING_KEY} | store)
    key = program.new_key("shop")
    scene = Scene(program=program.start(), gateway=gateway, client=program.client(key))
    try:
        yield scene
    finally:
        program.kill()


def charged_and_backed_up(scene: Scene, folder: Path) -> tuple[str, str]:
    """The answers to one charge before the backup and to one after it, by their orders."""
    before, after = fresh("before"), fresh("after")
    assert scene.client.charge(charge_body(before), key=before).status == 200
    made = scene.program.run("backup", str(folder))
    assert made.returncode == 0, made.stderr
    assert scene.client.charge(charge_body(after), key=after).status == 200
    return before, after


def assert_holds(folder: Path, environment: dict[str, str], before: str, after: str) -> None:
    """The copy is whole by the audit, and has what was made before it and nothing later."""
    copy = Program(folder, environment)
    audit = copy.run("audit", "verify")
    assert audit.returncode == 0, audit.stdout + audit.stderr
    orders = [
        json.loads(copy.run("operations", "list", "--json", "--order", order).stdout) for order in (before, after)
    ]
    assert [len(found) for found in orders] == [1, 0]


def test_a_copy_of_an_embedded_database_has_what_was_there_when_it_began(
    tmp_path: Path, gateway: GatewayDouble
) -> None:
    """The service goes on meanwhile: nobody stops taking payments for a backup."""
    with serving(tmp_path, gateway) as scene:
        before, after = charged_and_backed_up(scene, tmp_path / "backup")

    url = f"sqlite:///{tmp_path}/backup/payrelay.db"
    assert_holds(tmp_path, scene.program.environment | {DATABASE: url}, before, after)


@pytest.mark.postgresql
@pytest.mark.integration
def test_a_dump_has_what_was_there_when_it_began(
    tmp_path: Path, gateway: GatewayDouble, postgresql_server: "PostgresqlServer"
) -> None:
    """It is a file of the server's own tools, so ``pg_restore`` alone brings it back."""
    names = [f"backup_{drawn_uuid().hex}" for _ in range(2)]
    for name in names:
        postgresql_server.create(name)
    with serving(tmp_path, gateway, **{DATABASE: postgresql_server.url(names[0])}) as scene:
        before, after = charged_and_backed_up(scene, tmp_path / "backup")

    dump = postgresql_server.folder / f"{names[1]}.dump"  # the server's user may not look into the test's folder
    shutil.copy(tmp_path / "backup" / "payrelay.dump", dump)
    dump.chmod(0o644)
    postgresql_server.run(
        "psql", "-h", str(postgresql_server.folder), "-U", "payrelay", "-c", "DROP SCHEMA public", names[1]
    )
    postgresql_server.run(
        "pg_restore", "-h", str(postgresql_server.folder), "-U", "payrelay", "-d", names[1], str(dump)
    )
    assert_holds(tmp_path, scene.program.environment | {DATABASE: postgresql_server.url(names[1])}, before, after)


@pytest.mark.postgresql
@pytest.mark.integration
def test_a_password_is_shown_to_nobody(
    tmp_path: Path, gateway: GatewayDouble, postgresql_server: "PostgresqlServer"
) -> None:
    """Every user of a machine can read what its programs were called with. A failure is told in its own words."""
    name = f"backup_{drawn_uuid().hex}"
    postgresql_server.create(name)
    url = postgresql_server.url(name).replace("payrelay@", "payrelay:hush%2Fhush@")
    with serving(tmp_path, gateway, **{DATABASE: url}) as scene:
        environment = scene.program.environment
    (tmp_path / "programs").mkdir()
    script = tmp_path / "programs" / "pg_dump"
    script.write_text(
        f'#!/bin/sh\ncd {tmp_path}\necho "$@" > arguments\necho "$PGPASSWORD" > password\necho no luck >&2\nexit 1\n'
    )
    script.chmod(0o700)
    ran = Program(tmp_path, environment | {"PATH": f"{tmp_path}/programs:/usr/bin:/bin"}).run(
        "backup", str(tmp_path / "backup")
    )

    assert (ran.returncode, ran.stderr) == (2, "payrelay: pg_dump failed: no luck\n")
    assert "hush" not in (tmp_path / "arguments").read_text()
    assert (tmp_path / "password").read_text() == "hush/hush\n"
    assert not (tmp_path / "backup").exists()


@pytest.mark.postgresql
@pytest.mark.integration
def test_missing_programs_of_the_server_are_named(
    tmp_path: Path, gateway: GatewayDouble, postgresql_server: "PostgresqlServer"
) -> None:
    """They are in another package than the driver, and an operator should not have to guess which."""
    name = f"backup_{drawn_uuid().hex}"
    postgresql_server.create(name)
    with serving(tmp_path, gateway, **{DATABASE: postgresql_server.url(name)}) as scene:
        environment = scene.program.environment
    ran = Program(tmp_path, environment | {"PATH": str(tmp_path)}).run("backup", str(tmp_path / "backup"))

    assert (ran.returncode, "pg_dump is not installed" in ran.stderr, "postgresql-client" in ran.stderr) == (
        2,
        True,
        True,
    )
