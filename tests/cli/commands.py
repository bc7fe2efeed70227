"""Runs commands as they are typed: short ones in this process, serving ones as programs of their own."""

import contextlib
import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, NamedTuple

import pytest

from payrelay.cli.main import main
from payrelay_simulator import DEFAULT_MERCHANT

PROGRAM: Final = (sys.executable, "-m", "payrelay")
GATEWAY: Final = {
    "PAYRELAY_GATEWAYS__GATEWAY__APP_ID": DEFAULT_MERCHANT.app_id,
    "PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET": DEFAULT_MERCHANT.app_secret,
}


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]
_alone: Final = threading.Lock()
"""The environment, the folder and the streams are the whole process's."""


def run_inside(folder: Path, environment: dict[str, str], *arguments: str) -> Ran:
    """Runs a short command inside this process, as in a folder with that environment: a tenth of a process's time."""
    out, err, before = io.StringIO(), io.StringIO(), dict(os.environ)
    with _alone, contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        os.environ.update(environment)
        try:
            main(arguments)
        except SystemExit as ended:
            return Ran(ended.code if isinstance(ended.code, int) else 0, out.getvalue(), err.getvalue())
        finally:
            for name in environment.keys() - before.keys():
                del os.environ[name]
            os.environ.update(before)
    return Ran(0, out.getvalue(), err.getvalue())


@contextmanager
def program(folder: Path, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Starts a command in a folder, and ends it at last if the test did not."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAYRELAY_")}
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=folder,
        env={**environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()


def read_until(stream: IO[str] | None, pattern: str) -> str:
    """Reads lines until one fits; gives all of them."""
    assert stream is not None
    lines = ""
    for line in stream:
        lines += line
        if re.search(pattern, line):
            return lines
    pytest.fail(f"the program ended without {pattern!r} in {lines!r}")


def ended(folder: Path, *arguments: str, **variables: str) -> Ran:
    """Runs a command to its end, as a program of its own."""
    with program(folder, *arguments, **variables) as process:
        out, err = process.communicate(timeout=30)
        return Ran(process.returncode, out, err)
