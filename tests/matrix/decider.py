"""An operator's decision as a process of its own, beside the service, that dies where it is told to."""

import ctypes
import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import Final, NamedTuple

import uvloop
from tests.matrix.program import ORDER_FILE, PASSED_FILE, LateClock, Start, Trigger

from payrelay.api.http.request_log import json_log
from payrelay.app import opened_relay, opened_resources
from payrelay.core.database.schema_changes import ANY
from payrelay.core.operators.held_decisions import HeldDecision
from payrelay.flows.operators.held.decide_held import HeldFilter, decide_held, held_operations
from payrelay.runtime.hooks import Hooks, OperationPoint
from payrelay.settings import read_settings

FOLDER: Final = "decider"
"""Where its order lies, apart from the service's."""
LOG_FILE: Final = "decide.log"
ENDS_WITHIN_S: Final = 90.0
_PR_SET_PDEATHSIG: Final = 1
_processes: Final = multiprocessing.get_context("forkserver")


class Decided(NamedTuple):
    """How a decision ended: the exit code, a signal's number below zero, and the stages that it passed."""

    exit_code: int | None
    passed: list[str]


def decide(start: Start, key: str, decision: HeldDecision, order: str) -> Decided:
    """Decides about what is held of a request, and dies as ordered (``crash_point time``); returns once it has ended.

    Where nothing is held any more it does nothing.
    """
    own = start.folder / FOLDER
    own.mkdir(exist_ok=True)
    (own / PASSED_FILE).unlink(missing_ok=True)
    (own / ORDER_FILE).write_text(f"{OperationPoint.__name__} {order}")
    process = _processes.Process(target=_live, args=(start, key, decision), daemon=True)
    process.start()
    process.join(ENDS_WITHIN_S)
    passed = own / PASSED_FILE
    return Decided(process.exitcode, passed.read_text().split() if passed.exists() else [])


def _live(start: Start, key: str, decision: HeldDecision) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir(start.folder)
    with Path(LOG_FILE).open("ab", buffering=0) as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    uvloop.run(_decide(start, key, decision))


async def _decide(start: Start, key: str, decision: HeldDecision) -> None:
    settings, clock = read_settings(start.environment, start.folder), LateClock(start.late_s)
    log, hooks = json_log(sys.stdout.buffer, clock), Hooks(reached=Trigger(start.folder / FOLDER).reached)
    async with (
        opened_resources(settings, clock, changes=ANY) as shared,
        opened_relay(settings, shared, clock=clock, log=log, hooks=hooks) as relay,
    ):
        held = [each async for each in held_operations(relay, HeldFilter()) if each.idempotency_key == key]
        for each in held:
            await decide_held(relay, each, decision, operator="ann", reason="the matrix")
        await relay.background.finish(ENDS_WITHIN_S / 3)
