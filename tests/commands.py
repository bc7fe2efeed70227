"""Runs commands as they are typed: short ones in this process, serving ones as programs of their own."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, NamedTuple

import pytest

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
