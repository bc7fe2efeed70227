"""Sends alerts to the alert channels, a command and an address; and keeps the audit's anchors in a file.

No alert contains a secret. No failure quotes the command or the address, because the address may contain a secret.
"""

import asyncio
import fcntl
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from payrelay.core.moments import rfc3339
from payrelay.core.payments.schedules import DAY_MS
from payrelay.store.alerts import Alerts

COMMAND_MAX_S: Final = 30.0
"""How long a command may run; a longer one is killed."""

_TAIL_BYTES: Final = 200
"""More than a line of the file of anchors has: a time, a number of up to 18 digits, and a digest of 64."""
_DATE: Final = slice(len("2026-01-01"))


class NotGivenError(Exception):
    """A channel did not accept an alert; the text says why, in a few words without a secret."""


AlertChannel = Callable[[bytes], Awaitable[None]]
"""Sends an alert, as JSON; raises NotGivenError where the channel did not accept it."""


class AnchorsOutside:
    """Keeps the newest anchor of the audit outside the database, once a day.

    ``path`` is the file that gets it, None for none. ``is_told`` says whether the alert channels get it too. ``seen``
    is the newest anchor that this process has seen; None before the first.
    """

    def __init__(self, path: Path | None = None, *, is_told: bool = False) -> None:
        self._path = path
        self.is_told = is_told
        self.seen: str | None = None
        self._kept_on: int | None = None

    def is_due(self, now_ms: int) -> bool:
        """True where an anchor is to be kept on this day, and this process has kept none yet."""
        return (self._path is not None or self.is_told) and self._kept_on != now_ms // DAY_MS

    async def known(self) -> list[str]:
        """Gives the anchors that the database must have: the one that was seen, and that of the file's last line."""
        noted = None if self._path is None else await asyncio.to_thread(_last_anchor, self._path)
        return [each for each in (self.seen, noted) if each is not None]

    async def write(self, anchor: str, now_ms: int) -> None:
        """Adds a line to the file, unless its last line is of this day; several processes may share the file.

        The day counts as kept only once the line is on disk. Raises OSError where the file can't be written.
        """
        if self._path is not None:
            await asyncio.to_thread(_append, self._path, rfc3339(now_ms, "seconds"), anchor)
        self._kept_on = now_ms // DAY_MS


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertChannels:
    """The alert channels, and the stores of alerts.

    Attributes:
        alerts: the store of each kind of alert.
        channels: by the names that the store has for them.
        anchors: where the audit's anchors are kept.
        under_way: alerts that this process is sending now, by the id of their subject and its version.
    """

    alerts: tuple[Alerts, ...]
    channels: Mapping[str, AlertChannel]
    anchors: AnchorsOutside = field(default_factory=AnchorsOutside)
    under_way: set[tuple[str, int]] = field(default_factory=set)


class Command:
    """Runs a program with the alert on its standard input; exit code 0 means that it accepted the alert.

    The program gets an environment of its own, and is not run by a shell. Its standard error is Payrelay's.
    """

    def __init__(
        self, arguments: tuple[str, ...], environment: Mapping[str, str], *, limit_s: float = COMMAND_MAX_S
    ) -> None:
        self._arguments = arguments
        self._environment = environment
        self._limit_s = limit_s

    async def __call__(self, body: bytes) -> None:
        """Sends an alert; raises NotGivenError where the command did not accept it."""
        process = await self._started(body)
        try:
            async with asyncio.timeout(self._limit_s):
                await process.wait()
        except TimeoutError:
            raise NotGivenError(f"the command had not ended after {self._limit_s:g} s") from None
        finally:
            await _end(process)
        if process.returncode != 0:
            raise NotGivenError(f"the command ended with exit code {process.returncode}")

    async def _started(self, body: bytes) -> asyncio.subprocess.Process:
        # The program reads from memory rather than from a pipe, so that it may read late, in part, or not at all.
        with os.fdopen(os.memfd_create("alert"), "w+b") as stdin:
            stdin.write(body)
            stdin.seek(0)
            try:
                # A process group of its own, so that it can be killed with all its child processes.
                return await asyncio.create_subprocess_exec(
                    *self._arguments,
                    stdin=stdin,
                    stdout=asyncio.subprocess.DEVNULL,
                    env=self._environment,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise NotGivenError("the command could not be started") from error


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kills a command that still runs, with all its child processes, and waits for its end."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _last_anchor(path: Path) -> str | None:
    """Reads the anchor of the file's last line; None where there is no whole line."""
    with suppress(OSError), path.open("rb") as file:
        tail = _tail_of(file)
        moment, _, anchor = _last_line(tail).partition(" ")
        return anchor if moment and anchor and tail.endswith(b"\n") else None
    return None


def _tail_of(file: BinaryIO) -> bytes:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
    return file.read()


def _last_line(tail: bytes) -> str:
    return tail.rstrip(b"\n").rpartition(b"\n")[2].decode("ascii", "replace")


def _append(path: Path, moment: str, anchor: str) -> None:
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        tail = _tail_of(file)
        if _last_line(tail)[_DATE] == moment[_DATE]:
            return
        # A line that a full disk cut off must not swallow this one.
        gap = "" if not tail or tail.endswith(b"\n") else "\n"
        file.write(f"{gap}{moment} {anchor}\n".encode("ascii"))
        file.flush()
        os.fsync(file.fileno())
