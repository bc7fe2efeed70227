"""Where the service listens and what it logs, as its settings say; an option of the command wins."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.scenarios.program import PAYRELAY, account, free_port, surroundings
from tests.scenarios.waiting import DEADLINE_S, until

SETTINGS = account("gateway", "http://127.0.0.1:9")


@contextmanager
def served(folder: Path, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Starts the service with settings alone, and ends it."""
    process = subprocess.Popen(
        [PAYRELAY, "serve", *arguments],
        cwd=folder,
        env=surroundings(SETTINGS | {"PAYRELAY_HOST": "127.0.0.1"} | variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S * 2) == 0
        assert process.stdout is not None
        process.stdout.close()


def address(process: subprocess.Popen[bytes]) -> str:
    """Waits for the line that tells the address, and gives it."""
    assert process.stdout is not None
    events = (json.loads(line) for line in process.stdout)
    return str(next(event["address"] for event in events if event["event"] == "serving"))


def test_it_listens_where_its_settings_say(tmp_path: Path) -> None:
    """An image and a unit set variables; a command that they can't change would keep its own port."""
    port = free_port()

    with served(tmp_path, PAYRELAY_PORT=str(port)) as process:
        assert address(process) == f"http://127.0.0.1:{port}"


def test_an_option_wins_over_the_setting(tmp_path: Path) -> None:
    """Who types a port means it, whatever the environment says."""
    port = free_port()

    with served(tmp_path, "--port", str(port), PAYRELAY_PORT="1") as process:
        assert address(process) == f"http://127.0.0.1:{port}"


def test_the_variables_of_a_cluster_end_no_start(tmp_path: Path) -> None:
    """Beside a service called `payrelay`, every pod gets these; each of them once ended the start."""
    cluster = {"PAYRELAY_PORT": "tcp://10.96.14.7:8080", "PAYRELAY_SERVICE_HOST": "10.96.14.7"}
    port = free_port()

    with served(tmp_path, "--port", str(port), **cluster) as process:
        assert address(process) == f"http://127.0.0.1:{port}"


def test_what_is_below_the_level_is_not_logged(tmp_path: Path) -> None:
    """At `warning` a start and a stop that go well leave no line."""
    with served(tmp_path, PAYRELAY_PORT="0", PAYRELAY_LOG_LEVEL="warning") as process:
        wait_listening(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.read() == b""


def wait_listening(pid: int) -> None:
    """Waits until a process has a listening socket, as the kernel tells it."""

    def listens() -> bool:
        sockets = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
        rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
        return any(row[3] == "0A" and f"socket:[{row[9]}]" in sockets for row in rows)

    until(listens, "the program listens")
