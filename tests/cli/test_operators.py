import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.commands import Ran, Run

pytestmark = pytest.mark.usefixtures("upgraded_database")

ADD = (
    "operators",
    "add",
    "Ada@Shop.example",
    "--name",
    "Ada",
    "--role",
    "admin",
    "--reason",
    "the first",
    "--by",
    "root",
)


def test_the_first_operator_is_added_by_command(run: Run) -> None:
    """The address to choose a password at is printed alone, so that a script can send it."""
    added = run(*ADD)
    assert added.code == 0, added.err
    assert re.fullmatch(r"/console/invitations/[\w-]{43}\n", added.out)
    assert "ada@shop.example chooses a password" in added.err

    [row] = json.loads(run("operators", "list", "--json").out)
    assert (row["email"], row["role"], row["state"], row["second_factor"]) == (
        "ada@shop.example",
        "admin",
        "invited",
        None,
    )
    assert "ada@shop.example" in run("operators", "list").out


def test_what_one_may_do_ends_by_command(run: Run) -> None:
    """Each command takes the reason, and says what is so now."""
    run(*ADD)
    for command, text in (
        ("end-sessions", "ada@shop.example: 0 sessions ended."),
        ("disable", "ada@shop.example is disabled, and has no session any more."),
    ):
        ran = run("operators", command, "ada@shop.example", "--reason", "why")
        assert (ran.code, ran.err) == (0, f"{text}\n")
    assert json.loads(run("operators", "list", "--json").out)[0]["state"] == "disabled"
    again = run("operators", "reset-password", "ada@shop.example", "--reason", "is back")
    assert again.out.startswith("/console/invitations/")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["disable", "ada@shop.example"],
            "payrelay: --reason is missing: say why, for those who read the history later\n",
        ),
        (["disable", "ada", "--reason", "x"], "payrelay: EMAIL must be an e-mail address such as ada@shop.example\n"),
        (["disable", "eve@shop.example", "--reason", "x"], "payrelay: no operator has the address eve@shop.example\n"),
        (
            ["add", "a@b.example", "--name", " ", "--reason", "x"],
            "payrelay: --name must have 1 to 100 printable characters\n",
        ),
        (
            ["add", "ada@shop.example", "--name", "Ada", "--reason", "x"],
            "payrelay: an operator has the address ada@shop.example already\n",
        ),
    ],
)
def test_what_can_not_be_done_is_one_line(run: Run, arguments: list[str], line: str) -> None:
    """And changes nothing."""
    run(*ADD)
    ran = run("operators", *arguments)

    assert (ran.code != 0, ran.out, ran.err) == (True, "", line)


def test_the_audit_covers_what_operators_did(run: Run, tmp_path: Path) -> None:
    """It counts the lines, prints the newest for who keeps it outside, and finds one that was changed or removed."""
    run(*ADD)
    run("operators", "end-sessions", "ada@shop.example", "--reason", "why")
    whole = run("audit", "verify")
    assert re.search(r"2 acts of operators; the newest is 2:[0-9a-f]{64}\.", whole.out)
    assert whole.code == 0, whole.out
    [file] = tmp_path.glob("*.db")
    with closing(sqlite3.connect(file)) as database:
        database.executescript(
            "DROP TRIGGER operator_acts_are_not_removed; DELETE FROM operator_acts WHERE number = 2;"
            " DROP TRIGGER operator_acts_are_not_changed; UPDATE operator_acts SET name = 'eve';"
        )

    found: Ran = run("audit", "verify")
    assert found.code != 0
    assert "operator_acts/1: it was changed, or the line before it was: its hash doesn't follow" in found.out
    assert "operator_acts: a row names line 2, and the newest line is 1: lines were removed" in found.out
