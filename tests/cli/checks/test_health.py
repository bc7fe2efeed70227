"""The command for health checks: what it says of a service, of a stranger and of silence."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest
from tests.cli.commands import Run

READY = b'{"status":"ready"}'
BEHIND = b'{"status":"ready","effects":"refused","cause":"behind","reason":"the database may lack commits"}'
FULL = b'{"status":"not_ready","cause":"disk_full","reason":"the disk of the database is full"}'


class Serve(Protocol):
    """Answers the next connections, one after the other, and gives the port."""

    def __call__(self, *replies: bytes) -> int:
        """Serves the replies."""


def reply(status: str, body: bytes) -> bytes:
    """Writes a whole reply."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Answers connections with the given bytes, and gives the port; connections are kept open until the test ends."""
    with ExitStack() as stack:

        def served(*replies: bytes) -> int:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def answer() -> None:
                for raw in replies:
                    connection, _ = listener.accept()
                    stack.callback(connection.close)
                    connection.recv(10_000)
                    connection.sendall(raw)

            threading.Thread(target=answer, daemon=True).start()
            port: int = listener.getsockname()[1]
            return port

        yield served


@pytest.mark.parametrize(
    ("raw", "code", "said"),
    [
        (reply("200 OK", READY), 0, "ready"),
        (reply("200 OK", BEHIND), 0, "ready; effects are refused: the database may lack commits"),
        (reply("503 Service Unavailable", FULL), 1, "not ready: the disk of the database is full"),
        (reply("200 OK", b"<h1>Welcome to nginx!</h1>"), 1, "something answers there that is not Payrelay: HTTP 200"),
        (reply("200 OK", b"[" * 9_000), 1, "something answers there that is not Payrelay: HTTP 200"),
        (reply("404 Not Found", b"[]"), 1, "something answers there that is not Payrelay: HTTP 404"),
        (b"220 mail.example ESMTP\r\n", 1, "no answer from"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", 1, "no answer from"),
    ],
)
def test_one_line_and_the_exit_code_tell(run: Run, serve: Serve, raw: bytes, code: int, said: str) -> None:
    """A supervisor reads the code, and a person the line that it keeps."""
    ran = run("health", "--port", str(serve(raw)), "--timeout", "0.5")

    assert ran.code == code
    assert said in ran.out + ran.err
    assert len((ran.out + ran.err).splitlines()) == 1


def test_the_port_is_the_setting_but_not_what_a_cluster_sets(run: Run) -> None:
    """A service called payrelay gives every container of its namespace an address by the name of the setting."""
    assert "no answer from 127.0.0.1:1:" in run("health", PAYRELAY_PORT="1").err
    of_default = run("health", "--timeout", "0.5", PAYRELAY_PORT="tcp://10.0.0.1:80")
    assert of_default.code == 0 or "127.0.0.1:8080" in of_default.err  # somebody may listen there
    assert "'0' is no port" in run("health", "--port", "0").err


def test_a_script_that_starts_the_service_waits_until_it_is_ready(run: Run, serve: Serve) -> None:
    """A start script that goes on too early sends requests to nobody, and one that guesses a pause waits too long."""
    port = serve(reply("503 Service Unavailable", FULL), reply("200 OK", READY))

    ran = run("health", "--port", str(port), "--wait", "20")

    assert (ran.code, ran.out.strip()) == (0, "ready")


def test_a_wait_has_an_end_and_then_says_what_kept_it(run: Run, serve: Serve) -> None:
    """A deployment that waits for ever tells nobody that it failed."""
    port = serve(reply("503 Service Unavailable", FULL))

    ran = run("health", "--port", str(port), "--wait", "0.01", "--timeout", "0.3")

    assert ran.code == 1
    assert "not ready: the disk" in ran.err or "no answer from" in ran.err


def test_nobody_there_is_not_ready(run: Run) -> None:
    """A service that has not started yet, or has ended."""
    ran = run("health", "--port", "1")
    assert (ran.code, ran.out) == (1, "")


@pytest.mark.process
def test_it_loads_nothing_heavy() -> None:
    """It runs every few seconds beside the service, and must not cost a start of the service each time."""
    script = "import sys; from payrelay.cli.checks import health; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )

    assert loaded & {"pydantic", "asyncpg", "aiohttp", "granian", "sqlite3", "uvloop", "prometheus_client"} == set()
