"""What the gates rest on: every test is run by a command, no unit starts a process, and nothing is left to chance."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.draws import EXAMPLES_MIN, depth, drawing, drawn_uuid, examples
from tests.no_process import no_process
from tests.sources import ROOT, TESTS, Source

OWN_DRAWS: Final = "tests/draws.py"
CHANCE: Final = {"uuid1", "uuid4", "urandom", "SystemRandom", "getrandom"}
"""Whoever says one of these draws what nobody can draw again."""
CHANCY: Final = {"random", "secrets"}
"""Modules whose functions draw from a seed that nobody knows; ``from random import Random`` takes one."""
ADDED: Final = {"hypothesis"}
"""Marks that a plugin sets."""


def chance_in(source: Source) -> Iterator[str]:
    """Finds where a file draws without a seed."""
    for node in source.nodes:
        match node:
            case ast.Import(names=names):
                found = CHANCY & {name.name for name in names}
            case ast.ImportFrom(module="random" | "secrets", names=names):
                found = {name.name for name in names} - {"Random"}
            case ast.Attribute(attr=name) | ast.Name(id=name):
                found = CHANCE & {name}
            case ast.Call(func=ast.Name(id="Random"), args=[]):
                found = {"Random()"}
            case _:
                continue
        yield from (f"{source.path.name}:{node.lineno}: {name}: draw from tests/draws.py" for name in found)


def test_nothing_is_left_to_chance() -> None:
    """A test that fails once in a hundred runs is run once more, and its fault is shipped."""
    found = [fault for source in TESTS if source.name != OWN_DRAWS for fault in chance_in(source)]

    assert found == []


def test_a_draw_without_a_seed_is_found(tmp_path: Path) -> None:
    """The rule above can fail."""
    bad = tmp_path / "bad.py"
    bad.write_text("import random\nfrom secrets import token_hex\nuuid.uuid4()\nRandom()\nRandom(1)\n")

    assert sorted(fault.split(":")[1] for fault in chance_in(Source(bad))) == ["1", "2", "3", "4"]


def test_a_draw_is_the_same_again() -> None:
    """Under one seed and in one test; what must be unique differs all the same."""
    assert [drawing("x").random() for _ in range(2)] == [drawing("x").random()] * 2
    assert drawing("x").random() != drawing("y").random()
    assert drawn_uuid() != drawn_uuid()


def test_a_law_is_tried_with_fewer_examples_at_the_desk_alone() -> None:
    """A push tries what the law asks for; at the desk it is a part, but never so few that nothing is said."""
    assert examples(1) == EXAMPLES_MIN
    assert examples(1000) == 1000 * depth()
    assert re.findall(r"TEST_DEPTH=(\S+) .*", (ROOT / "Makefile").read_text()) == ["0.2", "$(DEPTH)", "$(DEPTH)"]


def test_every_gate_is_run_by_a_command(pytestconfig: pytest.Config) -> None:
    """A mistyped mark behind ``-m`` chooses nothing, and nobody would miss those tests."""
    marks = {str(line).partition(":")[0] for line in pytestconfig.getini("markers")}
    chosen = re.findall(r"\s-m (?:\"([^\"]+)\"|(unit|smoke|story|integration)\b)", (ROOT / "Makefile").read_text())
    used = {word for quoted, bare in chosen for word in re.findall(r"\w+", quoted or bare)} - {"and", "or", "not"}

    assert used - marks - ADDED == set()
    assert {"unit", "smoke", "story", "integration"} <= used


@pytest.mark.process
def test_no_unit_starts_a_process() -> None:
    """Each takes as long as hundreds of units, and comes back as a test that fails on a busy machine."""
    with pytest.raises(AssertionError, match="a unit starts a process"), no_process():
        subprocess.run([sys.executable, "-c", ""], check=True)
