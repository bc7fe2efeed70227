"""What any test may ask for: a real PostgreSQL server, on a Unix socket in a folder of its own, and commands."""

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from tests.commands import Ran, Run
from tests.postgresql_server import PostgresqlServer, ProgramsMissing, running_postgresql

from payrelay.cli import main

__all__ = ["PostgresqlServer"]

# Time is measured by `make bench`: an example that takes long on a busy machine is no failure.
settings.register_profile("payrelay", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("payrelay")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Starts a server for the session; skips where its programs are missing, but fails in CI."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_postgresql())
        except ProgramsMissing as missing:
            if os.environ.get("CI") == "true":
                pytest.fail(str(missing))
            pytest.skip(str(missing))
        yield server


@pytest.fixture
async def postgresql_url(postgresql_server: PostgresqlServer) -> AsyncIterator[str]:
    """Gives a test an empty schema of its own."""
    schema = f"test_{secrets.token_hex(8)}"
    await _execute(postgresql_server, f"CREATE SCHEMA {schema}")
    yield postgresql_server.url(search_path=schema)
    await _execute(postgresql_server, f"DROP SCHEMA {schema} CASCADE")


async def _execute(server: PostgresqlServer, statement: str) -> None:
    connection = await asyncpg.connect(server.url())
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs commands in an empty folder, with no settings but those that are named."""
    monkeypatch.chdir(tmp_path)

    def run_one(*arguments: str, **variables: str) -> Ran:
        with monkeypatch.context() as environment:
            for name, value in variables.items():
                environment.setenv(name, value)
            code = 0
            try:
                main(arguments)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 0
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run_one
