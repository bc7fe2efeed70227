"""Settings and stores that are wrong: the start ends with one line that says which, and gives nothing away.

Each start is tried inside this process, as the command's own `main`; the first one is said of a real process too.
"""

import os
import socket
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.scenarios import program
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program, account, free_port
from tests.scenarios.stories import Scene, assert_refused, charge_body

CANARY = "CANARY-d34db33f"
WRONG = [
    ("PAYRELAY_GATEWAYS__GATEWAY__TIMEOUT_S", "soon"),
    ("PAYRELAY_GATEWAYS__GATEWAY__TIMEOUT_S", "0"),
    ("PAYRELAY_GATEWAYS__GATEWAY__TIMEOUT_S", "-1"),
    ("PAYRELAY_GATEWAYS__GATEWAY__TIMEOUT_S", "nan"),
    ("PAYRELAY_GATEWAYS__GATEWAY__QUEUE_S", "long"),
    ("PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT", "many"),
    ("PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT", "0/10s"),
    ("PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT", "20/0s"),
    ("PAYRELAY_GATEWAYS__GATEWAY__ENVIRONMENT", "production"),
    ("PAYRELAY_GATEWAYS__GATEWAY__KIND", "paypal"),
    ("PAYRELAY_GATEWAYS__GATEWAY__TIMEZONE", "Asia/Atlantis"),
    ("PAYRELAY_GATEWAYS__GATEWAY__BASE_URL", "not a url"),
    ("PAYRELAY_GATEWAYS__GATEWAY__BASE_URL", "ftp://gateway.example"),
    ("PAYRELAY_REPEAT_WINDOW", "a while"),
    ("PAYRELAY_REPEAT_WINDOW", "-1h"),
    ("PAYRELAY_DATABASE_URL", "mysql://somewhere/db"),
    ("PAYRELAY_DATABASE_URL", "nonsense"),
    ("PAYRELAY_ENCRYPTION_KEY", "short"),
    ("PAYRELAY_PUBLIC_URL", "not a url"),
    ("PAYRELAY_TRUSTED_PROXIES", "everyone"),
    ("PAYRELAY_METRICS_ADDRESS", "9464"),
    ("PAYRELAY_METRICS_ADDRESS", "http://127.0.0.1:9464"),
    ("PAYRELAY_ADDRESS_CONNECTIONS_MAX", "0"),
    ("PAYRELAY_PRINCIPAL_CONNECTIONS_MAX", "many"),
]


def settings(folder: Path, **changes: str) -> dict[str, str]:
    """Settings that are right, but for the changes."""
    right = account("gateway", "http://127.0.0.1:9", APP_SECRET=CANARY, MERCHANT_SECRET=CANARY)
    return right | {"PAYRELAY_DATABASE_URL": f"sqlite:///{folder}/payrelay.db"} | changes


@dataclass(frozen=True)
class Start:
    """A start in the test's own folder, from which the program must end by itself."""

    run: Run

    def refused(self, environment: dict[str, str]) -> str:
        """What is said on standard error: one line, no traceback, no secret; the exit code is not 0.

        The port is taken meanwhile: a start that is not refused for its settings ends all the same, in other words.
        """
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = self.run("serve", "--host", "127.0.0.1", "--port", str(port), **environment)
        assert done.code != 0
        assert str(port) not in done.err
        return one_line(done.out, done.err)


@pytest.fixture
def start(run: Run) -> Start:
    """Gives the start in the test's folder."""
    return Start(run)


def refused_start(folder: Path, environment: dict[str, str]) -> None:
    """The same of a process of its own."""
    done = program.run(folder, environment, "serve", "--host", "127.0.0.1", "--port", str(free_port()))
    assert done.returncode not in {0, -6, -9, -11}, done.stderr
    one_line(done.stdout, done.stderr)


def one_line(out: str, err: str) -> str:
    """What was said, if that is one line without a traceback and without a secret."""
    said = err.strip()
    assert said, "nothing was said"
    assert "Traceback" not in out + said
    assert CANARY not in out + said
    assert len(said.splitlines()) == 1, said
    return said


@pytest.mark.smoke
def test_a_process_with_a_wrong_setting_ends(tmp_path: Path) -> None:
    """What is tried below inside this process is so of a real one: one line, and an exit code of its own."""
    refused_start(tmp_path, settings(tmp_path, PAYRELAY_REPEAT_WINDOW="a while"))


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_setting_is_named(start: Start, tmp_path: Path, name: str, value: str) -> None:
    """The line names the variable, so that an operator mends it without reading our source."""
    assert name in start.refused(settings(tmp_path, **{name: value}))


@pytest.mark.parametrize("member", ["APP_ID", "APP_SECRET"])
def test_a_missing_setting_is_named(start: Start, tmp_path: Path, member: str) -> None:
    """The same for one that isn't there."""
    name = f"PAYRELAY_GATEWAYS__GATEWAY__{member}"
    environment = settings(tmp_path)
    del environment[name]
    assert name in start.refused(environment)


def test_a_mistyped_setting_is_named(start: Start, tmp_path: Path) -> None:
    """A setting that doesn't exist would be silently without effect."""
    name = "PAYRELAY_GATEWAYS__GATEWAY__TIMEOUTS"
    assert name in start.refused(settings(tmp_path, **{name: "1"}))


