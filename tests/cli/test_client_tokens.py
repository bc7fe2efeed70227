"""The command that makes another signing key."""

import re

import pytest
from tests.cli.commands import GATEWAY, Run

pytestmark = pytest.mark.usefixtures("upgraded_database")


def test_each_run_makes_another_key(run: Run) -> None:
    """Beside a server or without, on a new database too; nothing secret is printed."""
    first = run("client-tokens", "rotate-key", **GATEWAY)
    second = run("client-tokens", "rotate-key", **GATEWAY)

    assert (first.code, second.code, first.out, second.out) == (0, 0, "", "")
    names = [re.findall(r"with key ([0-9a-f]{12});", ran.err) for ran in (first, second)]
    assert all(len(found) == 1 for found in names)
    assert names[0] != names[1]
