"""One service process, from outside: started in an instant, armed, killed, and spoken to over its socket."""

import json
import multiprocessing
import os
import signal
import socket
import threading
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final

from tests.matrix.program import LOG_FILE, ORDER_FILE, PASSED_FILE, Start, live
from tests.scenarios.http_client import Client
from tests.scenarios.waiting import until

from payrelay.runtime.hooks import FlowPoint, OperationPoint

START_WITHIN_S: Final = 60.0
"""On a machine on which everything else runs too."""
NEVER: Final = "never 0"
"""An order that lets the process live, and has it note its stages."""

_started = multiprocessing.get_context("forkserver")
# A process is forked off one that has imported everything and done nothing: a tenth of what a start takes otherwise.
_started.set_forkserver_preload(["tests.matrix.program", "pytest"])
_processes = threading.Lock()  # multiprocessing keeps its list of children without one


class Service:
    """A service in a folder of its own, on whatever port it got."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.port = 0
        self._process: ForkServerProcess | None = None
        self._log_begins = 0

    def start(self, port: int = 0, *, late_s: int = 0) -> "Service":
        """Starts it, and returns once it serves; as if that were so much later."""
        self._log_begins = len(self.log())
        start = Start(self.folder, self.environment, port, late_s)
        with _processes:
            self._process = _started.Process(target=live, args=(start,), daemon=True)
            self._process.start()
        until(lambda: self._is_serving() or self.exit_code() is not None, "it serves", deadline_s=START_WITHIN_S)
        assert self.exit_code() is None, f"the service ended at its start: {self.log()[self._log_begins :]}"
        return self

    def _is_serving(self) -> bool:
        for line in self.log()[self._log_begins :].splitlines(keepends=True):
            if '"event":"serving"' in line and line.endswith("\n"):
                self.port = int(json.loads(line)["address"].rpartition(":")[2])
                return True
        return False

    def exit_code(self) -> int | None:
        """The exit code, a signal's number below zero; None while it lives."""
        assert self._process is not None
        with _processes:
            return self._process.exitcode

    def is_dead(self) -> bool:
        """Whether it has ended, by whatever."""
        return self.exit_code() is not None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    def arm(self, order: str = NEVER, kind: type[OperationPoint | FlowPoint] = OperationPoint) -> None:
        """Lets it note its crash points of a kind from now on, and die at the ordered one (``crash_point time``)."""
        part = self.folder / f"{ORDER_FILE}.part"
        part.write_text(f"{kind.__name__} {order}")
        part.rename(self.folder / ORDER_FILE)

    def disarm(self) -> None:
        """Lets it and its successors live."""
        (self.folder / ORDER_FILE).unlink(missing_ok=True)

    def passed(self) -> list[str]:
        """The stages that were reached while it was armed, in their order."""
        path = self.folder / PASSED_FILE
        return path.read_text().split() if path.exists() else []

    def kill(self) -> None:
        """Kills the main process alone, as a power cut does; returns once it is gone."""
        if self._process is not None and not self.is_dead():
            os.kill(self.pid, signal.SIGKILL)
            until(self.is_dead, "it is dead")

    def ask_to_stop(self) -> None:
        """Asks it politely to stop, and returns at once."""
        os.kill(self.pid, signal.SIGTERM)

    def is_listening(self) -> bool:
        """Whether anybody takes connections on its port."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def client(self, key: str) -> Client:
        """A caller of it."""
        return Client(port=self.port, key=key)

    def log(self) -> str:
        """Everything that it has written so far."""
        path = self.folder / LOG_FILE
        return path.read_text(errors="replace") if path.exists() else ""