def test_a_wrong_secret_is_not_echoed(start: Start, tmp_path: Path) -> None:
    """A secret in the wrong place is named and not shown."""
    said = start.refused(settings(tmp_path, PAYRELAY_ENCRYPTION_KEY=CANARY + "!"))
    assert "PAYRELAY_ENCRYPTION_KEY" in said


def test_a_secret_can_be_a_file_and_a_missing_file_is_named(start: Start, tmp_path: Path) -> None:
    """`…_FILE` is read; a path that isn't there is said by its variable."""
    environment = settings(tmp_path)
    del environment["PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET"]
    environment["PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET_FILE"] = f"{tmp_path}/absent"
    assert "APP_SECRET_FILE" in start.refused(environment)


def test_settings_come_from_a_file_too(tmp_path: Path) -> None:
    """`payrelay.toml` has the same names, nested, and the environment wins; a secret may be a file of its own."""
    (tmp_path / "secret").write_text("app-secret\n")
    (tmp_path / "payrelay.toml").write_text(
        f"""
        database_url = "mysql://loses/against-the-environment"
        [gateways.gateway]
        base_url = "http://127.0.0.1:9"
        app_id = "app"
        app_secret_file = "{tmp_path}/secret"
        """
    )
    service = Program(tmp_path, {}).start()
    reply = service.client(service.new_key("shop")).charge(charge_body())
    service.stop()
    assert_refused(reply, 503, "gateway_unreachable")


@pytest.mark.parametrize(
    ("text", "name"),
    [("gateways = [", "payrelay.toml"), ('repeat_window = "a while"', "repeat_window"), ("colour = 1", "colour")],
)
def test_a_wrong_settings_file_is_one_line(start: Start, tmp_path: Path, text: str, name: str) -> None:
    """A file that can't be read, a wrong value and a mistyped name are said as in the environment."""
    (tmp_path / "payrelay.toml").write_text(text)
    assert name in start.refused(settings(tmp_path)).lower()


def test_a_database_in_a_missing_folder_is_refused(start: Start, tmp_path: Path) -> None:
    """A mistyped path must not become a second, empty store somewhere."""
    start.refused(settings(tmp_path, PAYRELAY_DATABASE_URL=f"sqlite:///{tmp_path}/absent/payrelay.db"))


def test_a_file_that_is_no_database_is_refused_and_kept(start: Start, tmp_path: Path) -> None:
    """Somebody's file is not overwritten."""
    path = tmp_path / "payrelay.db"
    path.write_bytes(b"Dear diary, " * 1000)
    start.refused(settings(tmp_path))
    assert path.read_bytes() == b"Dear diary, " * 1000


def test_a_folder_in_place_of_the_database_is_refused(start: Start, tmp_path: Path) -> None:
    """A mounted folder where a file was meant."""
    (tmp_path / "payrelay.db").mkdir()
    start.refused(settings(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_database_is_refused(start: Start, tmp_path: Path) -> None:
    """A service that can't remember must not take money."""
    start.run("keys", "create", "--name", "shop", **settings(tmp_path))
    (tmp_path / "payrelay.db").chmod(0o400)
    start.refused(settings(tmp_path))


def test_a_newer_database_is_refused_and_kept(start: Start, tmp_path: Path) -> None:
    """An older program doesn't touch what a newer one wrote."""
    assert start.run("keys", "create", "--name", "shop", **settings(tmp_path)).code == 0
    mark_as_newer(tmp_path / "payrelay.db")
    before = (tmp_path / "payrelay.db").read_bytes()
    start.refused(settings(tmp_path))
    assert (tmp_path / "payrelay.db").read_bytes() == before


def mark_as_newer(path: Path) -> None:
    """Adds a version of the far future to the store's own record of versions."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "INSERT INTO schema_version SELECT 9999, 'future', checksum, applied_at_ms FROM schema_version LIMIT 1"
        )
    connection.close()


def test_an_unknown_encryption_key_is_refused(tmp_path: Path) -> None:
    """A store that was sealed with another key is said at the start, not found at the first replay."""
    Program(tmp_path, settings(tmp_path)).start().stop()
    (made,) = tmp_path.glob("*.key")
    made.unlink()
    refused_start(tmp_path, settings(tmp_path))


def test_a_store_that_is_owned_is_refused_to_a_second_service(scene: Scene) -> None:
    """Two services on one embedded store would both send: the second says clearly that it is taken."""
    refused_start(scene.program.folder, scene.program.environment)
    assert scene.client.get("operations").status == 200


def test_commands_work_beside_a_running_service(scene: Scene) -> None:
    """A key can be made while the service owns the store, and holds at once."""
    assert scene.another().get("operations").status == 200


def test_a_taken_port_is_one_line(scene: Scene, tmp_path: Path, gateway: GatewayDouble) -> None:
    """The commonest failure of a start has a plain sentence, too."""
    environment = settings(tmp_path) | account("gateway", gateway.base_url)
    done = program.run(tmp_path, environment, "serve", "--host", "127.0.0.1", "--port", str(scene.program.port))
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert str(scene.program.port) in done.stderr
