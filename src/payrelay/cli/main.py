"""The command line: finds a command by its name, runs it, and says in one line why it couldn't.

A command's file is loaded when the command is asked for; no web server and no database's driver is, before it runs.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final

import typer
from typer._click import Command, Context
from typer.core import TyperGroup

from payrelay.core.events.delivery import PatternError
from payrelay.core.persons import WordsError
from payrelay.errors import SettingsError, StoreError

UNUSABLE: Final = 2
"""The exit code of a command that couldn't begin."""

FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "serve": "program",
        "demo": "program",
        "simulate": "program",
        "check": "check",
        "settle": "settle",
        "pause": "accounts",
        "resume": "accounts",
        "version": "program",
        "keys": "keys",
        "db": "program",
        "audit": "audit",
        "endpoints": "endpoints",
        "events": "endpoints",
        "customers": "customers",
        "seal": "seal",
        "client-tokens": "client_tokens",
        "operations": "operations",
        "notifications": "notifications",
    }
)
"""Commands and groups of commands, in the order of the list, with the file whose ``app`` declares each."""


class NamedCommands(TyperGroup):
    """The commands by their names; each is loaded when it is asked for."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002  typer's own
        """Gives all names."""
        return list(FILES)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Gives a command; for a name that there isn't loads all, so that typer can say which one was meant."""
        for name in [cmd_name] if cmd_name in FILES else FILES:
            if name not in self.commands:
                self.add_command(_loaded(name), name)
        return super().get_command(ctx, cmd_name)


def _loaded(name: str) -> Command:
    app: typer.Typer = import_module(f"payrelay.cli.{FILES[name]}").app
    group = typer.main.get_group(app)
    return group if group.name == name else group.commands[name]


commands: Final = NamedCommands(
    name="payrelay",
    help="Relays payments to a gateway: nobody is charged twice, no answer is lost.",
    no_args_is_help=True,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits; an expected failure is one line on standard error."""
    try:
        commands(args=arguments, prog_name="payrelay")
    except (SettingsError, StoreError, WordsError, PatternError) as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))


def _fail(line: str) -> None:
    sys.stderr.write(f"payrelay: {line}\n")
    sys.exit(UNUSABLE)
