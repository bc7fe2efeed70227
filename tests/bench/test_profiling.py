"""The profile of a request names what there is: its steps, and the promises that it leaves out in turn."""

import ast
import runpy
import subprocess
import sys
from typing import Any, Final

import pytest
from tests.sources import ROOT

SOURCES: Final = ROOT / "src" / "payrelay"
LIBRARIES: Final = ("granian/", "asyncpg/", "uvloop/", "asyncio/")
STEPS: Final[dict[str, Any]] = runpy.run_path(str(ROOT / "bench" / "steps.py"))
READING: Final = """Stack (most recent call first):
  File "/elsewhere/payrelay/src/payrelay/clock.py", line 10 in now_ms
  File "/elsewhere/payrelay/src/payrelay/store/engine/sqlite.py", line 404 in rows_of
  File "/elsewhere/payrelay/src/payrelay/store/engine/sqlite.py", line 174 in read
  File "/elsewhere/payrelay/src/payrelay/store/access/owners.py", line 60 in of_order
  File "/elsewhere/payrelay/.venv/lib/python3.11/site-packages/granian/_futures.py", line 13 in future_watcher
Stack (most recent call first):
  File "/usr/lib/python3.11/concurrent/futures/thread.py", line 161 in submit
  File "/elsewhere/payrelay/src/payrelay/store/engine/sqlite.py", line 300 in _carry_out_all
Stack (most recent call first):
  File "/elsewhere/payrelay/.venv/lib/python3.11/site-packages/granian/_futures.py", line 13 in future_watcher
Stack (most recent call first):
  <no Python frame>
"""


def functions_of(path: str) -> set[str]:
    """Gives the names of all functions in a file of ours."""
    tree = ast.parse((SOURCES / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_file_that_names_a_step_is_there() -> None:
    """A file that was renamed would else count for another step, and nobody would see it."""
    named = [beginning for beginning, _ in STEPS["FILES"] if not beginning.startswith(LIBRARIES)]
    assert [each for each in named if not (SOURCES / each).exists()] == []


def test_each_function_that_names_a_step_is_there() -> None:
    """As with files: what is renamed must be renamed in the table too."""
    frames = [STEPS["STATEMENT"], *STEPS["FUNCTIONS"]]
    assert [frame for frame in frames if frame.function not in functions_of(frame.file)] == []


def test_each_unit_of_work_that_names_a_statement_is_there() -> None:
    """The rows of SQLite's work are named by the units whose statements run."""
    units = [each.removeprefix("unit ") for each in STEPS["STATEMENTS"]]
    paths = ("store/payments/journal.py", "store/access/owners.py", "store/events/feed.py")
    assert set(units) <= set[str]().union(*map(functions_of, paths))


def test_a_sample_counts_for_the_innermost_step_that_is_named() -> None:
    """A clock or a library works for its caller; a statement for whoever asks; and nothing is left out of the sum."""
    stacks = STEPS["stacks_in"](READING)

    assert STEPS["counted"](stacks) == {
        STEPS["SQLITE"] + "owners": 1,
        STEPS["UNITS"]: 1,
        STEPS["DOOR"]: 1,
        STEPS["OTHER"]: 1,
    }


@pytest.mark.story
def test_each_promise_can_be_left_out() -> None:
    """The measurement of what promises cost replaces functions by name: a renamed one must not go unnoticed."""
    left_out = "digests,history,seals,owners,second-look,events,memory,limits,metrics,log"
    command = [sys.executable, "bench/experiment.py", "--without", left_out, "version"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr
