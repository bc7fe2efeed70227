"""The command that starts the demo."""

from pathlib import Path
from typing import Annotated

import typer

from payrelay.cli.program import Host, Port
from payrelay.cli.terminal.declaring import awaited, examples, group
from payrelay.cli.terminal.messages import DONE, CommandError

app = group()

Shop = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A program to run beside it, such as examples/shop/python/shop.py.")
]


@app.command(epilog=examples("payrelay demo", "payrelay demo --shop examples/shop/python/shop.py"))
@awaited
async def demo(
    host: Host = "127.0.0.1",
    port: Port = 8080,
    shop: Shop = None,
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Go on with the world, the ports and the key of the last start with it.")
    ] = False,
) -> int:
    """Start the service with a simulator, to try it.

    It prints the addresses, a key and calls to copy.
    """
    from payrelay.demo.run import run_demo

    if shop is not None and not shop.is_file():
        raise CommandError(f"{shop}: there is no such program")
    await run_demo(host, port, shop, keep=keep)
    return DONE
