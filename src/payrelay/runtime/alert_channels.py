"""The ways on which an alert leaves the program: to a command, and to an address.

Neither is given a secret, and neither is quoted in a failure: an address may hold one.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import aiohttp

from payrelay.store.alerts import Alerts

COMMAND_MAX_S: Final = 30.0
"""What has not taken an alert by then hangs, and is ended."""
ADDRESS_MAX_S: Final = 10.0
"""The same for an address, from the name to the status of the answer."""

_HEADERS: Final = {"Content-Type": "application/json", "User-Agent": "payrelay"}


class NotGivenError(Exception):
    """The alert was not taken; the text says why, in a few words without a secret."""


AlertChannel = Callable[[bytes], Awaitable[None]]
"""Gives an alert, as JSON; raises NotGivenError where it was not taken."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertChannels:
    """What an alert is given with.

    Attributes:
        alerts: where those of each kind are kept until they were given.
        channels: the addressees by the names under which the store remembers them.
        under_way: alerts that this process is giving now, by what they are about and its version.
    """

    alerts: tuple[Alerts, ...]
    channels: Mapping[str, AlertChannel]
    under_way: set[tuple[str, int]] = field(default_factory=set)


class Command:
    """Runs a program, with the alert on its standard input; exit code 0 means that it was taken.

    It sees an environment of its own, and is not run by a shell. What it says goes where our own errors go.
    """

    def __init__(
        self, arguments: tuple[str, ...], environment: Mapping[str, str], *, limit_s: float = COMMAND_MAX_S
    ) -> None:
        self._arguments = arguments
        self._environment = environment
        self._limit_s = limit_s

    async def __call__(self, body: bytes) -> None:
        """Gives an alert; raises NotGivenError where it was not taken."""
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
        # It reads from memory rather than from a pipe: whether, when and how much of it is then its own business.
        with os.fdopen(os.memfd_create("alert"), "w+b") as stdin:
            stdin.write(body)
            stdin.seek(0)
            try:
                # A group of its own, so that it can be ended with all that it started.
                return await asyncio.create_subprocess_exec(
                    *self._arguments,
                    stdin=stdin,
                    stdout=asyncio.subprocess.DEVNULL,
                    env=self._environment,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise NotGivenError("the command could not be started") from error


class Address:
    """Posts the alert; any status from 200 to 299 means that it was taken."""

    def __init__(self, url: str, *, limit_s: float = ADDRESS_MAX_S) -> None:
        self._url = url
        self._limit_s = limit_s

    async def __call__(self, body: bytes) -> None:
        """Gives an alert; raises NotGivenError where it was not taken."""
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._limit_s)) as session,
                session.post(self._url, data=body, headers=_HEADERS, allow_redirects=False) as response,
            ):
                status = response.status
        except TimeoutError:
            raise NotGivenError(f"the address had not answered after {self._limit_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotGivenError("the address could not be reached") from error
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise NotGivenError(f"the address answered with HTTP {status}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends a command that still runs, with all that it started, and waits for its end."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
