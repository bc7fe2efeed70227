"""The service as it is, but that it stops itself with SIGSTOP between an intent and its sending, once it is told to."""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Final

import uvloop

from payrelay import server
from payrelay.api.http.request_log import json_log
from payrelay.clock import Clock
from payrelay.runtime.hooks import FlowPoint, OperationPoint
from payrelay.settings import read_settings

ORDER: Final = "pause"
"""A file in the process's folder; the process takes it away, and stops."""


def stop_where_told(point: OperationPoint | FlowPoint, _id: str) -> None:
    """Stops the whole process before a call is sent, where the order lies in its folder."""
    if point is not OperationPoint.SENDING:
        return
    try:
        Path(ORDER).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGSTOP)


def main() -> None:
    """Serves as ``payrelay serve --host HOST --port PORT`` does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("serve", choices=["serve"])
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    settings = read_settings(dict(os.environ), Path.cwd())
    log = json_log(sys.stdout.buffer, Clock())
    uvloop.run(server.serve(settings, given.host, given.port, log, reached=stop_where_told))


if __name__ == "__main__":
    main()
