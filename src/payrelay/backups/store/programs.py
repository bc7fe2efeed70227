"""Runs PostgreSQL's own programs, which write and read dumps."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from payrelay.backups.store.copied import Moved
from payrelay.backups.store.priority import step_back
from payrelay.errors import StoreUnusable

_CHUNK_BYTES: Final = 1024 * 1024

_LIBPQ: Final = frozenset(
    {"host", "hostaddr", "port", "user", "dbname", "passfile", "options", "connect_timeout", "target_session_attrs"}
    | {"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "ssl_min_protocol_version", "ssl_max_protocol_version"}
)
"""The parameters of an address that the programs know; the driver takes all others as settings of the session."""


async def run_program(variables: Mapping[str, str], program: str, *arguments: str, steps_back: bool = False) -> None:
    """Runs one of PostgreSQL's programs; ends it where the caller is cancelled. Raises StoreUnusable.

    With ``steps_back`` others on the machine have the processors first.
    """
    await output_of(variables, program, *arguments, steps_back=steps_back)


def address_and_password(url: str) -> tuple[str, str | None]:
    """Splits off the password, which would show in the list of processes, and what these programs don't know."""
    parts = urlsplit(url)
    known = dict(parse_qsl(parts.query))
    password = known.pop("password", None) if parts.password is None else unquote(parts.password)
    user = "" if parts.username is None else f"{parts.username}@"
    hosts = parts.netloc.rpartition("@")[2]
    query = urlencode({name: value for name, value in known.items() if name in _LIBPQ}, quote_via=quote)
    return urlunsplit((parts.scheme, f"{user}{hosts}", parts.path, query, "")), password


async def output_of(variables: Mapping[str, str], program: str, *arguments: str, steps_back: bool = False) -> str:
    """Runs one of PostgreSQL's programs and gives what it wrote, which must be short; else as ``run_program``."""
    process = await _started(variables, program, *arguments)
    if steps_back:
        step_back(process.pid)
    async with _ended(process):
        written, said = await process.communicate()
    _require_done(program, process.returncode, said)
    return written.decode("utf-8", "replace")


async def pipe_programs(
    variables: Mapping[str, str], writer: Sequence[str], reader: Sequence[str], moved: Moved
) -> None:
    """Runs two of PostgreSQL's programs, of which one writes what the other reads; memory stays flat.

    Where the writer fails, the reader is killed before it comes to an end. Raises StoreUnusable.
    """
    source = await _started(variables, *writer)
    async with _ended(source):
        target = await _started(variables, *reader, reads=True)
        async with _ended(target):
            saying = [asyncio.create_task(_all_of(process.stderr)) for process in (source, target)]
            is_read = await _hand_over(source, target, moved)
            await source.wait()
            if source.returncode == 0 and is_read and target.stdin is not None:
                target.stdin.close()
                await target.wait()
                _require_done(reader[0], target.returncode, await saying[1])
                return
            if is_read:
                _require_done(writer[0], source.returncode, await saying[0])
            await target.wait()
            _require_done(reader[0], target.returncode or 1, await saying[1])


async def _hand_over(source: asyncio.subprocess.Process, target: asyncio.subprocess.Process, moved: Moved) -> bool:
    """Gives one program what the other writes; False where it ends before it has read everything."""
    if source.stdout is None or target.stdin is None:
        return False
    size = 0
    try:
        while chunk := await source.stdout.read(_CHUNK_BYTES):
            target.stdin.write(chunk)
            await target.stdin.drain()
            size += len(chunk)
            moved(size // 1_000_000, None)
    except ConnectionError:
        source.terminate()
        return False
    return True


async def _all_of(stream: asyncio.StreamReader | None) -> bytes:
    return b"" if stream is None else await stream.read()


async def _started(
    variables: Mapping[str, str], program: str, *arguments: str, reads: bool = False
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            program,
            *arguments,
            env=variables,
            stdin=asyncio.subprocess.PIPE if reads else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL if reads else asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError:
        raise StoreUnusable(
            f"{program} is not installed; it comes with PostgreSQL's client programs (the package postgresql-client)"
        ) from None


@asynccontextmanager
async def _ended(process: asyncio.subprocess.Process) -> AsyncIterator[None]:
    """Ends a program that runs on when the context closes."""
    try:
        yield
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _require_done(program: str, code: int | None, said: bytes) -> None:
    if code:
        lines = said.decode("utf-8", "replace").strip().splitlines() or [f"exit code {code}"]
        raise StoreUnusable(f"{program} failed: {lines[-1]}")
