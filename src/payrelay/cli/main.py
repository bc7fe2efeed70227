"""The command line: finds a command by its name, runs it, and turns every expected failure into one line.

The file of a command is loaded when the command is asked for. No web server and no driver of a database is loaded
before the command runs.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from types import MappingProxyType
from typing import Annotated, Any, Final

import typer
from typer.completion import get_completion_inspect_parameters
from typer.core import TyperCommand, TyperGroup

from payrelay.cli.terminal.declaring import examples, group
from payrelay.cli.terminal.messages import (
    INTERRUPTED,
    PIPE_CLOSED,
    REFUSED,
    UNUSABLE,
    CommandError,
    abandon_output,
    complain,
    logs_json,
    missing_package,
    prepare_streams,
    show_version,
)
from payrelay.errors import Refusal, SettingsError, StoreError
from payrelay.parts import parts

_COMMANDS_OF_RELAY: Final[Mapping[str, str]] = {
    "serve": "payrelay.cli.program",
    "simulate": "payrelay.cli.program",
    "check": "payrelay.cli.check",
    "health": "payrelay.cli.checks.health",
    "resolve": "payrelay.cli.resolve",
    "pause": "payrelay.cli.accounts",
    "resume": "payrelay.cli.accounts",
    "operations": "payrelay.cli.operations",
    "notifications": "payrelay.cli.notifications",
    "orders": "payrelay.cli.lists.orders",
    "payments": "payrelay.cli.lists.payments",
    "checkouts": "payrelay.cli.lists.checkouts",
    "subscriptions": "payrelay.cli.lists.subscriptions",
    "customers": "payrelay.cli.customers",
    "endpoints": "payrelay.cli.endpoints",
    "events": "payrelay.cli.endpoints",
    "keys": "payrelay.cli.keys",
    "principals": "payrelay.cli.principals",
    "client-tokens": "payrelay.cli.client_tokens",
    "seal": "payrelay.cli.seal",
    "audit": "payrelay.cli.audit",
    "retention": "payrelay.cli.storage.retention",
    "db": "payrelay.cli.program",
    "completion": "payrelay.cli.program",
    "version": "payrelay.cli.program",
}
FILES: Final[Mapping[str, str]] = MappingProxyType(
    {**_COMMANDS_OF_RELAY, **{name: module for part in parts() for name, module in part.commands.items()}}
)
"""Commands and groups of commands, in the order of the list, with the module whose ``app`` declares each.

A name of two words is a command of another part in a group.
"""


class LazyCommands(TyperGroup):
    """Finds the commands by their names, and loads each when it is asked for."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002  typer's own
        """Gives all names."""
        return [name for name in FILES if " " not in name]

    def get_command(self, ctx: object, cmd_name: str) -> TyperCommand | TyperGroup | None:
        """Gives a command; for an unknown name it loads all, so that typer can suggest the one that was meant."""
        names = self.list_commands(ctx)
        found = {name: _loaded(name) for name in ([cmd_name] if cmd_name in names else names)}
        self.commands.update(found)
        return found.get(cmd_name)


def _loaded(name: str) -> TyperCommand | TyperGroup:
    declared = _declared(name)
    found = declared if declared.name == name else declared.commands[name]
    if not isinstance(found, TyperCommand | TyperGroup):
        raise TypeError(f"{name} is no command of typer's")
    if isinstance(found, TyperGroup):
        for full in FILES:
            group_name, _, further = full.partition(" ")
            if group_name == name and further:
                found.commands[further] = _declared(full).commands[further]
    return found


def _declared(name: str) -> TyperGroup:
    """Gives all that the module of a command declares."""
    app: typer.Typer = import_module(FILES[name]).app
    return typer.main.get_group(app)


def _show_version(is_wanted: bool) -> None:  # noqa: FBT001  typer calls it
    if is_wanted:
        show_version()
        raise typer.Exit


root: Final = group("payrelay", "Relays payments to a gateway: nobody is charged twice, no answer is lost.")


@root.callback(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("payrelay demo", "payrelay keys create --help"),
)
def payrelay(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Holds the options of the program itself; typer calls it before each command."""


commands: Final = typer.main.get_group(root)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits; an expected failure is one line on standard error."""
    prepare_streams()
    get_completion_inspect_parameters()  # makes the shells known to typer, in case one asks for completions
    out = sys.stdout
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
    except BrokenPipeError:
        code = PIPE_CLOSED
    except SystemExit:
        if sys.stdout is out:  # typer has answered the completion of a shell
            raise
        code = PIPE_CLOSED  # typer has met a closed pipe, and put something harmless in the place of the streams
    try:
        out.flush()
    except OSError:
        abandon_output()
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Runs a command and gives the exit code. Raises BrokenPipeError where nobody reads the output any more."""
    try:
        code: Any = commands.main(arguments, prog_name="payrelay", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _misused(error, arguments)
    except CommandError as error:
        return _failed(str(error), error.code, arguments)
    except Refusal as refusal:
        return _failed(refusal.msg, REFUSED, arguments)
    except (SettingsError, StoreError) as error:
        return _failed(str(error), UNUSABLE, arguments)
    except ModuleNotFoundError as error:
        return _failed(missing_package(error), UNUSABLE, arguments)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _failed(
            f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), UNUSABLE, arguments
        )
    if code == INTERRUPTED:
        complain("interrupted")
    return int(code or 0)


def _misused(error: typer.TyperException, arguments: list[str]) -> int:
    """Tells what is wrong with what was typed; a group without a command is answered with its help."""
    text = error.format_message()
    if text.startswith("Usage: "):
        sys.stderr.write(f"{text}\n")
        return error.exit_code
    context: typer.Context | None = getattr(error, "ctx", None)
    names = takewhile(lambda argument: not argument.startswith("-"), arguments)
    typed = " ".join(["payrelay", *names]) if context is None else context.command_path
    text = " ".join(text.split()).replace("Value error, ", "")  # pydantic's prefix
    end = "" if text.endswith(("?", ".")) else "."
    return _failed(f"{text[:1].lower()}{text[1:]}{end} See {typed} --help", error.exit_code, arguments)


def _failed(text: str, code: int, arguments: list[str]) -> int:
    """Tells why a command failed; a service whose log is JSON tells it as a line of that log."""
    if logs_json(arguments):
        from payrelay.cli.terminal.stray_lines import tell_failed_start

        tell_failed_start(text)
    else:
        complain(text)
    return code
