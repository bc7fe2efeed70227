from pathlib import Path

import pytest
from tests.cli.commands import GATEWAY, Ran, Run

pytestmark = pytest.mark.usefixtures("upgraded_database")


def test_an_account_is_paused_and_goes_on(run: Run) -> None:
    """Two commands, and nothing to look up: the first tells the second."""
    paused = run("pause", "gateway", "--reason", "wrong prices", **GATEWAY)
    resumed = run("resume", "gateway", **GATEWAY)

    assert (paused.code, paused.out) == (0, "")
    assert "gateway is paused" in paused.err
    assert "payrelay resume gateway" in paused.err
    assert resumed == Ran(0, "", "gateway goes on, within a second.\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["pause", "gateway"], "payrelay: --reason is missing: say why, for those who read the history later\n"),
        (["pause", "gateway", "--reason", " "], "payrelay: --reason must have 1 to 500 printable characters\n"),
        (["pause", "gateway", "--reason", "x" * 501], "payrelay: --reason must have 1 to 500 printable characters\n"),
        (
            ["pause", "gateway", "--reason", "x", "--by", "\n"],
            "payrelay: --by must have 1 to 100 printable characters\n",
        ),
        (
            ["pause", "nosuch", "--reason", "x"],
            "payrelay: there is no gateway account called nosuch; configured: gateway\n",
        ),
        (["resume", "nosuch\x1b"], "payrelay: there is no gateway account called nosuch\\x1b; configured: gateway\n"),
    ],
)
def test_what_can_not_be_done_is_one_line(run: Run, arguments: list[str], line: str) -> None:
    """And a mistyped name pauses nothing."""
    assert run(*arguments, **GATEWAY) == Ran(2, "", line)


def test_the_first_pause_stands(run: Run) -> None:
    """Two people in one emergency: the second learns of the first, and is not told that something failed."""
    run("pause", "gateway", "--reason", "wrong prices", "--by", "ann", **GATEWAY)
    second = run("pause", "gateway", "--reason", "another", "--by", "bob", **GATEWAY)

    assert second.code == 0
    assert "was paused already; that pause stays: since 20" in second.err
    assert "by ann, because “wrong prices”" in second.err


def test_an_account_that_was_not_paused_goes_on_as_before(run: Run) -> None:
    """What is wanted is so already."""
    assert run("resume", "gateway", **GATEWAY) == Ran(0, "", "gateway was not paused.\n")


def test_a_pause_of_an_account_that_is_not_configured_any_more_can_be_ended(run: Run) -> None:
    """Else a renamed account would stay in the list for ever."""
    run("pause", "gateway", "--reason", "wrong prices", **GATEWAY)

    assert run("resume", "gateway").code == 0


def test_a_pause_without_the_encryption_key_holds_and_says_that_it_is_not_listed(
    run: Run, upgraded_database: Path
) -> None:
    """In an emergency somebody pauses from wherever he is; he must know that a restored backup would not pause."""
    upgraded_database.with_name("payrelay.db.key").rename(upgraded_database.with_name("elsewhere"))
    paused = run("pause", "gateway", "--reason", "wrong prices", **GATEWAY)
    resumed = run("resume", "gateway", **GATEWAY)

    assert (paused.code, resumed.code) == (0, 0)
    assert "gateway is paused" in paused.err
    assert "The pause is not in the list outside the database" in paused.err
    assert "A recovery may pause it again" in resumed.err
