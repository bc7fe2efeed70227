import json

import pytest
from tests.cli.commands import Run


@pytest.fixture
def named(run: Run) -> Run:
    """Gives commands beside keys of three principals."""
    for name in ("web", "support desk", "kiosk"):
        assert run("keys", "create", "--name", name).code == 0
    return run


def listed(run: Run) -> dict[str, dict[str, object]]:
    """Gives what the list tells, by the stored name."""
    ran = run("principals", "list", "--json")
    assert ran.code == 0, ran.err
    return {row["stored_as"]: row for row in json.loads(ran.out)["principals"]}


def test_principals_are_put_into_a_group_and_taken_out(named: Run) -> None:
    """Who acts together is seen in one list."""
    grouped = named("principals", "group", "shop", "web", "support desk")
    assert (grouped.code, grouped.err) == (0, "The group shop has 2 principals: support desk, web.\n")
    rows = listed(named)
    assert [rows[name]["group"] for name in ("web", "support desk", "kiosk")] == ["shop", "shop", None]
    assert "support desk" in named("principals", "list").out

    ungrouped = named("principals", "ungroup", "support desk")
    assert (ungrouped.code, ungrouped.err) == (0, "Taken out of their group: support desk.\n")
    assert named("principals", "ungroup", "support desk").err == "Nothing changed: none of them was in a group.\n"
    assert listed(named)["support desk"]["group"] is None


def test_no_command_breaks_a_group_unless_it_is_told_to(named: Run) -> None:
    """The second of two commands that were copied one after the other would lock a support desk out, silently."""
    named("principals", "group", "web-desk", "web", "support desk")
    ran = named("principals", "group", "web-kiosk", "web", "kiosk")
    assert ran.code != 0
    assert "'web' is in the group 'web-desk': add the others to that group, or move it with --move" in ran.err
    assert [listed(named)[name]["group"] for name in ("web", "kiosk")] == ["web-desk", None]

    assert named("principals", "group", "web-desk", "web", "kiosk").err == (
        "The group web-desk has 3 principals: kiosk, support desk, web.\n"
    )
    assert named("principals", "group", "--move", "apart", "kiosk").code == 0
    assert listed(named)["kiosk"]["group"] == "apart"


def test_a_mistyped_principal_is_named(named: Run) -> None:
    """A group with a name that nobody has would look right, and do nothing."""
    ran = named("principals", "group", "shop", "web", "suport")

    assert ran.code != 0
    assert "there is no principal 'suport'" in ran.err
    assert listed(named)["web"]["group"] is None


def test_a_name_must_be_readable(named: Run) -> None:
    """It stands in lists and in commands to copy."""
    for name in ("", "a\nb", "x" * 101):
        assert named("principals", "group", name, "web").code != 0, name
        assert named("principals", "rename", "web", name).code != 0, name


def test_a_renamed_principal_is_found_by_both_names(named: Run) -> None:
    """Keys for either name act as one, and the list shows the new name beside the stored one."""
    renamed = named("principals", "rename", "web", "shop")
    assert (renamed.code, "keys that are made for either name act as web" in renamed.err) == (0, True)
    assert named("principals", "rename", "shop", "shop").code == 0
    assert named("keys", "create", "--name", "shop").code == 0

    assert listed(named)["web"]["name"] == "shop"
    assert "shop" not in listed(named)
    rows = json.loads(named("keys", "list", "--json").out)
    assert [row["name"] for row in rows].count("web") == 2
    assert named("principals", "group", "both", "shop", "kiosk").code == 0


def test_a_name_of_another_principal_is_refused(named: Run) -> None:
    """Two principals under one name would be one without anybody having said so."""
    ran = named("principals", "rename", "web", "kiosk")

    assert ran.code != 0
    assert "put both into a group" in ran.err
