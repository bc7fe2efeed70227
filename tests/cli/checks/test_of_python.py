"""What `payrelay check` says of the Python that it runs on."""

import platform
import re
from datetime import date

import pytest
from tests.cli.commands import Run

from payrelay.cli.checks.of_python import of_python
from payrelay.cli.checks.python_holes import DATE, HOLES, NEWEST, Hole

BY_TABLE = "by the table of 2026-11-20, which doesn't judge CVE-2026-19552 and CVE-2026-19553 yet"
HOLES_OF = "has known holes, unless your distribution has closed them"
UNKNOWN = "the table of 2026-11-20 doesn't know its holes; it knows CPython up to 3.11.18, 3.12.16, 3.13.18, 3.14.10"
CLEAN = f"no hole is known that concerns Payrelay, {BY_TABLE}"
POSING = (
    "whoever is on the way to the gateway, or to another server that Payrelay calls, can pose as it with a stolen key"
    " of the authority eMudhra, where this machine still trusts that authority"
)


def one(posing: str) -> str:
    """Writes what is said of the hole that every Python has but the newest."""
    return f"CVE-2026-115557, fixed in {posing}: {POSING}"


@pytest.mark.parametrize(
    ("version", "safe", "named"),
    [
        ("3.11.2", "3.11.18", one("3.11.18")),
        ("3.11.7", "3.11.18", one("3.11.18")),
        ("3.12.3", "3.12.16", one("3.12.16")),
        ("3.11.17", "3.11.18", one("3.11.18")),
        ("3.13.0", "3.13.18", one("3.13.18")),
    ],
)
def test_a_python_with_holes_is_told_them_and_where_to_go(version: str, safe: str, named: str) -> None:
    """Each with what somebody can do by it here; a distribution may have closed it, so the command warns alone."""
    result = of_python("CPython", version)

    assert result.text == f"{version} {HOLES_OF}: take {safe} or later. {named}. This is {BY_TABLE}"
    assert (result.is_right, result.is_warning) == (True, True)


@pytest.mark.parametrize(
    ("python", "text"),
    [
        ("CPython 3.11.18", f"3.11.18: {CLEAN}"),
        ("CPython 3.14.10", f"3.14.10: {CLEAN}"),
        ("CPython 3.11.19", f"CPython 3.11.19: {UNKNOWN}"),
        ("CPython 3.14.10rc1", f"CPython 3.14.10rc1: {UNKNOWN}"),
        ("CPython 3.11.18+", f"CPython 3.11.18+: {UNKNOWN}"),
        ("CPython 3.15.2", f"CPython 3.15.2: {UNKNOWN}"),
        ("CPython 4.11.18", f"CPython 4.11.18: {UNKNOWN}"),
        ("PyPy 3.11.13", f"PyPy 3.11.13: {UNKNOWN}"),
    ],
)
def test_only_a_release_that_the_table_knows_is_called_free_of_holes(python: str, text: str) -> None:
    """A later one may have any, and so may another program that calls itself Python; the command warns of those."""
    result = of_python(*python.split())

    assert (result.text, result.is_right, result.is_warning) == (text, True, CLEAN not in text)


def test_the_command_tells_it_of_the_python_that_runs(run: Run) -> None:
    """Also where no gateway is configured yet: who sets a machine up hears of it at once."""
    expected = of_python(platform.python_implementation(), platform.python_version())

    assert f"{'!' if expected.is_warning else '✓'} python: {expected.text[:30]}" in run("check").out


@pytest.mark.parametrize("hole", HOLES)
def test_each_hole_can_be_told(hole: Hole) -> None:
    """A number that leads to its record, an effect to stand in a sentence, and releases that the table knows."""
    assert re.fullmatch(r"CVE-20\d\d-\d{4,}", hole.name)
    assert hole.effect == hole.effect.strip(" .")
    assert hole.fixed
    assert all(1 <= patch <= NEWEST[minor] for minor, patch in hole.fixed.items())


def test_the_table_has_a_date_after_its_newest_hole() -> None:
    """Who reads it a year later sees how old it is."""
    assert date.fromisoformat(DATE).year >= max(int(hole.name.split("-")[1]) for hole in HOLES)
