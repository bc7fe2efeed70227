"""A service that moves from its embedded database to PostgreSQL, with real processes."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import msgspec
import pytest
from tests.conftest import PostgresqlServer
from tests.draws import drawn_uuid
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import PAYRELAY, Program, surroundings
from tests.scenarios.stories import Scene, charge_body, fresh
from tests.scenarios.test_backup import DATABASE, SEALING_KEY, serving

from payrelay.backups.store.restored_sqlite import changed
from payrelay.core.seal_keys import parse_keys
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.sealing import Seal

pytestmark = [pytest.mark.postgresql, pytest.mark.integration]


@pytest.fixture
def url(postgresql_server: PostgresqlServer) -> str:
    """The address of a database that holds nothing."""
    name = f"copy_{drawn_uuid().hex}"
    postgresql_server.create(name)
    return postgresql_server.url(name)


@contextmanager
def charged(tmp_path: Path, gateway: GatewayDouble) -> Iterator[tuple[Scene, str]]:
    """A service that has made a charge; gives its order."""
    with serving(tmp_path, gateway) as scene:
        order = fresh("before")
        assert scene.client.charge(charge_body(order), key=order).status == 200
        yield scene, order


def typed(url: str) -> list[str]:
    """What an operator types."""
    return ["db", "copy", "--to", url, "--yes", "--json"]


def test_a_service_goes_on_from_the_copy_and_not_from_the_old_database(
    tmp_path: Path, gateway: GatewayDouble, url: str
) -> None:
    """Two services on two databases with the same operations would charge the orders of each other again."""
    with charged(tmp_path, gateway) as (scene, order):
        running = scene.program.run(*typed(url))
        scene.program.kill()
        ran = scene.program.run(*typed(url))
        again = scene.program.run(*typed(url))
        served = scene.program.run("serve", "--port", "0")
        moved = Program(tmp_path, scene.program.environment | {DATABASE: url})
        answer = repeated(moved, scene.client.key, order)
        moved.kill()

        assert (running.returncode, "running on this database" in running.stderr) == (2, True)
        assert (ran.returncode, json.loads(ran.stdout)["operations"]) == (0, 1)
        assert (again.returncode, "there already, whole" in again.stderr) == (2, True)
        assert (served.returncode, "which took its place" in served.stderr) == (2, True)
        assert answer == (200, "true")
        assert moved.run("audit", "verify").returncode == 0


def repeated(program: Program, key: str | None, order: str) -> tuple[int, str | None]:
    """Repeats the charge at a service on the copy; gives the status, and whether it was recognised."""
    answer = program.start().client(key).charge(charge_body(order), key=order)
    return answer.status, answer.header("Idempotent-Replayed")


def started(program: Program, arguments: list[str]) -> subprocess.Popen[bytes]:
    """Starts a command beside the test."""
    return subprocess.Popen(
        [PAYRELAY, *arguments],
        cwd=program.folder,
        env=surroundings(program.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


async def killed_in_the_middle(process: subprocess.Popen[bytes], url: str) -> object:
    """Kills a copy once it has the new database for itself; gives how many operations are there then."""
    watching = await asyncpg.connect(url)
    while process.poll() is None and not await watching.fetchval(
        "SELECT count(*) FROM pg_locks WHERE relation = to_regclass('meta') AND mode = 'AccessExclusiveLock'"
    ):
        pass
    process.kill()
    process.wait()
    stored: object = await watching.fetchval("SELECT count(*) FROM operations")
    await watching.close()
    return stored


def test_a_copy_that_is_killed_can_be_made_again(tmp_path: Path, gateway: GatewayDouble, url: str) -> None:
    """What was there of it is gone, and the old database is served from until a copy is whole."""
    with charged(tmp_path, gateway) as (scene, _):
        scene.program.kill()
        process = started(scene.program, typed(url))
        stored = asyncio.run(killed_in_the_middle(process, url))

        assert (process.returncode, stored) == (-9, 0)
        assert scene.program.run("audit", "verify").returncode == 0
        assert scene.program.run(*typed(url)).returncode == 0


async def note_in_source(path: Path) -> None:
    """Notes that another database took the place, as a copy does just before its end."""
    with changed(path) as (database, _check):
        await IdentityStore(database, Seal(parse_keys(SEALING_KEY))).change(
            lambda identity: msgspec.structs.replace(identity, copied_to="elsewhere")
        )


def test_a_copy_that_stopped_between_both_commits_is_made_again(
    tmp_path: Path, gateway: GatewayDouble, url: str
) -> None:
    """The old database says that the new one took its place, and the new one is empty: nothing is served, or lost."""
    with charged(tmp_path, gateway) as (scene, _):
        scene.program.kill()
        asyncio.run(note_in_source(tmp_path / "payrelay.db"))
        served = scene.program.run("serve", "--port", "0")
        copied = scene.program.run(*typed(url))

        assert (served.returncode, "copied to elsewhere" in served.stderr) == (2, True)
        assert copied.returncode == 0, copied.stderr
        moved = Program(tmp_path, scene.program.environment | {DATABASE: url}).start()
        moved.kill()
