"""The page that says what attackers can and can't do names, for each line, tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "security.md"
ATTACKERS: Final = (
    "With a phone",
    "With a key",
    "With another principal's key",
    "On the network",
    "With an operator's session",
    "With the database, to read",
    "With the database, to write",
    "With the disk",
    "With a backup",
    "With the logs",
)
LINES: Final = [line for line in PAGE.read_text().splitlines() if re.match(r"\| (can|can't) \|", line)]
_TEST: Final = re.compile(r"\[`(test_\w+)`\]\(\.\./([\w/.]+)\)")


@cache
def names_in(path: Path) -> frozenset[str]:
    """Gives the names of a module's tests."""
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split("|")[2].strip()[:60])
def test_each_line_names_tests_that_exist(line: str) -> None:
    """A promise about attackers that nothing tries is only a hope; a test that was renamed leaves a promise bare."""
    named = _TEST.findall(line)

    assert named != []
    assert [name for name, path in named if name not in names_in(ROOT / path)] == []


def test_each_attacker_has_a_table() -> None:
    """Whoever asks about one of them finds both what it can and what it can't do, in the order of the page."""
    sections = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)

    assert tuple(heading for heading, _ in sections) == ATTACKERS
    assert all("| can't |" in text for _, text in sections)


def test_every_row_says_whether_it_can_be_done() -> None:
    """A row of another form would not be looked at by the tests above."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| |")]

    assert [row for row in rows if row not in LINES and not row.startswith("| ---")] == []


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "SECURITY.md"])
def test_a_reader_finds_the_page(page: str) -> None:
    """Whoever has to judge the service looks there first."""
    assert "docs/security.md" in (ROOT / page).read_text()
