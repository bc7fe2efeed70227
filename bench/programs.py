"""Starts the programs that are measured, each pinned to a core, and ends them again by their own process id."""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

HOST = "127.0.0.1"

START_S_MAX = 30
"""A server that doesn't answer by then won't."""
STOP_S_MAX = 10
"""What a server gets to end by itself (PostgreSQL writes a checkpoint) before it is killed."""
POLL_S = 0.05


class ProgramError(Exception):
    """A program that the bench needs didn't start, or ended by itself; the text holds the end of what it wrote."""


class Cores(msgspec.Struct, frozen=True):
    """Which core does what; they differ, or the load would take from what it measures."""

    server: int
    load: int


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A program to be started.

    Attributes:
        name: what its log file is called.
        arguments: the command line.
        core: the core that it and its children stay on.
        folder: where it runs and writes its log.
        environment: what it finds in its environment, beside PATH, HOME and LANG.
        user: the user to run it as; None for the bench's own.
        stop_signal: what makes it end in good order.
    """

    name: str
    arguments: list[str]
    core: int
    folder: Path
    environment: Mapping[str, str] = {}
    user: str | None = None
    stop_signal: int = signal.SIGTERM


def free_port() -> int:
    """Gives a port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def cores() -> Cores:
    """Gives the first two cores that this process may use."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        raise ProgramError("two cores are needed: one for the server, one for the load and the gateway")
    return Cores(server=usable[0], load=usable[1])


def plain_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Gives an environment that owes nothing to the caller's settings."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, **extra}


def pinned(core: int, arguments: list[str]) -> list[str]:
    """Gives a command line that runs on one core, and ends when the bench is killed."""
    return ["setpriv", "--pdeathsig", "TERM", "taskset", "-c", str(core), *arguments]


def program_path(name: str, folder: str = "") -> str:
    """Finds a program, also where only root has it on the path."""
    found = shutil.which(name, path=os.pathsep.join([folder, os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
    if found is None:
        raise ProgramError(f"{name} is missing: run bench/install.sh")
    return found


@contextlib.contextmanager
def running(launch: Launch) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program for as long as the block lasts; what it writes goes to a file beside it."""
    log_path = launch.folder / f"{launch.name}.out"
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            pinned(launch.core, launch.arguments),
            cwd=launch.folder,
            env=plain_environment(launch.environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            user=launch.user,
            start_new_session=True,  # Ctrl-C reaches the bench alone, which then ends them in order
        )
        try:
            yield process
        finally:
            _stop(process, launch.stop_signal)


def wait_ready(process: subprocess.Popen[bytes], launch: Launch, port: int, path: str) -> None:
    """Returns when a GET of the path is answered 200; raises ProgramError when the program ends or takes too long."""
    end_s = time.monotonic() + START_S_MAX
    while time.monotonic() < end_s:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError, http.client.HTTPException):
            if fetch(port, path).status == http.HTTPStatus.OK:
                return
        time.sleep(POLL_S)
    raise ProgramError(f"{launch.name} didn't start:\n{log_end(launch)}")


class Reply(msgspec.Struct, frozen=True):
    """An answer to one call."""

    status: int
    body: bytes


def fetch(port: int, path: str) -> Reply:
    """Gets a path of a local server, over a connection of its own."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return Reply(reply.status, reply.read())
    finally:
        connection.close()


def log_end(launch: Launch) -> str:
    """Gives the last lines that a program wrote."""
    text = (launch.folder / f"{launch.name}.out").read_text(errors="replace")
    return "\n".join(text.splitlines()[-15:])


def _stop(process: subprocess.Popen[bytes], stop_signal: int) -> None:
    if process.poll() is not None:
        return
    process.send_signal(stop_signal)
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_S_MAX)
