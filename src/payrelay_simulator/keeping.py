"""Keeps a world in a file, so that a later start goes on with it: money, clock, notifications, faults and switches.

Rules:

1. A change is in the file before anybody is told of it: before the reply to a call, and before a notification goes out.
   So whoever heard of a payment finds it again after the simulator was killed.
2. The file is replaced as a whole. One that can't be read is an error, and never a world without what is missing.
3. The file is for the same machine and version: it is read by `pickle`, which carries out what is in it. It lies in the
   folder of whoever started the simulator, and nobody else can write there.

A call that was under way when the simulator was killed may have been forgotten: then it never happened.
"""

import os
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

from payrelay_simulator.clock import Clock
from payrelay_simulator.errors import SimulatorError
from payrelay_simulator.stage import Stage
from payrelay_simulator.world import World

VERSION = 2
"""Of the file; one of another version is not read."""

OWN = 0o600


class KeptWorldError(SimulatorError):
    """A kept world can't be read."""


class Keeper:
    """Writes the present world of a stage into a file whenever it has changed."""

    def __init__(self, stage: Stage, path: Path) -> None:
        self._stage = stage
        self._path = path

    def keep(self) -> None:
        """Replace the file. What was written stays when the process is killed; the machine's own end may lose it."""
        world = self._stage.world
        now = world.clock.now()
        ahead_s = (now - datetime.now(UTC)).total_seconds()
        draft = self._path.with_name(f"{self._path.name}.new")
        content = pickle.dumps((VERSION, now, ahead_s, world.parts()), protocol=5)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWN), "wb") as file:  # noqa: PTH123  its mode
            file.write(content)
        draft.replace(self._path)


def kept_clock(now: datetime, ahead_s: float) -> Clock:
    """Return a clock that is ahead of the machine's as the kept one was, and never goes back behind it."""
    clock = Clock.running()
    present = max(now, datetime.now(UTC) + timedelta(seconds=ahead_s))
    clock.advance(max(0.0, (present - clock.now()).total_seconds()))
    return clock


def read_kept(path: Path) -> tuple[Clock, dict[str, object]]:
    """Return the clock and the parts of a kept world. Raises KeptWorldError."""
    try:
        version, now, ahead_s, parts = pickle.loads(path.read_bytes())  # noqa: S301  our own file, see above
    except FileNotFoundError:
        raise KeptWorldError(f"{path} isn't there") from None
    except Exception as error:  # noqa: BLE001  pickle raises whatever the file leads it to
        raise KeptWorldError(f"{path} can't be read: {type(error).__name__}") from None
    if version != VERSION or not isinstance(parts, dict) or parts.keys() != World.PARTS:
        raise KeptWorldError(f"{path} is of another version")
    return kept_clock(now, ahead_s), parts
