import contextlib
import os
import pwd

import pytest

from payrelay.cli.session import login_name, operator_from, reason_from
from payrelay.cli.terminal.messages import CommandError


def test_whoever_is_logged_in_decides() -> None:
    """Where there is no terminal, it is the user of the process; a name is there in any case."""
    assert operator_from(None) == login_name()
    assert operator_from(" ann ") == "ann"


def test_a_process_without_a_login_has_its_users_name() -> None:
    """In a container, or under a timer."""
    names = {pwd.getpwuid(os.getuid()).pw_name}
    with contextlib.suppress(OSError):
        names.add(os.getlogin())

    assert login_name() in names


def test_a_reason_that_can_not_be_kept_is_named_by_its_option() -> None:
    """Whoever typed it sees which one to mend."""
    with pytest.raises(CommandError, match=r"^--reason is missing"):
        reason_from("")
    assert reason_from("because") == "because"
