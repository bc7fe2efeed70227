"""The copy of a PostgreSQL database, by the server's own ``pg_dump``.

What the copy says of itself is read in the transaction that ``pg_dump`` reads in too, so both are of one moment.
"""

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import asyncpg

from payrelay.backups.store.copied import KEY_CHECK, NEWEST_ENTRY, SCHEMA_VERSION, Copied, Moved
from payrelay.backups.store.programs import address_and_password, run_program
from payrelay.errors import StoreUnusable
from payrelay.store.engine.postgresql.faults import translated
from payrelay.store.engine.postgresql.hosts import name_of, unreadable
from payrelay.store.engine.postgresql.sessions import CONNECT_TIMEOUT_S

LOCK_TIMEOUT: Final = "10s"
"""How long ``pg_dump`` waits for a table that is being written anew."""
COMPRESSION: Final = "1"
"""The fastest: the database should serve meanwhile, and what is sealed can't be compressed."""
POLL_S: Final = 0.5
"""Between two looks at how far the copy is."""

_OUR_SCHEMA: Final = "SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass('schema_version')"
_UNLIMITED: Final = {"idle_in_transaction_session_timeout": "0", "statement_timeout": "0"}
"""The transaction of the snapshot is idle while ``pg_dump`` works."""


async def copy_postgresql(url: str, target: Path, moved: Moved, variables: Mapping[str, str]) -> Copied:
    """Writes the database as it is at the beginning into a file of ``pg_restore``, and reads that file once.

    The servers go on meanwhile. A caller that is cancelled ends the copy; the target is left unfinished then.
    ``variables`` are the environment of the programs.

    Raises SettingsError for a URL that can't be read; StoreUnusable where the database is none of ours, or where
    ``pg_dump`` is missing or fails; StoreUnavailable where the database can't be reached; OSError for the target.
    """
    try:
        with translated():
            connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S, server_settings=_UNLIMITED)
    except ValueError:
        raise unreadable() from None
    try:
        with translated():
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                schema = await connection.fetchval(_OUR_SCHEMA)
                if schema is None:
                    raise StoreUnusable(f"{name_of(url)}: there is no Payrelay database")
                copied = await _asked(connection)
                snapshot = await connection.fetchval("SELECT pg_export_snapshot()")
                await _dump(url, target, moved, ("--schema", schema, "--snapshot", snapshot), variables)
    finally:
        await connection.close()
    await run_program(variables, "pg_restore", f"--file={os.devnull}", str(target))
    return copied


async def _asked(connection: asyncpg.Connection) -> Copied:
    return Copied(
        schema_version=await connection.fetchval(SCHEMA_VERSION),
        newest_entry_ms=await connection.fetchval(NEWEST_ENTRY),
        key_check=await connection.fetchval(KEY_CHECK),
    )


async def _dump(url: str, target: Path, moved: Moved, options: Iterable[str], variables: Mapping[str, str]) -> None:
    address, password = address_and_password(url)
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    watching = asyncio.create_task(_watch(target, moved))
    try:
        await run_program(
            variables if password is None else {**variables, "PGPASSWORD": password},
            "pg_dump",
            "--format=custom",
            f"--compress={COMPRESSION}",
            "--no-owner",
            "--no-privileges",
            f"--lock-wait-timeout={LOCK_TIMEOUT}",
            *options,
            f"--file={target}",
            f"--dbname={address}",
        )
    finally:
        watching.cancel()
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def _watch(target: Path, moved: Moved) -> None:
    while True:
        moved(_megabytes(target), None)
        await asyncio.sleep(POLL_S)


def _megabytes(path: Path) -> int:
    return path.stat().st_size // 1_000_000
