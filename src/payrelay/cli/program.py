"""The commands that start the service, the demo and the simulator, and those that tell versions."""

import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from payrelay.cli.session import DONE, awaited, read_settings, say
from payrelay.clock import Clock
from payrelay.errors import SettingsError

app = typer.Typer()
schema = typer.Typer(help="The database's schema.", no_args_is_help=True)
app.add_typer(schema, name="db")

Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(help="The port to listen on; 0 takes any free one.", min=0, max=65_535)]
Shop = Annotated[Path | None, typer.Option(help="A program to run beside it, such as examples/shop/shop.py.")]


@app.command()
@awaited
async def serve(host: Host = "127.0.0.1", port: Port = 8080) -> int:
    """Start the service."""
    from payrelay import server
    from payrelay.api.http.request_log import json_log

    await server.serve(read_settings(), host, port, json_log(sys.stdout.buffer, Clock()))
    return DONE


@app.command()
@awaited
async def demo(host: Host = "127.0.0.1", port: Port = 8080, shop: Shop = None) -> int:
    """Start the service with a gateway simulator, and print calls to copy."""
    from payrelay.cli.demo import run_demo

    if shop is not None and not shop.is_file():
        raise SettingsError(f"{shop}: there is no such program")
    await run_demo(host, port, shop)
    return DONE


@app.command()
def simulate(host: Host = "127.0.0.1", port: Port = 8600) -> None:
    """Start the gateway simulator alone, with the demo's customers, payments and subscriptions."""
    import payrelay_simulator

    try:
        payrelay_simulator.run(host, port, prepare=payrelay_simulator.demo_world)
    except OSError as error:
        raise SettingsError(f"can't listen on {host}:{port}: {error.strerror or error}") from error


@app.command()
def version() -> None:
    """Tell the program's version."""
    sys.stdout.write(f"payrelay {metadata.version('payrelay')}\n")


@schema.command()
@awaited
async def upgrade() -> int:
    """Bring the database's schema up to date."""
    say(f"The database is up to date, at version {await _schema_version()}.")
    return DONE


@schema.command("version")
@awaited
async def show_schema_version() -> int:
    """Tell which version the database's schema has; it is brought up to date by that."""
    sys.stdout.write(f"{await _schema_version()}\n")
    return DONE


async def _schema_version() -> int:
    from payrelay.app import upgraded_version

    return await upgraded_version(read_settings(), Clock())
