"""What commands work with: the settings, the flows beside a running server, and the operator with a reason.

Help must appear at once. What takes long to load, such as the driver of a database or the checks of the settings, is
therefore imported in the functions that need it.
"""

import gc
import os
import pwd
import sys
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from payrelay.cli.terminal.messages import CommandError, complain, say
from payrelay.clock import Clock
from payrelay.core.text.operator_text import WordsError, name_of, reason_of

if TYPE_CHECKING:
    from payrelay.flows.relay import Relay
    from payrelay.settings import Settings


DEMO: Final = Path(".payrelay/payrelay.toml")
"""Where a demo leaves its settings."""
UNUSED: Final = ("rich", "greenlet", "anyio")
"""Modules that structlog and granian load where they find them: for tracebacks in colour, and for other event loops."""


@contextmanager
def loading() -> Iterator[None]:
    """Lets the garbage collector rest while a service is loaded, and takes what was loaded out of its sight.

    Modules make hundreds of thousands of objects that live as long as the process. The collector would visit them over
    and over while more are made, and find nothing: a fifth of the time.

    What libraries load if it is there, and a service never uses, counts as missing meanwhile (``UNUSED``).
    """
    gc.disable()
    unused = [name for name in UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(unused))  # type: ignore[arg-type] # None makes an import fail, as documented
    try:
        yield
    finally:
        for name in unused:
            del sys.modules[name]
        gc.enable()
    gc.freeze()


def read_settings(*, may_be_a_demos: bool = True) -> "Settings":
    """Reads the settings of this process. Raises SettingsError.

    Where nothing is set, and the working directory has a demo, they are the demo's, which is said.
    """
    from payrelay import settings

    if may_be_a_demos and settings.are_unset() and DEMO.is_file():
        say(f"Nothing is set here, so this is about the demo in {DEMO.parent}/.")
        return settings.read_settings({settings.CONFIG_VARIABLE: str(DEMO)})
    return settings.read_settings()


def _in_words(event: MutableMapping[str, Any]) -> str:
    if event["event"] == "row_forged":
        return f"{event['row']} was changed by something other than Payrelay, and is left out"
    if event["event"] == "database_behind":
        return f"the database is behind: {event['reason']}"
    return str(event["event"])


@asynccontextmanager
async def session(
    settings: "Settings",
    *,
    takes_effect: bool = False,
    level: str = "error",
    in_words: Callable[[MutableMapping[str, Any]], str] = _in_words,
) -> "AsyncIterator[Relay]":
    """Opens the flows on the database, which a server may be using at the same time.

    With ``takes_effect`` the command may send to a gateway: as in the service, which server takes the writes is
    watched, and the marks outside are compared first.

    Raises SettingsError; StoreError, also where there is no database, or where it must be upgraded first.

    A command has no log. What would be logged, from ``level`` on, goes to standard error, as ``in_words`` puts it.
    """
    import structlog

    from payrelay.app import opened_relay, opened_resources, watch_writes
    from payrelay.runtime.hooks import Hooks

    def say_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
        complain(in_words(event))
        raise structlog.DropEvent

    log = structlog.wrap_logger(
        None, processors=[say_event], wrapper_class=structlog.make_filtering_bound_logger(level)
    )
    async with (
        opened_resources(settings, Clock()) as shared,
        opened_relay(settings, shared, clock=Clock(), log=log, hooks=Hooks()) as relay,
    ):
        if takes_effect:
            watch_writes(relay, shared.database)
            await relay.database.marks.compare_files()
        yield relay


def reason_from(text: str) -> str:
    """Reads --reason; raises CommandError."""
    if not text:
        raise CommandError("--reason is missing: say why, for those who read the history later")
    try:
        return reason_of(text)
    except WordsError as error:
        raise CommandError(f"--reason {error}") from None


def operator_from(text: str | None) -> str:
    """Reads --by; where it is missing, gives the user who is logged in. Raises CommandError."""
    try:
        return name_of(login_name() if text is None else text)
    except WordsError as error:
        raise CommandError(f"--by {error}") from None


def login_name() -> str:
    """Gives the name of the user who logged in, also behind sudo; without a login, the user of the process."""
    try:
        return os.getlogin()
    except OSError:
        pass
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
