"""The service as a program of its own that dies where it is told to: all of it production code but for the trigger."""

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Final, NamedTuple

import uvloop

from payrelay import server
from payrelay.api.http.request_log import json_log
from payrelay.clock import Clock
from payrelay.runtime.hooks import FlowPoint, OperationPoint
from payrelay.settings import read_settings

ORDER_FILE: Final = "die-at"
"""As long as it is there stages of a kind are counted; it holds that kind, and the stage and time of the death."""
PASSED_FILE: Final = "passed"
"""The stages that were reached meanwhile, one a line; what was written is there after the death too."""
LOG_FILE: Final = "serve.log"

_PR_SET_PDEATHSIG: Final = 1


class Start(NamedTuple):
    """What a process is told at its start: where it lives, its settings, the port (0 for any), and how late it is."""

    folder: Path
    environment: dict[str, str]
    port: int = 0
    late_s: int = 0


class LateClock(Clock):
    """The clock of a process that was started later than it was: time that nobody wants to wait for has passed."""

    def __init__(self, late_s: int) -> None:
        self._late_s = late_s

    def now_ms(self) -> int:
        """Gives what the wall clock will say so much later."""
        return super().now_ms() + self._late_s * 1000

    def boot_s(self) -> float:
        """Gives what the other clock will say so much later."""
        return super().boot_s() + self._late_s


class Trigger:
    """Counts the stages that are reached once an order lies in the folder, and dies at the one that it names."""

    def __init__(self, folder: Path) -> None:
        self._order = folder / ORDER_FILE
        self._passed = folder / PASSED_FILE
        self._times = 0

    def reached(self, crash_point: OperationPoint | FlowPoint, _id: str) -> None:
        """Notes the stage; where it is the one, nothing of this process goes on after this."""
        try:
            kind, wanted, time = self._order.read_text().split()
        except FileNotFoundError:
            return
        if type(crash_point).__name__ != kind:
            return
        with self._passed.open("a") as passed:
            passed.write(f"{crash_point}\n")
        self._times += crash_point == wanted
        if self._times == int(time) and crash_point == wanted:
            os.kill(os.getpid(), signal.SIGKILL)


def live(start: Start) -> None:
    """Serves as the start says, until a signal ends it."""
    # Whoever started us may be killed too; nothing of ours outlives it.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir(start.folder)
    with (start.folder / LOG_FILE).open("ab", buffering=0) as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    settings = read_settings(start.environment, start.folder)
    reached = Trigger(start.folder).reached
    clock = LateClock(start.late_s)
    told = json_log(sys.stdout.buffer, clock)
    uvloop.run(server.serve(settings, "127.0.0.1", start.port, told, reached=reached, clock=clock))
