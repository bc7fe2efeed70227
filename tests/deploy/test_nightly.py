"""The script of the nightly units: backups are kept in number, and node_exporter is told how each unit ended."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.deploy.programs import DEPLOY, RUN_S

NIGHTLY: Final = DEPLOY / "systemd/payrelay-nightly"


def ran(*arguments: str | Path, **variables: str | Path) -> int:
    """Runs the script; gives its exit code."""
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    return subprocess.run([NIGHTLY, *arguments], env=environment, check=False, timeout=RUN_S).returncode


def told(folder: Path, name: str) -> dict[str, int]:
    """Gives the metrics in the file for node_exporter."""
    lines = (folder / f"payrelay-{name}.prom").read_text().splitlines()
    return {line.split()[0]: int(line.split()[1]) for line in lines if not line.startswith("#")}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Something that makes a folder as `payrelay backup` does, and fails where the folder's parent says so."""
    path = tmp_path / "program"
    path.write_text('#!/bin/sh\n[ ! -e "$(dirname "$2")/fails" ] && mkdir "$2"\n')
    path.chmod(0o755)
    return path


def earlier(folder: Path, days: int) -> list[str]:
    """Makes backups of so many days; gives their names."""
    names = [f"2026-01-{day:02}T020000Z" for day in range(1, days + 1)]
    for name in names:
        (folder / name).mkdir(parents=True)
    return names


def test_the_newest_backups_are_kept(tmp_path: Path, program: Path) -> None:
    """A disk that fills up with old backups ends the new ones; what else lies there is nobody's to remove."""
    folder = tmp_path / "backups"
    names = earlier(folder, 5)
    (folder / "notes").mkdir()

    assert ran("backup", folder, "3", PAYRELAY_PROGRAM=program) == 0

    left = {path.name for path in folder.iterdir()}
    assert left >= {*names[-2:], "notes"}
    assert not left & set(names[:-2])
    assert len(left) == 4


def test_a_backup_that_fails_removes_none(tmp_path: Path, program: Path) -> None:
    """Else a fortnight of failures would remove every backup that there is."""
    folder = tmp_path / "backups"
    names = earlier(folder, 5)
    (folder / "fails").touch()

    assert ran("backup", folder, "3", PAYRELAY_PROGRAM=program) != 0

    assert {path.name for path in folder.iterdir()} == {*names, "fails"}


def test_a_failure_keeps_the_time_of_the_last_success(tmp_path: Path) -> None:
    """Whoever is told of a failure wants to know how old the newest backup is."""
    assert ran("noted", "backup", TEXTFILE_FOLDER=tmp_path, SERVICE_RESULT="success") == 0
    first = told(tmp_path, "backup")
    assert ran("noted", "backup", TEXTFILE_FOLDER=tmp_path, SERVICE_RESULT="timeout") == 0
    second = told(tmp_path, "backup")

    assert first["payrelay_backup_failed"] == 0
    assert first["payrelay_backup_success_time_seconds"] > 1_700_000_000
    assert second == first | {"payrelay_backup_failed": 1}


def test_without_node_exporter_the_unit_ends_as_its_work_did(tmp_path: Path) -> None:
    """A machine that is watched otherwise has no such folder."""
    assert ran("noted", "audit", TEXTFILE_FOLDER=tmp_path / "none", SERVICE_RESULT="success") == 0


def test_the_rules_ask_for_what_the_script_writes(tmp_path: Path) -> None:
    """A rule over a metric that nobody writes stays silent for ever."""
    rules = (DEPLOY / "prometheus/rules.yml").read_text()
    asked = set(re.findall(r"\bpayrelay_(?:backup|audit)_\w+", rules))

    written: set[str] = set()
    for name in ("backup", "audit"):
        assert ran("noted", name, TEXTFILE_FOLDER=tmp_path, SERVICE_RESULT="exit-code") == 0
        written |= set(told(tmp_path, name))
    assert asked == written
