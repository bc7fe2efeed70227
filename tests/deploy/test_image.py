"""The steps of the image without a container engine: installed by hashes, and run as a user who can hardly write."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deploy.programs import DEPLOY, program
from tests.scenarios.program import Program, account

NOBODY = "65534"
INSTALL_S = 300.0
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every user may enter, with the installation in it and a folder that another user owns."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a program as another user")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        done = subprocess.run(
            [DEPLOY / "image/install.sh", folder / "payrelay"],
            env={"PATH": f"{Path(sys.base_prefix) / 'bin'}:{os.environ['PATH']}", "HOME": name},
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_S,
        )
        assert done.returncode == 0, done.stderr
        yield folder


def test_it_serves_as_any_user_who_can_write_to_one_folder(place: Path) -> None:
    """A platform chooses the user and mounts all else read-only; a program that writes elsewhere ends at its start."""
    data = place / "data"
    data.mkdir()
    os.chown(data, int(NOBODY), int(NOBODY))
    as_other = [program("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    service = Program(
        data,
        account("gateway", "http://127.0.0.1:9") | {"HOME": str(data), "PYTHONDONTWRITEBYTECODE": "1"},
        command=[*as_other, place / "payrelay/bin/payrelay"],
    )

    service.start()

    assert service.stop() == 0
    assert {path.name for path in data.iterdir()} >= {"payrelay.db", "payrelay.db.key"}


def test_the_list_of_parts_names_what_is_installed(place: Path) -> None:
    """Whoever hears of a fault in a library must find out from the image alone whether it has it."""
    parts = json.loads((place / "payrelay/sbom.cdx.json").read_text())["components"]
    names = {part["name"].lower() for part in parts}

    assert {"payrelay", "payrelay-simulator", "payrelay-tools", "granian", "cryptography", "asyncpg"} <= names
    assert not {"pip", "hatchling", "pytest"} & names


def test_no_tool_is_installed_that_could_install_more(place: Path) -> None:
    """What a running service needs is less than what made it."""
    installed = {path.name for path in (place / "payrelay/bin").iterdir()}

    assert {"payrelay", "payrelay-simulator"} <= installed
    assert not {"pip", "hatchling", "cyclonedx-py"} & installed
