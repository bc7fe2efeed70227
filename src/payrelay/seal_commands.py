"""The commands for what is sealed: which key seals how much of it, and bringing all of it under the first one."""

import json
import secrets
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from payrelay.app import opened_database, seal_of
from payrelay.clock import Clock
from payrelay.core.seal_keys import KEY_BYTES, key_text
from payrelay.operator_session import DONE, REFUSED, complain, progress_bar
from payrelay.settings import Settings
from payrelay.store.sealing import Seal
from payrelay.store.seals import SealedColumn, Seals

NAMED_MAX: Final = 10
"""Rows that can't be opened are named, so many of them; somebody must look at each."""

Counted = dict[SealedColumn, Counter[str]]


class _Opened(NamedTuple):
    seal: Seal
    seals: Seals


async def run_status(settings: Settings, *, as_json: bool) -> int:
    """Says how many values each key seals; gives the exit code. Raises SettingsError, StoreError."""
    async with _opened(settings) as (seal, seals):
        counted = await seals.count()
    if as_json:
        shown = {
            "keys": [key_id.hex() for key_id in seal.key_ids],
            "sealed": {column.name: dict(counts) for column, counts in counted.items()},
        }
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
    else:
        Console(highlight=False).print(_table(seal, counted))
    return DONE


async def run_rotate(settings: Settings) -> int:
    """Brings everything under the first key, beside a running server; gives the exit code.

    May be broken off and begun again. Raises SettingsError, StoreError.
    """
    unopened: list[str] = []
    async with _opened(settings) as (seal, seals):
        first = seal.key_id.hex()
        total = _left(await seals.count(), first)
        with progress_bar(Console(stderr=True)) as bar:
            task = bar.add_task("sealing", total=total)
            async for exchanged in seals.rotate():
                unopened += (f"{exchanged.column.name} {row}" for row in exchanged.unopened)
                bar.update(task, advance=exchanged.done + len(exchanged.unopened), description=exchanged.column.name)
        left = _left(await seals.count(), first)
    if unopened:
        for name in unopened[:NAMED_MAX]:
            complain(f"{name}: can't be opened with any of the keys; it stays as it is")
        complain(f"{len(unopened)} values could not be opened; nobody can read them, with or without the older keys")
        return REFUSED
    if left:
        complain(
            f"{left} values are sealed with other keys again: a server that was started with another first key is"
            " still running; restart it, and run this once more"
        )
        return REFUSED
    sys.stderr.write(
        f"All {total} values that were not are now sealed with key {first}; older keys open nothing here.\n"
    )
    return DONE


def run_new_key() -> None:
    """Prints a new key, as the setting takes it."""
    sys.stdout.write(key_text(secrets.token_bytes(KEY_BYTES)) + "\n")


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[_Opened]:
    async with opened_database(settings, Clock(), is_owner=False) as database:
        seal = await seal_of(settings, database)
        yield _Opened(seal, Seals(database, seal))


def _left(counted: Counted, first: str) -> int:
    return sum(counts.total() - counts[first] for counts in counted.values())


def _table(seal: Seal, counted: Counted) -> Table:
    """Draws a row for each column in which anything is sealed, and a column for each key, known here or not."""
    known = [key_id.hex() for key_id in seal.key_ids]
    strange = sorted({key_id for counts in counted.values() for key_id in counts} - set(known))
    table = Table(box=None, pad_edge=False)
    table.add_column("what")
    for number, key_id in enumerate(known):
        table.add_column(f"{key_id} {'opens' if number else 'seals'}", justify="right")
    for key_id in strange:
        table.add_column(f"{key_id} unknown", justify="right")
    for column, counts in counted.items():
        if counts:
            table.add_row(column.name, *(str(counts[key_id]) for key_id in (*known, *strange)))
    return table
