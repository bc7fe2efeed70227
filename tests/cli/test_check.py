from pathlib import Path

import pytest
from tests.cli.commands import GATEWAY, Run

from payrelay_simulator import DEFAULT_MERCHANT

pytestmark = pytest.mark.usefixtures("upgraded_database")


def test_check_names_everything_that_is_wrong(run: Run) -> None:
    """It goes on behind the first fault; nothing listens at that address."""
    ran = run("check", **GATEWAY, PAYRELAY_GATEWAYS__GATEWAY__BASE_URL="http://127.0.0.1:1")

    assert ran.code == 1
    assert "✓ settings: complete; gateway accounts: gateway (sandbox)" in ran.out
    assert "✓ database: sqlite:///payrelay.db can be used" in ran.out
    assert "✗ gateway: " in ran.out
    assert DEFAULT_MERCHANT.app_secret not in ran.out


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"PAYRELAY_REPEAT_WINDOW": "x"}, "✗ settings: PAYRELAY_REPEAT_WINDOW must be"),
        ({}, "✗ settings: no gateway is configured"),
        ({"PAYRELAY_DATABASE_URL": "sqlite:///none/x.db"}, "✗ database: none/x.db"),
        ({"PAYRELAY_DATABASE_URL": "postgresql://127.0.0.1:1/x"}, "✗ database: "),
    ],
)
def test_check_says_what_is_wrong(run: Run, variables: dict[str, str], line: str) -> None:
    """In the words in which the start would end."""
    ran = run("check", **variables)

    assert ran.code == 1
    assert line in ran.out


def test_check_tells_which_accounts_are_paused(run: Run) -> None:
    """Whoever wonders why nothing is charged looks here first."""
    run("pause", "gateway", "--reason", "wrong prices", "--by", "ann", **GATEWAY)
    out = run("check", **GATEWAY, PAYRELAY_GATEWAYS__GATEWAY__BASE_URL="http://127.0.0.1:1").out

    assert "✓ gateway: paused since 20" in out
    assert "by ann, because “wrong prices”" in out


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("sh -c hush-hush", "✓ alert command: sh can be run"),
        ("/none/such hush-hush", "✗ alert command: /none/such is not a program that can be run"),
    ],
)
def test_check_looks_for_the_alert_command(run: Run, command: str, line: str) -> None:
    """Else the first alert would be the one that shows that it is mistyped."""
    out = run("check", PAYRELAY_ALERT_COMMAND=command).out

    assert line in out
    assert "hush-hush" not in out


@pytest.mark.parametrize("name", ["payrelay.db", "payrelay.db.key"])
def test_check_warns_of_files_that_others_can_read(run: Run, tmp_path: Path, name: str) -> None:
    """A backup that was put back with the usual rights shows every user of the machine what was sealed."""
    assert "! files" not in run("check").out
    (tmp_path / name).chmod(0o644)
    out = run("check").out

    assert f"! files: {name} may be read or changed by other users of this machine (mode 0644): chmod 600" in out
    assert "✓ database" in out


def test_check_notices_a_lost_encryption_key(run: Run, tmp_path: Path) -> None:
    """Before the server does not start."""
    assert "✓ encryption key: " in run("check").out
    (tmp_path / "payrelay.db.key").unlink()

    assert "✗ encryption key: payrelay.db.key" in run("check").out
