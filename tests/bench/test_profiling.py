"""The profile of a request names what there is: its steps, and the promises that it leaves out in turn."""

import ast
import importlib
import re
import subprocess
import sys
from typing import Any, Final

import pytest
from tests.sources import ROOT

sys.path.append(str(ROOT / "bench"))  # behind all others, so that it hides nothing
costs: Final[Any] = importlib.import_module("costs")
meters: Final[Any] = importlib.import_module("meters")
steps: Final[Any] = importlib.import_module("steps")

SOURCES: Final = ROOT / "src" / "payrelay"
LIBRARIES: Final = ("granian/", "asyncpg/", "uvloop/", "asyncio/")
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
    named = [beginning for beginning, _ in steps.FILES if not beginning.startswith(LIBRARIES)]
    assert [each for each in named if not (SOURCES / each).exists()] == []


def test_each_function_that_names_a_step_is_there() -> None:
    """As with files: what is renamed must be renamed in the table too."""
    frames = [steps.STATEMENT, *steps.FUNCTIONS]
    assert [frame for frame in frames if frame.function not in functions_of(frame.file)] == []


def test_each_unit_of_work_that_names_a_statement_is_there() -> None:
    """The rows of SQLite's work are named by the units whose statements run."""
    units = [each.removeprefix("unit ") for each in steps.STATEMENTS]
    paths = ("store/payments/journal.py", "store/access/owners.py", "store/events/feed.py")
    assert set(units) <= set[str]().union(*map(functions_of, paths))


def test_a_sample_counts_for_the_innermost_step_that_is_named() -> None:
    """A clock or a library works for its caller; a statement for whoever asks; and nothing is left out of the sum."""
    assert steps.counted(steps.stacks_in(READING)) == {
        steps.SQLITE + "owners": 1,
        steps.UNITS: 1,
        steps.DOOR: 1,
        steps.OTHER: 1,
    }


def test_each_step_has_its_place_in_the_table() -> None:
    """A step without a place would end the benchmark after it has measured everything."""
    named = {step for _, step in steps.FILES} | set(steps.FUNCTIONS.values()) | {steps.OTHER}
    assert {each for each in named if not each.startswith(steps.SQLITE)} <= set(steps.ORDER)


def loads(*, history: bool = False) -> list[Any]:
    """Gives two rounds of a charge on SQLite and one without its seals, beside nginx's; another without its history."""
    charge, nginx = (costs.Column(costs.Kind.CHARGE, who) for who in (costs.SQLITE, costs.NGINX))

    def load(column: Any, cpu_us: dict[str, int], round_number: int = 1, without: str = costs.WHOLE) -> Any:  # noqa: ANN401
        cpu_ns = {name: each * 100_000 for name, each in cpu_us.items()}
        spent = {"requests": 100, "cpu_ns": cpu_ns, "foreign_share": 0.0, "problems": []}
        return costs.Measured(column=column, round_number=round_number, without=without, **spent)

    return [
        load(nginx, {"all": 20}),
        load(charge, {meters.LOOP: 300, meters.COMMITS: 60}),
        load(charge, {meters.LOOP: 330, meters.COMMITS: 70}, 2),
        load(charge, {meters.LOOP: 280, meters.COMMITS: 60}, 1, "seals"),
        load(charge, {meters.LOOP: 260, meters.COMMITS: 60}, 1, costs.ALL),
        *([load(charge, {meters.LOOP: 190, meters.COMMITS: 60}, 1, "history")] if history else []),
    ]


def test_the_rows_of_a_profile_add_up() -> None:
    """The threads make the whole, and the steps make the event loop's thread: nothing is lost between them."""
    column = costs.Column(costs.Kind.CHARGE, costs.SQLITE)
    seen = costs.Watched()
    seen.steps.update({steps.DOOR: 30, steps.SEALS: 10, steps.ITSELF: 23})
    lines = costs.profile_lines(costs.Costs(loads()), {column: seen}, [])

    rows = {
        name: float(found)
        for name, found in re.findall(r"\| \**([^|*]+)\** \| \**([\d.]+)\**(?: x)? \|", "\n".join(lines))
    }
    assert rows["all"] == rows[meters.LOOP] + rows[meters.COMMITS] == 380
    assert rows[steps.DOOR] + rows[steps.SEALS] + rows[steps.ITSELF] == rows[meters.LOOP] == 315
    assert rows["times nginx's"] == 19


def test_what_would_have_to_be_given_up_for_a_floor_is_named() -> None:
    """Who reads the page learns the price of a floor in promises, or that all of them together wouldn't buy it."""
    column = costs.Column(costs.Kind.CHARGE, costs.SQLITE)
    lines = costs.promise_lines(costs.Costs(loads()), [column], ["seals"])

    assert any("| 20 (20 to 20), 1.0 x |" in line for line in lines)
    without = "- charge, SQLite: 19.0 x, and the floor is 18 x. Without all of these it is 16.0 x."
    assert lines[-1] == f"{without} Then seals would be enough."
    lines = costs.promise_lines(costs.Costs(loads()), [column], [])
    assert lines[-1] == without


def test_promises_that_cost_less_together_are_not_said_to_buy_a_floor_singly() -> None:
    """Rounds differ by more than a promise costs, and the sum of them all by more than that."""
    column = costs.Column(costs.Kind.CHARGE, costs.SQLITE)
    lines = costs.promise_lines(costs.Costs(loads(history=True)), [column], ["seals", "history"])

    assert lines[-1] == (
        "- charge, SQLite: 19.0 x, and the floor is 18 x. Without all of these it is 16.0 x."
        " Added up, they cost 2.2 times what they cost together, so each counts for less. Then history would be enough."
    )


def test_system_calls_are_counted_over_all_threads() -> None:
    """What a thread asks of the kernel beside the event loop is asked for the request too."""
    head = " payrelay (6295), 35904 events, 34.8%\n\n   syscall            calls  errors  total\n"
    rows = ("   futex                567      1  1330.196     0.011\n", "   futex      3      0     0.106     0.034\n")
    text = "".join(head + row for row in rows)

    assert meters.calls_in(text) == {"futex": 570}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ffffffff813a2413 finish_task_switch.isra.0 ([kernel.kallsyms])", "kernel"),
        ("7f2afc779dc2 frame_dealloc (/usr/lib/libpython3.11.so.1.0)", "Python"),
        ("7f2af9066c2b [unknown] (/x/lib/python3.11/site-packages/granian/_granian.so)", "Granian"),
        ("7f2af9066c2b sqlite3VdbeExec (/usr/lib/libsqlite3.so.0.8.6)", "SQLite"),
        ("7f2af9066c2b [unknown] ([unknown])", "others"),
    ],
)
def test_a_program_is_known_by_its_file(line: str, kind: str) -> None:
    """The libraries of Python lie in folders that are named after Python, and are not Python."""
    assert meters.kind_of_program(line) == kind


@pytest.mark.story
def test_each_promise_can_be_left_out() -> None:
    """The measurement of what promises cost replaces functions by name: a renamed one must not go unnoticed."""
    left_out = "digests,history,seals,owners,second-look,events,memory,limits,metrics,log"
    command = [sys.executable, "bench/experiment.py", "--without", left_out, "version"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr
