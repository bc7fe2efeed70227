"""Settings and stores that are wrong: the start ends with one line that says which, and gives nothing away."""

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program, account, free_port, run
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
]


def settings(folder: Path, **changes: str) -> dict[str, str]:
    """Settings that are right, but for the changes."""
    right = account("gateway", "http://127.0.0.1:9", APP_SECRET=CANARY, MERCHANT_SECRET=CANARY)
    return right | {"PAYRELAY_DATABASE_URL": f"sqlite:///{folder}/payrelay.db"} | changes


def refused_start(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A start that must end by itself: one line on standard error, no traceback, no secret, not 0."""
    done = run(folder, environment, "serve", "--host", "127.0.0.1", "--port", str(free_port()))
    said = done.stderr.strip()
    assert done.returncode not in {0, -6, -9, -11}, said
    assert said, "nothing was said"
    assert "Traceback" not in done.stdout + said
    assert CANARY not in done.stdout + said
    assert len(said.splitlines()) == 1, said
    return done


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_setting_is_named(tmp_path: Path, name: str, value: str) -> None:
    """The line names the variable, so that an operator mends it without reading our source."""
    assert name in refused_start(tmp_path, settings(tmp_path, **{name: value})).stderr


@pytest.mark.parametrize("member", ["APP_ID", "APP_SECRET"])
def test_a_missing_setting_is_named(tmp_path: Path, member: str) -> None:
    """The same for one that isn't there."""
    name = f"PAYRELAY_GATEWAYS__GATEWAY__{member}"
    environment = settings(tmp_path)
    del environment[name]
    assert name in refused_start(tmp_path, environment).stderr


def test_a_mistyped_setting_is_named(tmp_path: Path) -> None:
    """A setting that doesn't exist would be silently without effect."""
    name = "PAYRELAY_GATEWAYS__GATEWAY__TIMEOUTS"
    assert name in refused_start(tmp_path, settings(tmp_path, **{name: "1"})).stderr


def test_a_wrong_secret_is_not_echoed(tmp_path: Path) -> None:
    """A secret in the wrong place is named and not shown."""
    said = refused_start(tmp_path, settings(tmp_path, PAYRELAY_ENCRYPTION_KEY=CANARY + "!"))
    assert "PAYRELAY_ENCRYPTION_KEY" in said.stderr


def test_a_secret_can_be_a_file_and_a_missing_file_is_named(tmp_path: Path) -> None:
    """`…_FILE` is read; a path that isn't there is said by its variable."""
    environment = settings(tmp_path)
    del environment["PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET"]
    environment["PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET_FILE"] = f"{tmp_path}/absent"
    assert "APP_SECRET_FILE" in refused_start(tmp_path, environment).stderr


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
    program = Program(tmp_path, {}).start()
    reply = program.client(program.new_key("shop")).charge(charge_body())
    program.stop()
    assert_refused(reply, 503, "gateway_unreachable")


@pytest.mark.parametrize(
    ("text", "name"),
    [("gateways = [", "payrelay.toml"), ('repeat_window = "a while"', "repeat_window"), ("colour = 1", "colour")],
)
def test_a_wrong_settings_file_is_one_line(tmp_path: Path, text: str, name: str) -> None:
    """A file that can't be read, a wrong value and a mistyped name are said as in the environment."""
    (tmp_path / "payrelay.toml").write_text(text)
    assert name in refused_start(tmp_path, settings(tmp_path)).stderr.lower()


def test_a_database_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    """A mistyped path must not become a second, empty store somewhere."""
    refused_start(tmp_path, settings(tmp_path, PAYRELAY_DATABASE_URL=f"sqlite:///{tmp_path}/absent/payrelay.db"))


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    """Somebody's file is not overwritten."""
    path = tmp_path / "payrelay.db"
    path.write_bytes(b"Dear diary, " * 1000)
    refused_start(tmp_path, settings(tmp_path))
    assert path.read_bytes() == b"Dear diary, " * 1000


def test_a_folder_in_place_of_the_database_is_refused(tmp_path: Path) -> None:
    """A mounted folder where a file was meant."""
    (tmp_path / "payrelay.db").mkdir()
    refused_start(tmp_path, settings(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_database_is_refused(tmp_path: Path) -> None:
    """A service that can't remember must not take money."""
    run(tmp_path, settings(tmp_path), "keys", "create", "--name", "shop")
    (tmp_path / "payrelay.db").chmod(0o400)
    refused_start(tmp_path, settings(tmp_path))


def test_a_newer_database_is_refused_and_kept(tmp_path: Path) -> None:
    """An older program doesn't touch what a newer one wrote."""
    assert run(tmp_path, settings(tmp_path), "keys", "create", "--name", "shop").returncode == 0
    mark_as_newer(tmp_path / "payrelay.db")
    before = (tmp_path / "payrelay.db").read_bytes()
    refused_start(tmp_path, settings(tmp_path))
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
    done = run(tmp_path, environment, "serve", "--host", "127.0.0.1", "--port", str(scene.program.port))
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert str(scene.program.port) in done.stderr
