import contextlib
import gc
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest
import rich
from tests.cli.commands import GATEWAY, Run

from payrelay.cli.session import loading, login_name, operator_from, reason_from
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


def left_by_a_demo(folder: Path) -> None:
    """Writes what a demo leaves in its folder."""
    demo = folder / ".payrelay"
    demo.mkdir()
    (demo / "payrelay.toml").write_text(
        'database_url = "sqlite:///.payrelay/demo.db"\n[gateways.gateway]\nsimulator = true\n'
        'base_url = "http://127.0.0.1:9"\napp_id = "a"\napp_secret = "b"\n'
    )
    (demo / "payrelay.toml").chmod(0o600)


def test_a_command_beside_a_demo_is_about_the_demo_and_says_so(run: Run, tmp_path: Path) -> None:
    """Whoever tries the demo has set nothing, and would look at a database that isn't there."""
    left_by_a_demo(tmp_path)
    ran = run("operations", "list")

    assert "this is about the demo in .payrelay/" in ran.err
    assert ".payrelay/demo.db" in ran.err


@pytest.mark.parametrize("set_by", ["variable", "file"])
def test_whoever_has_set_anything_is_never_led_to_a_demo(run: Run, tmp_path: Path, set_by: str) -> None:
    """An operator in a folder where somebody tried the demo must not decide about its payments."""
    left_by_a_demo(tmp_path)
    variables = {"PAYRELAY_DATABASE_URL": "sqlite:///own.db", **GATEWAY}
    if set_by == "file":
        (tmp_path / "payrelay.toml").write_text('database_url = "sqlite:///own.db"\n[gateways.gateway]\napp_id = "a"\n')
        variables = {}
    ran = run("operations", "list", **variables)

    assert "demo" not in ran.err


@pytest.mark.parametrize("arguments", [("serve",), ("db", "upgrade")])
def test_a_service_never_runs_on_what_a_demo_left(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """It would look like a service, and its gateway would be gone."""
    left_by_a_demo(tmp_path)

    assert "this is about the demo" not in run(*arguments).err
    assert not (tmp_path / ".payrelay/demo.db").exists()


def test_what_a_service_loads_is_out_of_the_collectors_sight() -> None:
    """The collector would go through all modules again and again while they are loaded, and once more at the start."""
    try:
        with loading():
            seen = gc.isenabled()
            kept: list[list[int]] = [[]]
        assert (seen, gc.isenabled()) == (False, True)
        assert not any(each is kept for each in gc.get_objects())
    finally:
        gc.unfreeze()


def test_the_collector_works_again_where_loading_failed() -> None:
    """A service that goes on without it would grow."""
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()


@pytest.mark.process
def test_what_a_service_never_uses_is_there_again_for_whoever_asks() -> None:
    """The log on a terminal is in colour, and a command shows its tables, also where a service was loaded first."""
    code = "import sys; from payrelay.cli.session import loading\n"
    code += "with loading(): import structlog\n"
    code += "assert 'rich' not in sys.modules\n"
    code += "import rich.table, payrelay.cli.terminal.text_log"
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


def test_what_is_loaded_already_stays_loaded() -> None:
    """A service that a program starts in its own process takes nothing away from it."""
    try:
        with loading():
            assert sys.modules["rich"] is rich
        assert sys.modules["rich"] is rich
    finally:
        gc.unfreeze()
