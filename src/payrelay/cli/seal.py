"""The commands for what is sealed: which key seals how much of it, and bringing all of it under the first one."""

import json
import secrets
import sys
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Console
from rich.table import Table

from payrelay.cli.session import DONE, REFUSED, Json, awaited, complain, progress_bar, read_settings, say
from payrelay.clock import Clock
from payrelay.core.seal_keys import KEY_BYTES, key_text

if TYPE_CHECKING:
    from payrelay.flows.operators.rotate_seal import SealStatus

NAMED_MAX: Final = 10
"""Rows that can't be opened are named, so many of them; somebody must look at each."""

app = typer.Typer(name="seal", help="What is sealed at rest, and with which key.", no_args_is_help=True)


@app.command("status")
@awaited
async def show_status(*, as_json: Json = False) -> int:
    """Tell how many values each key seals."""
    from payrelay.app import opened_seals
    from payrelay.flows.operators.rotate_seal import seal_status

    async with opened_seals(read_settings(), Clock()) as seals:
        status = await seal_status(seals)
    if as_json:
        shown = {"keys": status.key_ids, "sealed": status.counts}
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
    else:
        Console(highlight=False).print(_table(status))
    return DONE


@app.command()
@awaited
async def rotate() -> int:
    """Bring everything that is sealed under the first key, while the service runs."""
    from payrelay.app import opened_seals
    from payrelay.flows.operators.rotate_seal import rotate_seal

    # May be broken off and begun again.
    async with opened_seals(read_settings(), Clock()) as seals:
        with progress_bar(Console(stderr=True)) as bar:
            task = bar.add_task("sealing", total=None)

            def move(column: str, done: int, total: int) -> None:
                bar.update(task, completed=done, total=total, description=column)

            rotation = await rotate_seal(seals, move)
    if rotation.unopened:
        for name in rotation.unopened[:NAMED_MAX]:
            complain(f"{name}: can't be opened with any of the keys; it stays as it is")
        number = len(rotation.unopened)
        complain(f"{number} values could not be opened; nobody can read them, with or without the older keys")
        return REFUSED
    if rotation.left:
        complain(
            f"{rotation.left} values are sealed with other keys again: a server that was started with another first key"
            " is still running; restart it, and run this once more"
        )
        return REFUSED
    say(
        f"All {rotation.total} values that were not are now sealed with key {rotation.key_id}; older keys open nothing"
        " here."
    )
    return DONE


@app.command("new-key")
def new_key() -> None:
    """Print a new key, as PAYRELAY_ENCRYPTION_KEY takes it."""
    sys.stdout.write(key_text(secrets.token_bytes(KEY_BYTES)) + "\n")


def _table(status: "SealStatus") -> Table:
    """Draws a row for each column in which anything is sealed, and a column for each key, known here or not."""
    strange = sorted({key_id for counts in status.counts.values() for key_id in counts} - set(status.key_ids))
    table = Table(box=None, pad_edge=False)
    table.add_column("what")
    for number, key_id in enumerate(status.key_ids):
        table.add_column(f"{key_id} {'opens' if number else 'seals'}", justify="right")
    for key_id in strange:
        table.add_column(f"{key_id} unknown", justify="right")
    for name, counts in status.counts.items():
        if counts:
            table.add_row(name, *(str(counts[key_id]) for key_id in (*status.key_ids, *strange)))
    return table
