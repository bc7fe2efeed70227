import pytest
from tests.cli.commands import GATEWAY, Run


@pytest.mark.usefixtures("upgraded_database")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("recover", "--yes"), "give --lost-since"),
        (("recover", "--lost-since", "2999-01-01T00:00Z", "--yes"), "--lost-since is in the future"),
        (("recover", "--lost-since", "yesterday", "--yes"), "ISO 8601 with its zone"),
        (("recover", "acknowledge", "--principal", "nobody", "--yes"), "there is no principal 'nobody'"),
        (("recover", "decide", "send", "--reason", "x", "--yes"), "name operations by their ids"),
        (("recover", "decide", "send", "op_x", "--reason", "x", "--yes"), "not held, or not of this filter: op_x"),
        (("recover", "decide", "send", "--where", "kind=x", "--reason", "x", "--yes"), "kind= must be one of"),
        (("recover", "decide", "send", "--where", "age=x", "--reason", "x", "--yes"), "--where takes NAME=VALUE"),
        (("recover", "decide", "send", "--where", "since=x", "--reason", "x", "--yes"), "since= must be a time"),
        (("recover", "decide", "send", "--where", "kind=void", "--reason", "x", "--yes"), "no held operation"),
        (("recover", "checkout", "paid", "chk_x", "--reason", "x", "--yes"), "--payment-id belongs to paid"),
        (("recover", "checkout", "unpaid", "chk_x", "--payment-id", "1", "--reason", "x", "--yes"), "belongs to paid"),
        (("recover", "checkout", "unpaid", "chk_x", "--reason", "x", "--yes"), "there is no checkout chk_x"),
    ],
)
def test_what_can_not_be_done_is_one_line(run: Run, arguments: tuple[str, ...], line: str) -> None:
    """A mistyped time or filter must reach nothing."""
    ran = run(*arguments, **GATEWAY)

    assert (ran.code in {1, 2}, ran.out) == (True, "")
    assert line in ran.err


@pytest.mark.usefixtures("upgraded_database")
def test_a_database_that_lost_nothing_says_so(run: Run) -> None:
    """Also for programs."""
    ran = run("recover", "status", **GATEWAY)

    assert "incarnation 1" in ran.out
    assert "No commits are known to be lost.\nHeld: nothing.\n" in ran.out
