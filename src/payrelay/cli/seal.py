"""The commands for what is sealed: which key seals how much of it, and bringing all of it under the first one."""

import json
import secrets
import sys
from typing import Final

from rich.console import Console
from rich.table import Table

from payrelay.app import opened_seals
from payrelay.cli.session import DONE, REFUSED, complain, progress_bar
from payrelay.clock import Clock
from payrelay.core.seal_keys import KEY_BYTES, key_text
from payrelay.flows.operators.rotate_seal import SealStatus, rotate_seal, seal_status
from payrelay.settings import Settings

NAMED_MAX: Final = 10
"""Rows that can't be opened are named, so many of them; somebody must look at each."""


async def run_status(settings: Settings, *, as_json: bool) -> int:
    """Says how many values each key seals; gives the exit code. Raises SettingsError, StoreError."""
    async with opened_seals(settings, Clock()) as seals:
        status = await seal_status(seals)
    if as_json:
        shown = {"keys": status.key_ids, "sealed": status.counts}
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
    else:
        Console(highlight=False).print(_table(status))
    return DONE


async def run_rotate(settings: Settings) -> int:
    """Brings everything under the first key, beside a running server; gives the exit code.

    May be broken off and begun again. Raises SettingsError, StoreError.
    """
    async with opened_seals(settings, Clock()) as seals:
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
    sys.stderr.write(
        f"All {rotation.total} values that were not are now sealed with key {rotation.key_id}; older keys open nothing"
        " here.\n"
    )
    return DONE


def run_new_key() -> None:
    """Prints a new key, as the setting takes it."""
    sys.stdout.write(key_text(secrets.token_bytes(KEY_BYTES)) + "\n")


def _table(status: SealStatus) -> Table:
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
