"""The programs that check or run the files below ``deploy/``; without one, a test is skipped by its name."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.needed import lacking

DEPLOY: Final = Path(__file__).parent.parent.parent / "deploy"
RUN_S: Final = 30.0
_OPTIONAL: Final = {"helm"}
"""No package of Debian brings them: CI doesn't have them either."""


def program(name: str) -> str:
    """Gives the path of a program; without it the test is skipped, and fails in CI where CI installs it."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if path is None and name in _OPTIONAL:
        pytest.skip(f"{name} is not installed")
    return path or lacking(f"{name} is not installed")


def said_by(*arguments: str | Path) -> str:
    """Runs a program that must end well; gives what it wrote."""
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=RUN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
