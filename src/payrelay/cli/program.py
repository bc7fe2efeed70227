"""The commands that start the service and the simulator, and those that tell versions."""

import contextlib
import io
import logging
import sys
from enum import StrEnum
from typing import Annotated, Literal

import typer

from payrelay.cli.session import loading, read_settings
from payrelay.cli.terminal.declaring import awaited, examples, group
from payrelay.cli.terminal.messages import DONE, CommandError, say, show, show_version
from payrelay.clock import Clock

app = group()
schema = group("db", "The database: its schema, and its way into PostgreSQL.")
app.add_typer(schema)

Host = Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")]
Port = Annotated[
    int, typer.Option(metavar="NUMBER", help="The port to listen on; 0 takes any free one.", min=0, max=65_535)
]
ListenHost = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="The address to listen on, in place of the setting's.")
]
ListenPort = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER", help="The port, in place of the setting's; 0 takes any free one.", min=0, max=65_535
    ),
]


class LogFormat(StrEnum):
    """How lines of the log are written."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class Shell(StrEnum):
    """The shells that complete commands."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command(
    epilog=examples("payrelay serve", "payrelay serve --host 0.0.0.0 --port 80", "payrelay serve --log-format json")
)
@awaited
async def serve(
    *,
    host: ListenHost = None,
    port: ListenPort = None,
    log_format: Annotated[
        LogFormat, typer.Option(help="How log lines are written; auto is text on a terminal, and JSON elsewhere.")
    ] = LogFormat.AUTO,
    upgrade: Annotated[bool, typer.Option("--upgrade", help="Bring an old database up to date first.")] = False,
) -> int:
    """Start the service.

    It makes a missing database. It refuses an old one, unless it is told to upgrade it.
    """
    with loading():
        from payrelay import server
        from payrelay.cli.terminal.stray_lines import service_log

    settings = read_settings(may_be_a_demos=False)
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    is_text = log_format is LogFormat.TEXT or (log_format is LogFormat.AUTO and sys.stdout.isatty())
    listening = (settings.host if host is None else host, settings.port if port is None else port)
    settings = settings.model_copy(update={"host": listening[0]})
    with service_log(is_text=is_text, level=level) as log:
        await server.serve(settings, *listening, log, may_upgrade=upgrade)
    return DONE


@app.command(epilog=examples("payrelay simulate", "payrelay simulate --port 8700"))
def simulate(
    host: Host = "127.0.0.1",
    port: Port = 8600,
    profile: Annotated[
        Literal["docs", "observed"], typer.Option(help="Follow the gateway's documents, or what was seen of it.")
    ] = "docs",
) -> None:
    """Start the gateway simulator alone.

    It begins with the customers, payments and subscriptions of the demo.
    """
    import payrelay_simulator

    try:
        payrelay_simulator.run(host, port, prepare=payrelay_simulator.demo_world, profile=profile)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"can't listen on {host}:{port}: {error.strerror or error}") from error


@app.command(
    epilog=examples(
        "source <(payrelay completion bash)",
        "payrelay completion zsh > ~/.zfunc/_payrelay",
        "payrelay completion fish > ~/.config/fish/completions/payrelay.fish",
    )
)
def completion(
    context: typer.Context, shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="The shell.")]
) -> None:
    """Print the script that completes commands in a shell."""
    from typer.completion import shell_complete

    with contextlib.redirect_stdout(io.StringIO()) as script:
        shell_complete(context.find_root().command, {}, "payrelay", "_PAYRELAY_COMPLETE", f"source_{shell}")
    show(script.getvalue().strip())  # zsh looks at the first line only


@app.command(epilog=examples("payrelay version"))
def version() -> None:
    """Print the version of the program."""
    show_version()


@schema.command("upgrade", epilog=examples("payrelay db upgrade"))
@awaited
async def upgrade_database() -> int:
    """Bring the database up to date: its schema and its data.

    It may be stopped at any time and run again. On PostgreSQL services go on beside it.
    """
    from payrelay.app import opened_resources
    from payrelay.core.database.schema_changes import SchemaChanges
    from payrelay.flows.operators.inspect_database import inspect_database

    settings = read_settings(may_be_a_demos=False)
    async with opened_resources(settings, Clock(), changes=SchemaChanges(tell=say)) as shared:
        state = await inspect_database(shared.database)
        say(f"The database is up to date, at version {state.schema_version}.")
    return DONE


@schema.command("version", epilog=examples("payrelay db version"))
@awaited
async def show_schema_version() -> int:
    """Print the version of the schema."""
    from payrelay.app import opened_database
    from payrelay.flows.operators.inspect_database import inspect_database

    async with opened_database(read_settings(), Clock()) as database:
        state = await inspect_database(database)
    show(f"{state.schema_version}")
    return DONE
