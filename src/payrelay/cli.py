"""The command line: reads the settings, does one thing, and says in one line why it couldn't.

What only the serving commands need is imported in them: the others should not wait for a web server to load.
"""

import asyncio
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated, Final

import typer
import uvloop
from rich.console import Console

from payrelay.clock import Clock
from payrelay.errors import SettingsError, StoreError
from payrelay.key_commands import keys
from payrelay.settings import read_settings
from payrelay.store import open_database
from payrelay.store.meta import schema_version

UNUSABLE: Final = 2
"""The exit code of a command that couldn't begin."""
WRONG: Final = 1
"""The exit code of ``check`` where something is wrong."""

app = typer.Typer(
    name="payrelay",
    help="Relays payments to a gateway: nobody is charged twice, no answer is lost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
schema = typer.Typer(help="The database's schema.", no_args_is_help=True)
app.add_typer(keys, name="keys")
app.add_typer(schema, name="db")

Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(help="The port to listen on; 0 takes any free one.", min=0, max=65_535)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits; an expected failure is one line on standard error."""
    try:
        app(args=arguments, prog_name="payrelay")
    except (SettingsError, StoreError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))


def fail(line: str) -> None:
    """Says why and exits."""
    sys.stderr.write(f"payrelay: {line}\n")
    sys.exit(UNUSABLE)


@app.command()
def serve(host: Host = "127.0.0.1", port: Port = 8080) -> None:
    """Start the service."""
    from payrelay import server
    from payrelay.api.request_log import json_log

    uvloop.run(server.serve(read_settings(), host, port, json_log(sys.stdout.buffer, Clock())))


@app.command()
def demo(host: Host = "127.0.0.1", port: Port = 8080) -> None:
    """Start the service with a gateway simulator, and print calls to copy."""
    from payrelay.demo import run_demo

    uvloop.run(run_demo(host, port))


@app.command()
def simulate(host: Host = "127.0.0.1", port: Port = 8600) -> None:
    """Start the gateway simulator alone, with the demo's customers, payments and subscriptions."""
    import payrelay_simulator

    try:
        payrelay_simulator.run(host, port, prepare=payrelay_simulator.demo_world)
    except OSError as error:
        raise SettingsError(f"can't listen on {host}:{port}: {error.strerror or error}") from error


@app.command()
def check() -> None:
    """Say what is right and wrong with settings, database and gateways."""
    from payrelay.check import findings

    console = Console(highlight=False)

    async def print_all() -> bool:
        is_right = True
        async for finding in findings(read_settings, Clock()):
            mark = "[green]✓[/]" if finding.is_right else "[red]✗[/]"
            console.print(mark, end=" ")
            console.print(f"{finding.subject}: {finding.text}", markup=False, soft_wrap=True)
            is_right = is_right and finding.is_right
        return is_right

    if not asyncio.run(print_all()):
        raise typer.Exit(WRONG)


@schema.command()
def upgrade() -> None:
    """Bring the database's schema up to date."""
    number = _schema_version()
    sys.stderr.write(f"The database is up to date, at version {number}.\n")


@schema.command("version")
def show_schema_version() -> None:
    """Tell which version the database's schema has; it is brought up to date by that."""
    sys.stdout.write(f"{_schema_version()}\n")


@app.command()
def settle(
    operation_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only these; without one, all that are open.")
    ] = None,
) -> None:
    """Ask the gateway now what became of the operations that are open."""
    from payrelay.settle_command import run_settle

    if not uvloop.run(run_settle(read_settings(), operation_ids or [])):
        raise typer.Exit(WRONG)


@app.command()
def version() -> None:
    """Tell the program's version."""
    sys.stdout.write(f"payrelay {metadata.version('payrelay')}\n")


def _schema_version() -> int:
    async def read() -> int:
        database = await open_database(read_settings().database_url.reveal(), clock=Clock(), owner=False)
        try:
            return await schema_version(database)
        finally:
            await database.close()

    return asyncio.run(read())
