"""Commands as they meet real terminals, pipes, shells and signals."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.cli.commands import GATEWAY, PROGRAM, ended, program, read_until
from tests.scenarios.http_client import Client, Reply

pytestmark = pytest.mark.usefixtures("upgraded_database")

FOLDER_OF_PROGRAM: Final = str(Path(sys.executable).parent)
DEADLINE_S: Final = 30.0


def environment(**variables: str) -> dict[str, str]:
    """Gives the variables of a program: ours without settings, and those that are named."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PAYRELAY_")}
    return ours | {"PATH": f"{FOLDER_OF_PROGRAM}:{ours['PATH']}", **variables}


class Screen:
    """What a program has written on its terminal."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self.text = ""

    def wait_for(self, pattern: str) -> str:
        """Reads until a pattern is there; gives all that was read."""
        ends_at = time.monotonic() + DEADLINE_S
        while re.search(pattern, self.text) is None:
            ready, _, _ = select.select([self._terminal], [], [], max(ends_at - time.monotonic(), 0))
            assert ready, f"no {pattern!r} in {self.text!r}"
            self.text += os.read(self._terminal, 65_536).decode()
        return self.text

    def type(self, text: str) -> None:
        """Presses keys."""
        os.write(self._terminal, text.encode())


@contextmanager
def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> Iterator[tuple[subprocess.Popen[bytes], Screen]]:
    """Starts a program with a terminal as all its streams, which Ctrl-C reaches as it does at a desk."""
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        arguments,
        cwd=folder,
        env=environment(**{"TERM": "xterm", "COLUMNS": "200", **variables}),
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    try:
        yield process, Screen(terminal)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def ask(address: str) -> Reply:
    """Sends a request without a key."""
    return Client(port=int(address.rpartition(":")[2]), key=None).send("GET", "/gateway/api/subscriptions")


@pytest.mark.story
def test_on_a_terminal_the_service_logs_lines_for_people(tmp_path: Path) -> None:
    """An operator who starts it by hand reads along: time, level, method, route, status and duration."""
    with on_a_terminal(tmp_path, *PROGRAM, "serve", "--port", "0", **GATEWAY) as (process, screen):
        address = re.findall(r"http://[\d.:]+", screen.wait_for(r"serving.*http://\S+"))[0]
        ask(address)
        text = re.sub(r"\x1b\[[\d;]*m", "", screen.wait_for(r"unauthenticated"))
        process.send_signal(signal.SIGINT)
        screen.wait_for("stopping")
        assert process.wait(DEADLINE_S) == 0

    line = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z \[info +\] GET \S+ 401 \d+\.\d ms request_id=req_\w{24} .*"
    assert re.search(line, text) is not None
    assert "{" not in text.replace("{account}", "")


@pytest.mark.story
@pytest.mark.parametrize(
    ("variables", "is_colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals_that_have_them(
    tmp_path: Path, variables: dict[str, str], *, is_colored: bool
) -> None:
    """Some people can't read them, and some terminals show them as garbage."""
    with on_a_terminal(tmp_path, *PROGRAM, "serve", "--port", "0", **GATEWAY, **variables) as (_, screen):
        assert ("\x1b[" in screen.wait_for(r"serving.*http://\S+")) is is_colored


@pytest.mark.story
@pytest.mark.parametrize(("options", "is_json"), [((), True), (("--log-format", "text"), False)])
def test_through_a_pipe_the_service_logs_json(tmp_path: Path, options: tuple[str, ...], *, is_json: bool) -> None:
    """Whatever collects logs reads one object a line, unless the operator chooses otherwise."""
    with program(tmp_path, "serve", "--port", "0", *options, **GATEWAY) as process:
        line = read_until(process.stdout, "serving")

    assert (line.startswith("{") and json.loads(line)["event"] == "serving") is is_json


@pytest.mark.story
def test_the_service_outlives_the_reader_of_its_log(tmp_path: Path) -> None:
    """Payments go on while the program that collects the log is started anew."""
    with program(tmp_path, "serve", "--port", "0", **GATEWAY) as process:
        address = json.loads(read_until(process.stdout, "serving"))["address"]
        assert process.stdout is not None
        process.stdout.close()
        assert {ask(address).status for _ in range(3)} == {401}
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE_S)
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.story
@pytest.mark.parametrize(
    "typed", [("operations", "list"), ("audit", "verify", "--json"), ("keys", "list"), ("--help",), ("keys", "--help")]
)
def test_a_closed_pipe_ends_a_command_quietly(tmp_path: Path, typed: tuple[str, ...]) -> None:
    """`payrelay … | head -1` is no fault; the exit code is what the shell gives any program in its place."""
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [*PROGRAM, *typed],
        cwd=tmp_path,
        env=environment(**GATEWAY),
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=DEADLINE_S,
    )
    os.close(writing)

    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.story
def test_a_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    """Half a list in a file must not pass for the whole one."""
    command = "payrelay keys list --json > /dev/full"
    ran = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, check=False)

    assert (ran.returncode, ran.stderr) == (2, b"payrelay: No space left on device\n")


@pytest.mark.story
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_does_no_harm(tmp_path: Path, closed: str) -> None:
    """Under some supervisors there is none; the database must not be opened under the number of one."""
    command = f"payrelay keys list {closed}"
    ran = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, check=False)
    again = ended(tmp_path, "audit", "verify", **GATEWAY)

    assert ran.returncode == 0
    assert b"Traceback" not in ran.stderr
    assert again.code == 0, again.err


@pytest.mark.story
def test_a_terminal_without_unicode_shows_escapes(tmp_path: Path) -> None:
    """A mark that the terminal can't show must not end the check."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = ended(tmp_path, "check", **plain)

    assert (ran.code, ran.err) == (1, "")
    assert "\\u2717 settings: no gateway is configured" in ran.out


@pytest.mark.story
@pytest.mark.parametrize(
    ("typed", "completed"), [("operati", "operations "), ("operations d", "decide "), ("sea", "seal ")]
)
def test_bash_completes_commands(tmp_path: Path, typed: str, completed: str) -> None:
    """A real bash on a real terminal, with the script that the program prints."""
    with on_a_terminal(tmp_path, "bash", "--norc", "--noprofile", "-i", PS1="ready> ") as (_, screen):
        screen.wait_for("ready> ")
        screen.type("source <(payrelay completion bash) && echo lo''aded\n")
        screen.wait_for("loaded")
        screen.type(f"payrelay {typed}\t")
        screen.wait_for(f"payrelay .*{completed}")


@pytest.mark.process
@pytest.mark.parametrize(
    ("shell", "typed", "answered"),
    [
        ("zsh", {"_TYPER_COMPLETE_ARGS": "payrelay op"}, '"operations"'),
        ("fish", {"_TYPER_COMPLETE_ARGS": "payrelay keys ", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}, "create\t"),
    ],
)
def test_other_shells_are_answered_in_their_own_way(
    tmp_path: Path, shell: str, typed: dict[str, str], answered: str
) -> None:
    """What the script of that shell would call; zsh takes a script only where its first line says so."""
    script = ended(tmp_path, "completion", shell)
    ran = ended(tmp_path, _PAYRELAY_COMPLETE=f"complete_{shell}", **typed)

    assert (script.code, ran.code) == (0, 0)
    assert script.out.startswith({"zsh": "#compdef payrelay\n", "fish": "complete --command payrelay "}[shell])
    assert answered in ran.out
