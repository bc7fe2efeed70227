"""Chance that can be had again: what tests draw comes from the commit, or from a seed that is named.

Two runs of one commit draw the same; another commit draws something else, so that in time much is seen.
``TEST_SEED`` names another seed, and every run prints its own at the head. No test asks for chance elsewhere.
"""

import hashlib
import os
import subprocess
import threading
import uuid
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

SEED_NAME: Final = "TEST_SEED"
DEPTH_NAME: Final = "TEST_DEPTH"

EXAMPLES_MIN: Final = 5
"""With fewer a law says next to nothing."""

_lock: Final = threading.Lock()
_drawn: Final[Counter[str]] = Counter()


@cache
def seed() -> str:
    """The seed of this run: the one that is named, or the commit; outside a repository it is always the same."""
    named = os.environ.get(SEED_NAME)
    if named:
        return named
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "0"
    return found.stdout.strip() or "0"


def depth() -> float:
    """How many times the examples of a push: at the desk a part of them, in a campaign many times as many."""
    return float(os.environ.get(DEPTH_NAME, "1"))


def examples(count: int) -> int:
    """So many examples of a law at every push, fewer at the desk and more in a campaign."""
    return max(EXAMPLES_MIN, round(count * depth()))


def drawing(what: str) -> Random:
    """Draws for one purpose of the test that runs; the same test draws the same under one seed."""
    return Random(f"{seed()}/{_test()}/{what}")  # noqa: S311, it has to be the same again


def drawn_uuid() -> uuid.UUID:
    """A number that nothing else in this run has; tests that share a service or a database don't meet in it."""
    test = _test()
    with _lock:
        _drawn[test] += 1
        number = _drawn[test]
    return uuid.UUID(bytes=hashlib.sha256(f"{seed()}/{test}/{number}".encode()).digest()[:16], version=4)


def _test() -> str:
    """The test that runs, without its phase; outside pytest one program is one test."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
