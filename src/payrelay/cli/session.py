"""What the commands share: options, the settings, the stories beside a running server; and who decides, and why.

Whoever asks for help waits for the commands' files. What takes long to load, such as a database's driver or the checks
of the settings, is therefore imported in the functions that need it.
"""

import os
import pwd
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, MutableMapping
from contextlib import asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, ParamSpec

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from payrelay.clock import Clock
from payrelay.core.persons import WordsError, name_of, reason_of

if TYPE_CHECKING:
    from payrelay.flows.relay import Relay
    from payrelay.settings import Settings

DONE: Final = 0
REFUSED: Final = 1
"""The exit code where the state of things doesn't allow what was asked, or somebody thought better of it."""
WRONG: Final = 1
"""The exit code of a command that looks for faults, where it found one."""
UNKNOWN: Final = 2
"""The exit code where there is nothing of that name."""

Json = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept. Required.", show_default=False)]
By = Annotated[str | None, typer.Option(help="Who decides; without it, whoever is logged in.")]
Sure = Annotated[bool, typer.Option("--yes", help="Don't ask back.")]

P = ParamSpec("P")


def awaited(work: Callable[P, Coroutine[Any, Any, int]]) -> Callable[P, None]:
    """Makes a command of a coroutine function, which gives the program's exit code."""

    @wraps(work)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        import uvloop

        code = uvloop.run(work(*arguments, **options))
        if code:
            raise typer.Exit(code)

    return run


def read_settings() -> "Settings":
    """Reads the settings of this process. Raises SettingsError."""
    from payrelay import settings

    return settings.read_settings()


def _name(event: MutableMapping[str, Any]) -> str:
    return str(event["event"])


@asynccontextmanager
async def session(
    settings: "Settings", *, level: str = "error", told: Callable[[MutableMapping[str, Any]], str] = _name
) -> "AsyncIterator[Relay]":
    """Opens the store, which a server may be using at the same time. Raises SettingsError, StoreError.

    A command has no log: what would stand there, from ``level`` on, is said on standard error, as ``told`` puts it.
    """
    import structlog

    from payrelay.app import opened_database, opened_relay
    from payrelay.runtime.hooks import Hooks

    def say_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
        complain(told(event))
        raise structlog.DropEvent

    log = structlog.wrap_logger(
        None, processors=[say_event], wrapper_class=structlog.make_filtering_bound_logger(level)
    )
    async with (
        opened_database(settings, Clock(), is_owner=False) as database,
        opened_relay(settings, database, clock=Clock(), log=log, hooks=Hooks()) as relay,
    ):
        yield relay


def reason_from(text: str) -> str:
    """Reads --reason; raises WordsError."""
    if not text:
        raise WordsError("--reason is missing: say why, for whoever reads it later")
    try:
        return reason_of(text)
    except WordsError as error:
        raise WordsError(f"--reason {error}") from None


def operator_from(text: str | None) -> str:
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


def say(line: str) -> None:
    """Says on standard error what was done: standard output is for what is to be read by programs."""
    sys.stderr.write(f"{line}\n")


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
