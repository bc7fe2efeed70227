"""A part can be deleted: without its folder and its line the service starts, takes payments and answers commands."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.cli.commands import GATEWAY
from tests.sources import PARTS, ROOT

STORIES: Final = ("tests/scenarios/test_customers.py", "tests/scenarios/test_notifications.py")
"""A charge, and a payment that a notification tells of; both of a program of its own, over sockets."""
COMMANDS_OF: Final = {
    "backups": {"backup", "restore"},
    "console": {"operators"},
    "demo": {"demo"},
    "imports": {"import"},
    "reconciliation": {"reconcile"},
    "recovery": {"recover"},
}


def without(folder: Path, *names: str) -> dict[str, str]:
    """Copies the tree into a folder without these parts, and gives the environment that finds the copy."""
    for each in ("src", "tests", "pyproject.toml"):
        copied = shutil.copytree if (ROOT / each).is_dir() else shutil.copy
        copied(ROOT / each, folder / each)
    listed = folder / "src/payrelay/parts.py"
    for name in names:
        shutil.rmtree(folder / "src/payrelay" / name)
        listed.write_text(listed.read_text().replace(f'    "payrelay.{name}",\n', ""))
    return {**os.environ, "PYTHONPATH": f"{folder / 'src'}:{folder}"}


def ran(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a module of Python's in a folder, to its end."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.integration
@pytest.mark.parametrize("names", [*((name,) for name in PARTS), tuple(PARTS)], ids="+".join)
def test_the_service_stands_without_a_part(names: tuple[str, ...], tmp_path: Path) -> None:
    """Whoever doesn't need it deletes a folder and a line, and nothing else of the relay changes."""
    environment = without(tmp_path, *names)

    def told(*arguments: str) -> str:
        ended = ran(tmp_path, environment, *arguments)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    listed = set(re.findall(r"^│? *([a-z-]+)  ", told("payrelay", "--help"), re.MULTILINE))
    assert "serve" in listed
    assert listed & {command for name in PARTS for command in COMMANDS_OF[name]} == {
        command for name in PARTS if name not in names for command in COMMANDS_OF[name]
    }
    assert "passed" in told("pytest", "-q", "-p", "no:cacheprovider", "-m", "smoke", *STORIES)


@pytest.mark.integration
def test_a_console_that_is_asked_for_and_not_there_is_named(tmp_path: Path) -> None:
    """A page that isn't there would look like one that is broken."""
    environment = {**without(tmp_path, "console"), **GATEWAY, "PAYRELAY_CONSOLE__ENABLED": "true"}
    ended = ran(tmp_path, environment, "payrelay", "serve", "--port", "0")

    assert ended.returncode != 0
    assert "PAYRELAY_CONSOLE__ENABLED is set, and this installation has no payrelay.console" in ended.stderr


@pytest.mark.integration
def test_a_database_that_lost_commits_is_served_by_nobody_who_cannot_recover_from_it(tmp_path: Path) -> None:
    """A charge that is among them would be made a second time. The service says by name what is missing."""
    environment = {**without(tmp_path, "recovery"), **GATEWAY, "PAYRELAY_DATABASE_URL": f"sqlite:///{tmp_path}/shop.db"}
    whole = {**environment, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}

    assert ran(tmp_path, whole, "payrelay", "keys", "create", "--name", "shop").returncode == 0
    begun = ran(tmp_path, whole, "payrelay", "recover", "--lost-since", "2026-11-22T09:30Z", "--yes")
    assert begun.returncode == 0, begun.stderr
    refused = ran(tmp_path, environment, "payrelay", "serve", "--port", "0")

    assert refused.returncode != 0
    assert "payrelay.recovery" in refused.stderr
