"""No request makes the program do more than its budget of work allows."""

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.draws import drawn_uuid
from tests.sources import ROOT
from tests.work.budget import BUDGET, SLACK_CALLS, excess, rounded
from tests.work.measure import SERIES

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer


def counted(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Counts in a process of its own."""
    command = [sys.executable, "-m", "tests.work.measure", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_no_request_takes_more_work_than_its_budget() -> None:
    """Each new feature costs every request a little; without a budget nobody sees it before it is a quarter."""
    ran = counted()
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.postgresql
def test_no_request_takes_more_work_than_its_budget_on_postgresql(postgresql_server: "PostgresqlServer") -> None:
    """There each statement is a round trip, which costs more than all calls together."""
    name = f"work_{drawn_uuid().hex}"
    postgresql_server.run("createdb", "-h", str(postgresql_server.folder), "-U", "payrelay", name)
    ran = counted("--postgresql", str(postgresql_server.folder), "--database", name)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_step_over_its_budget_is_named() -> None:
    """Whoever pushed it learns which step does more, and by how much; a step that is new has no budget."""
    budget = rounded({"read": {"calls in store": 100, "statements": 4}})
    within = {"read": {"calls in store": 105 + SLACK_CALLS, "statements": 4}}
    over = {"read": {"calls in store": 106 + SLACK_CALLS, "statements": 5, "commits": 1}}

    assert excess(within, budget) == []
    assert excess(over, budget) == [
        f"read: {106 + SLACK_CALLS} calls in store, and the budget is {105 + SLACK_CALLS}",
        "read: 1 commits, and the budget is 0",
        "read: 5 statements, and the budget is 4",
    ]


def test_a_charge_has_three_synced_commits_and_a_replay_none() -> None:
    """The intent before the call, the answer before the client hears it, and its event: the promise, and no more.

    Where another charge follows, the event goes along with it. So a client with one connection waits for two syncs.
    """
    sqlite = json.loads(BUDGET.read_text())["sqlite"]

    assert (sqlite["charge"]["commits"], sqlite["charge"]["syncs"]) == (3, 3)
    assert sqlite[f"{SERIES} charges"] == {"commits": 2 * SERIES, "syncs": 2 * SERIES}
    assert {"commits", "syncs"}.isdisjoint(sqlite["replay"])
