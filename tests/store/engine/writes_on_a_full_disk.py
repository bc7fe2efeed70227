"""Runs into a limit of its file's size, and prints what became of the operations before, at and after it."""

import asyncio
import resource
import sys
from pathlib import Path

from payrelay.clock import Clock
from payrelay.errors import StoreUnavailable
from payrelay.store import open_database
from payrelay.store.engine.database import Database, Statement, Unit
from payrelay.store.engine.queries import query

BYTES_MORE = 500_000
"""How far the files may still grow: by a few of the rows below."""
ADD = query("INSERT INTO meta (name, value) VALUES ($1, $2)")
COUNT = query("SELECT count(*) FROM meta")


def _add(name: str) -> Unit[None]:
    yield Statement(ADD, (name, bytes(100_000)))


def _count() -> Unit[object]:
    rows = yield Statement(COUNT, ())
    return rows[0][0]


async def _fill(database: Database) -> int:
    """Writes until it is refused; gives how many were acknowledged."""
    number = 0
    try:
        while True:
            await database.write(_add(f"before-{number}"))
            number += 1
    except StoreUnavailable:
        return number


async def _main(url: str) -> None:
    database = await open_database(url, clock=Clock(), owner=True)
    path = Path(url.removeprefix("sqlite:///"))
    largest = max(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + BYTES_MORE, limits[1]))
    acknowledged = await _fill(database)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    await database.write(_add("after"))
    sys.stdout.write(f"{acknowledged} + 1 = {await database.read(_count())}")
    await database.close()


asyncio.run(_main(sys.argv[1]))
