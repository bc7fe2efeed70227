"""The real program as an operator runs it: started, watched, stopped and killed from outside."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.cli.commands import run_inside
from tests.scenarios.http_client import Client
from tests.scenarios.waiting import DEADLINE_S, until

from payrelay_simulator import Merchant

PAYRELAY = Path(sys.executable).parent / "payrelay"
ENCRYPTION_KEY_NAME = "PAYRELAY_ENCRYPTION_KEY"
STARTED_WITHIN_S = 60.0  # a start reads the whole program: beside much other work that takes long
LISTENS = "0A"
"""The state of a listening socket in the kernel's tables."""
KEPT = ("PATH", "PYTHONPATH", "HOME", "LANG", "TMPDIR")


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    assert isinstance(port, int)
    return port


def account(name: str, base_url: str, **more: str) -> dict[str, str]:
    """The settings of one upstream account that is like no other."""
    members = {
        "BASE_URL": base_url,
        "APP_ID": f"app-of-{name}",
        "APP_SECRET": f"app-secret-of-{name}",
        "MERCHANT_ID": f"merchant-of-{name}",
        "MERCHANT_SECRET": f"merchant-secret-of-{name}",
        "RATE_LIMIT": "off",
        "SIGNS_ELSEWHERE": "false",
    } | more
    return {f"PAYRELAY_GATEWAYS__{name.upper()}__{member}": value for member, value in members.items()}


def simulated_account(base_url: str, merchant: Merchant, **more: str) -> dict[str, str]:
    """The settings of the account that a simulated merchant has at a simulator."""
    own = {
        "APP_ID": merchant.app_id,
        "APP_SECRET": merchant.app_secret,
        "MERCHANT_ID": merchant.merchant_id,
        "MERCHANT_SECRET": merchant.merchant_secret,
    }
    return account("gateway", base_url, **own | more)


def run(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the program, run to its end in the folder."""
    return subprocess.run(
        [PAYRELAY, *arguments],
        cwd=folder,
        env=surroundings(environment),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S * 2,
        check=False,
    )


def surroundings(environment: dict[str, str]) -> dict[str, str]:
    """The settings and what every process needs; nothing else from the tester's own environment."""
    return {name: os.environ[name] for name in KEPT if name in os.environ} | environment


class Program:
    """One `payrelay serve` in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        environment: dict[str, str],
        command: Sequence[str | Path] = (PAYRELAY,),
        verb: str = "serve",
        *,
        start_within_s: float = STARTED_WITHIN_S,
    ) -> None:
        self.folder = folder
        self._start_within_s = start_within_s
        self._command = (*command, verb)
        self.environment = {
            "PAYRELAY_DATABASE_URL": f"sqlite:///{folder}/payrelay.db",
            "PAYRELAY_METRICS_NETWORKS": "127.0.0.1",
        } | environment
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.log_path = folder / "serve.log"

    def start(self, port: int | None = None) -> "Program":
        """Starts it, on a port of its own where none is named, and returns once it answers."""
        self.port = port or free_port()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, "--host", "127.0.0.1", "--port", str(self.port)],
                cwd=self.folder,
                env=surroundings(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(self._is_ready_or_dead, "the program is ready", deadline_s=self._start_within_s)
        assert self._process.poll() is None, f"the program ended at its start: {self.log()}"
        return self

    def _is_ready_or_dead(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            return True
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """Ends it as a power cut does."""
        self._signal(signal.SIGKILL)

    def ask_to_stop(self) -> None:
        """Asks it politely to stop and returns at once."""
        self.send(signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal, and returns at once."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> int:
        """Asks it politely to stop; the exit code."""
        return self._signal(signal.SIGTERM)

    def ports(self) -> list[int]:
        """The ports that it listens on, as the kernel tells."""
        assert self._process is not None
        own: set[str] = set()
        for file in Path(f"/proc/{self._process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                own.add(str(file.readlink()).removeprefix("socket:[").removesuffix("]"))
        tables = [Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6")]
        rows = [line.split() for table in tables for line in table.splitlines()[1:]]
        return sorted({int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == LISTENS and row[9] in own})

    def wait(self) -> int:
        """The exit code, once it has ended."""
        assert self._process is not None
        return self._process.wait(DEADLINE_S * 2)

    def _signal(self, number: signal.Signals) -> int:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            return self._process.wait(DEADLINE_S * 2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command with the same settings."""
        return run(self.folder, self.environment, *arguments)

    def new_key(self, name: str, *options: str) -> str:
        """A fresh key, made by the command; not in a process of its own, since stories make a hundred of them."""
        made = run_inside(self.folder, self.environment, "keys", "create", "--name", name, *options)
        assert made.code == 0, made.err
        return made.out.strip()

    def client(self, key: str | None, account_name: str = "gateway") -> Client:
        """A caller of this program."""
        return Client(port=self.port, key=key, account=account_name)

    def log(self) -> str:
        """Everything that it has written so far."""
        return self.log_path.read_text() if self.log_path.exists() else ""

    def log_lines(self) -> list[dict[str, Any]]:
        """Its JSON log lines."""
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{") and line.endswith("}")]
