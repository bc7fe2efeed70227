"""What an operator's command works with: the stories, beside a running server; and who decides, and why."""

import os
import pwd
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from structlog.typing import EventDict

from payrelay.app import opened_database, opened_relay
from payrelay.clock import Clock
from payrelay.core.persons import WordsError, name_of, reason_of
from payrelay.flows.relay import Relay
from payrelay.runtime.hooks import Watch
from payrelay.settings import Settings

DONE: Final = 0
REFUSED: Final = 1
"""The exit code where the state of things doesn't allow what was asked, or somebody thought better of it."""
UNKNOWN: Final = 2
"""The exit code where there is nothing of that name."""


@asynccontextmanager
async def session(settings: Settings) -> AsyncIterator[Relay]:
    """Opens the store, which a server may be using at the same time. Raises SettingsError, StoreError."""
    log = structlog.wrap_logger(None, processors=[_told], wrapper_class=structlog.make_filtering_bound_logger("error"))
    async with (
        opened_database(settings, Clock(), is_owner=False) as database,
        opened_relay(settings, database, clock=Clock(), log=log, watch=Watch()) as relay,
    ):
        yield relay


def reason(text: str) -> str:
    """Reads --reason; raises WordsError."""
    if not text:
        raise WordsError("--reason is missing: say why, for whoever reads it later")
    try:
        return reason_of(text)
    except WordsError as error:
        raise WordsError(f"--reason {error}") from None


def operator(text: str | None) -> str:
    """Reads --by, or finds out who is logged in; raises WordsError."""
    try:
        return name_of(login_name() if text is None else text)
    except WordsError as error:
        raise WordsError(f"--by {error}") from None


def login_name() -> str:
    """Gives the name under which somebody logged in, also behind sudo; where nobody did, the process's user."""
    try:
        return os.getlogin()
    except OSError:
        pass
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def complain(line: str) -> None:
    """Says on standard error why something was not done."""
    sys.stderr.write(f"payrelay: {line}\n")


def progress_bar(console: Console) -> Progress:
    """Gives the bar of a long command, for a person who looks on; nothing where nobody does."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _told(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Says an event in one line: a command has no log."""
    complain(str(event["event"]))
    raise structlog.DropEvent
