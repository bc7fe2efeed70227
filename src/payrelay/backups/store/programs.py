"""Runs PostgreSQL's own programs, which write and read dumps."""

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from payrelay.backups.store.priority import step_back
from payrelay.errors import StoreUnusable

_LIBPQ: Final = frozenset(
    {"host", "hostaddr", "port", "user", "dbname", "passfile", "options", "connect_timeout", "target_session_attrs"}
    | {"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "ssl_min_protocol_version", "ssl_max_protocol_version"}
)
"""The parameters of an address that the programs know; the driver takes all others as settings of the session."""


async def run_program(variables: Mapping[str, str], program: str, *arguments: str) -> None:
    """Runs one of PostgreSQL's programs, which lets others on the machine have the processors first.

    Ends it where the caller is cancelled. Raises StoreUnusable where it is missing or fails.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError:
        raise StoreUnusable(
            f"{program} is not installed; it comes with PostgreSQL's client programs (the package postgresql-client)"
        ) from None
    step_back(process.pid)
    try:
        _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        lines = said.decode("utf-8", "replace").strip().splitlines() or [f"exit code {process.returncode}"]
        raise StoreUnusable(f"{program} failed: {lines[-1]}")


def address_and_password(url: str) -> tuple[str, str | None]:
    """Splits off the password, which would show in the list of processes, and what these programs don't know."""
    parts = urlsplit(url)
    known = dict(parse_qsl(parts.query))
    password = known.pop("password", None) if parts.password is None else unquote(parts.password)
    user = "" if parts.username is None else f"{parts.username}@"
    hosts = parts.netloc.rpartition("@")[2]
    query = urlencode({name: value for name, value in known.items() if name in _LIBPQ}, quote_via=quote)
    return urlunsplit((parts.scheme, f"{user}{hosts}", parts.path, query, "")), password
