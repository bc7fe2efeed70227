"""An older copy of the database is put back: the service sees it by its marks, and nobody is charged a second time."""

import asyncio
import base64
import http.client
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tests.draws import drawn_uuid
from tests.identities import begin_where_it_is
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import ENCRYPTION_KEY_NAME, Program
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, settings_for, state_of
from tests.scenarios.waiting import until

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

SEALING_KEY: Final = base64.b64encode(bytes(range(32))).decode()
DATABASE_FILES: Final = ("payrelay.db", "payrelay.db-wal", "payrelay.db-shm")


@pytest.fixture
def on_postgresql(
    tmp_path: Path, postgresql_server: "PostgresqlServer", gateway: GatewayDouble
) -> Iterator[tuple[Scene, Callable[[str, str], None]]]:
    """A service on a database of its own with a folder for marks; and what makes one database a copy of another."""
    name = f"older_{drawn_uuid().hex}"

    def run(*arguments: str) -> None:
        postgresql_server.run(*arguments[:1], "-h", str(postgresql_server.folder), "-U", "payrelay", *arguments[1:])

    def copy(source: str, target: str) -> None:
        run("dropdb", "--if-exists", "--force", name + target)
        run("createdb", "-T", name + source, name + target)
        asyncio.run(begin_where_it_is(postgresql_server.url(name + target), SEALING_KEY))

    run("createdb", name)
    store = {"PAYRELAY_DATABASE_URL": postgresql_server.url(name), ENCRYPTION_KEY_NAME: SEALING_KEY}
    program = Program(tmp_path, settings_for(gateway) | store | {"PAYRELAY_MARK_PATH": str(tmp_path / "marks")})
    key = program.new_key("shop")
    yield Scene(program=program.start(), gateway=gateway, client=program.client(key)), copy
    program.kill()


def _again(scene: Scene) -> Scene:
    scene.program.start()
    return replace(scene, client=replace(scene.client, port=scene.program.port))


def _marks(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.glob("*.mark")]


def _charge(scene: Scene, marks: Path) -> tuple[str, bytes]:
    """Charges an order, and returns its key and its answer once a mark names it."""
    key = fresh("key")
    reply = scene.client.charge(charge_body(key), key=key)
    assert reply.status == 200, str(reply)
    operation = str(reply.header("payrelay-operation"))
    until(lambda: any(operation in text for text in _marks(marks)), "a mark names the charge")
    return key, reply.body


def _ready(scene: Scene) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", scene.program.port, timeout=5)
    connection.request("GET", "/health/ready")
    body = connection.getresponse().read()
    connection.close()
    return body


def _assert_nothing_takes_effect(scene: Scene, known: tuple[str, bytes], lost: tuple[str, bytes]) -> None:
    """What is known is told as before; what was lost, and what is new, is refused and not sent."""
    client = scene.client
    assert client.charge(charge_body(known[0]), key=known[0]).body == known[1]
    assert state_of(client, known[0]) == "succeeded"
    for key in (lost[0], fresh("key")):
        assert_refused(client.charge(charge_body(key), key=key), 503, "unavailable")
    assert scene.gateway.count(payhere.CHARGE, lost[0]) == 1
    assert b'"effects":"refused"' in _ready(scene)
    assert "database_behind" in {line["event"] for line in scene.program.log_lines()}
    checked = scene.program.run("check")
    assert checked.returncode != 0
    assert "the database is behind: it lacks what a process was told of" in checked.stdout.replace("\n", " ")


def test_a_service_that_is_killed_finds_everything_again(own: Scene) -> None:
    """An honest crash must never look like lost commits: the service would refuse everybody until a person came."""
    marks = own.program.folder / "payrelay.db.marks"
    known = _charge(own, marks)
    for _ in range(3):
        own.program.kill()
        own = _again(own)
        assert own.client.charge(charge_body(known[0]), key=known[0]).body == known[1]
        assert own.client.charge(charge_body(), key=fresh("key")).status == 200

    assert "database_behind" not in own.program.log()
    assert own.program.run("check").stdout.count("all that the marks in") == 1
    until(lambda: len(_marks(marks)) == 1, "the marks of earlier processes are removed")


def test_an_older_file_is_noticed_and_nothing_takes_effect(own: Scene) -> None:
    """The repeat of a charge that the older database doesn't know would otherwise be charged anew."""
    folder = own.program.folder
    marks = folder / "payrelay.db.marks"
    known = _charge(own, marks)
    own.program.stop()
    shutil.copy(folder / DATABASE_FILES[0], folder / "older.db")
    own = _again(own)
    lost = _charge(own, marks)
    own.program.kill()
    for name in DATABASE_FILES:
        (folder / name).unlink(missing_ok=True)
    shutil.copy(folder / "older.db", folder / DATABASE_FILES[0])

    _assert_nothing_takes_effect(_again(own), known, lost)
    own.program.kill()
    shutil.rmtree(marks)  # what one process has found binds all of them, and those that start later
    _assert_nothing_takes_effect(_again(own), known, lost)


@pytest.mark.postgresql
@pytest.mark.integration
def test_an_older_postgresql_database_is_noticed_too(
    on_postgresql: tuple[Scene, Callable[[str, str], None]],
) -> None:
    """A standby that was promoted lacks what came after it just as a file does."""
    own, copy = on_postgresql
    marks = own.program.folder / "marks"
    known = _charge(own, marks)
    own.program.stop()
    copy("", "_old")
    own = _again(own)
    lost = _charge(own, marks)
    own.program.kill()
    copy("_old", "")

    _assert_nothing_takes_effect(_again(own), known, lost)
